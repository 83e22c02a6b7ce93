import { createHash } from 'node:crypto';
import { secretSourcesOf } from '../../../app/active-config.js';
import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfigOrError } from '../../../app/read-config.js';
import {
  type ConfigEdit,
  checkEdited,
  editConfig,
  entriesIn,
  openConfig,
  saveConfig,
} from '../../../config/edit/edit-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation, readConfigText } from '../../../config/file/find-config.js';
import { parseYaml } from '../../../config/file/yaml-source.js';
import type { ServerConfig } from '../../../config/resolve/config.js';
import { SERVER_SETTINGS, type Setting, type SettingTable } from '../../../config/schema/settings.js';
import { valueAt } from '../../../host/files/edit/edit-text.js';
import { createRedactor, publicPartOf, REDACTED, type Redact } from '../../../host/observe/redact.js';
import { withChangeLock } from '../../../state/change-lock.js';
import type { ConfigChange, ConfigDiff, DiffLine, SettingRow, ToolLists } from '../../../web/server/contract.js';
import { PageRefusal } from '../../../web/server/page-source.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { printable } from '../../../wire/json/printable.js';
import { difference } from '../../difference.js';

/** Lines around a change that are shown. */
const CONTEXT_LINES = 3;

/** Changes of the configuration file from the page. The last one can be taken back, byte for byte. */
export class PageChanges {
  readonly #settings: GlobalOptions;
  /** The text before the last change, and the hash of the text after it. */
  #last: { readonly file: string; readonly text: string; readonly undo: string } | undefined;

  constructor(settings: GlobalOptions) {
    this.#settings = settings;
  }

  /**
   * Shows changes of the file together, or writes them if `hash` names the text that was shown. Throws a `PageRefusal` if the
   * file has another text by now, and a `ConfigError` if an edit is not possible.
   */
  async change(changes: readonly ConfigChange[], hash: string | undefined): Promise<ConfigDiff> {
    const redact = await redactorOf(this.#settings);
    const change = () => {
      const open = openConfig(new ConfigLocation(this.#settings).file);
      const { file, text = '' } = open;
      const now = hashOf(text);
      if (hash !== undefined && hash !== now)
        throw new PageRefusal(
          409,
          'The file has changed since this change was shown, so nothing was written. Look at the change again.',
        );
      const edited = changes.map(editOf).reduce((before, edit) => editConfig(before, file, edit), text);
      const undo = hash === undefined || edited === text ? null : hashOf(edited);
      if (hash === undefined) checkEdited(open, edited);
      if (undo !== null) {
        saveConfig(open, edited);
        this.#last = { file, text, undo };
      }
      const lines = nearChanges(difference(text.split(/\r?\n/), edited.split(/\r?\n/)));
      return { file, hash: now, undo, lines: lines.map((line) => ({ ...line, text: redact(line.text) })) };
    };
    return await withChangeLock(change, { isDryRun: hash === undefined });
  }

  /** Restores the text before the last change, which `undo` names. Throws a `PageRefusal` if the file has another text by now. */
  async undo(undo: string): Promise<{ readonly file: string }> {
    return await withChangeLock(() => {
      const open = openConfig(new ConfigLocation(this.#settings).file);
      const last = this.#last;
      if (last?.undo !== undo || last.file !== open.file || hashOf(open.text ?? '') !== undo)
        throw new PageRefusal(
          409,
          'The file has changed since, so this change cannot be undone here. Edit the file instead.',
        );
      saveConfig(open, last.text);
      this.#last = undefined;
      return { file: open.file };
    });
  }
}

function editOf({ server: key, isDisabled, deny, allow }: ConfigChange): ConfigEdit {
  if (isDisabled !== undefined) return { kind: 'disable', key, isDisabled };
  return { kind: 'tools', key, allow, deny: deny?.length === 0 ? null : deny };
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Returns a function that removes the secrets of the configuration from a text, and all text that looks like a secret. */
export async function redactorOf(settings: GlobalOptions): Promise<Redact> {
  return createRedactor((await readServers(settings)).flatMap(secretSourcesOf));
}

/** The lists `tools.deny` and `tools.allow` of each server that has one of them. */
export async function toolLists(settings: GlobalOptions): Promise<ToolLists[]> {
  const servers = await readServers(settings);
  return servers.flatMap(({ key: server, tools: { deny, allow } }) =>
    deny.length === 0 && allow === undefined ? [] : [{ server, deny, allow: allow ?? [] }],
  );
}

/** The servers of the configuration; none if it has mistakes. */
async function readServers(settings: GlobalOptions): Promise<readonly ServerConfig[]> {
  const config = await readConfigOrError(settings);
  return config instanceof ConfigError ? [] : config.servers;
}

function nearChanges(lines: readonly DiffLine[]): DiffLine[] {
  const changed = lines.flatMap(({ sign }, at) => (sign === ' ' ? [] : [at]));
  return lines.filter((_, at) => changed.some((each) => Math.abs(each - at) <= CONTEXT_LINES));
}

/** The configuration file. Throws a `PageRefusal` if it has no such server, because the name of an unknown server could be a path. */
export function fileWith(settings: GlobalOptions, server: string): string {
  const { file } = new ConfigLocation(settings);
  if (Object.hasOwn(entriesIn(readConfigText(file)), server)) return file;
  throw new PageRefusal(404, `There is no server ${printable(server)}.`);
}

/** The settings of a server in force, each with its origin and its line in the file. Values that can be secret are left out. */
export async function settingsOfServer(settings: GlobalOptions, server: string): Promise<SettingRow[]> {
  const file = fileWith(settings, server);
  const source = parseYaml(readConfigText(file), file);
  const redact = await redactorOf(settings);
  const root = isRecord(source.value) && Object.hasOwn(source.value, 'mcpServers') ? 'mcpServers' : 'servers';
  const paths = { server: [root, server], defaults: ['defaults'] };
  const rowsIn = (from: keyof typeof paths, name: readonly string[]): SettingRow[] => {
    const path = [...paths[from], ...name];
    const value = valueAt(source.value, path);
    if (value === undefined) return [];
    const { line } = source.positionOfKey(path);
    return [{ name: name.join('.'), value: shown(name[0], value, redact), from, line }];
  };
  const rowsOf = (table: SettingTable, above: readonly string[]): SettingRow[] =>
    Object.entries(table).flatMap(([key, setting]: [string, Setting]) => {
      const name = [...above, key];
      if (setting.kind === 'section') return rowsOf(setting.table, name);
      const own = [...rowsIn('server', name), ...rowsIn('defaults', name)].slice(0, 1);
      const { standard } = setting;
      if (own.length > 0 || standard === undefined) return own;
      return [{ name: name.join('.'), value: shown(key, standard, redact), from: 'built in', line: null }];
    });
  const entry = valueAt(source.value, paths.server);
  const members = Object.keys(isRecord(entry) ? entry : {}).filter((key) => !Object.hasOwn(SERVER_SETTINGS, key));
  return [
    ...members.flatMap((key) => rowsIn('server', [key])),
    ...['env', 'envFile'].flatMap((key) => rowsIn('defaults', [key])),
    ...rowsOf(SERVER_SETTINGS, []),
  ];
}

/** Members of an entry that are or can contain credentials. The page gets only the names in them. */
const NAMED_ONLY = new Set<string | undefined>(['env', 'headers', 'oauth', 'headersCommand', 'proxy']);

function shown(key: string | undefined, value: unknown, redact: Redact): string {
  if (NAMED_ONLY.has(key)) return isRecord(value) ? Object.keys(value).join(', ') : REDACTED;
  if (key === 'url') return redact(publicPartOf(String(value)));
  return redact(typeof value === 'string' ? value : JSON.stringify(value));
}
