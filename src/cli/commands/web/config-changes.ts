import { createHash } from 'node:crypto';
import { secretSourcesOf } from '../../../app/active-config.js';
import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import { type ConfigEdit, checkEdited, editConfig, openConfig, saveConfig } from '../../../config/edit/edit-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation, readConfigText } from '../../../config/file/find-config.js';
import { parseYaml } from '../../../config/file/yaml-source.js';
import type { ServerConfig } from '../../../config/resolve/config.js';
import { SERVER_SETTINGS, type Setting, type Table } from '../../../config/schema/settings.js';
import { valueAt } from '../../../files/edit/edit-text.js';
import { isRecord } from '../../../json/json-value.js';
import { createRedactor, publicPartOf, REDACTED, type Redact } from '../../../observe/redact.js';
import { withChangeLock } from '../../../state/process-lock.js';
import type { ConfigDiff, DiffLine, ServerDetail, ToolLists } from '../../../web/contract.js';
import { PageRefusal } from '../../../web/page-source.js';
import { difference } from '../../difference.js';

/** Lines around a change that are shown. */
const CONTEXT_LINES = 3;

/**
 * Shows the change of the configuration file, or writes it if `hash` names the text that was shown. Throws a `PageRefusal` if
 * the file has another text by now, and a `ConfigError` if the edit is not possible.
 */
export async function changeConfig(
  settings: GlobalOptions,
  edit: ConfigEdit,
  hash: string | undefined,
): Promise<ConfigDiff> {
  const redact = await redactorOf(settings);
  const change = () => {
    const open = openConfig(new ConfigLocation(settings).file);
    const { file, text = '' } = open;
    const now = createHash('sha256').update(text).digest('hex');
    if (hash !== undefined && hash !== now)
      throw new PageRefusal(
        409,
        'The configuration file has changed since this change was shown. Nothing was written; look at the change again.',
      );
    const edited = editConfig(text, file, edit);
    if (hash === undefined) checkEdited(open, edited);
    else if (edited !== text) saveConfig(open, edited);
    const lines = nearChanges(difference(text.split(/\r?\n/), edited.split(/\r?\n/)));
    return {
      file,
      hash: now,
      lines: lines.map((line) => ({ ...line, text: redact(line.text) })),
      isWritten: hash !== undefined,
    };
  };
  return await withChangeLock(change, { isDryRun: hash === undefined });
}

/** Removes everything secret that the configuration has, also where it only looks like a secret. */
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
  try {
    return (await readConfig(settings)).servers;
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

function nearChanges(lines: readonly DiffLine[]): DiffLine[] {
  const changed = lines.flatMap(({ sign }, at) => (sign === ' ' ? [] : [at]));
  return lines.filter((_, at) => changed.some((each) => Math.abs(each - at) <= CONTEXT_LINES));
}

type Settings = ServerDetail['settings'];

/** The settings of a server in force, each with its origin and its line in the file. Values that can be secret are left out. */
export async function settingsOfServer(settings: GlobalOptions, server: string): Promise<Settings> {
  const { file } = new ConfigLocation(settings);
  const source = parseYaml(readConfigText(file), file);
  const redact = await redactorOf(settings);
  const root = isRecord(source.value) && Object.hasOwn(source.value, 'mcpServers') ? 'mcpServers' : 'servers';
  const origins = [
    { from: 'server', path: [root, server] },
    { from: 'defaults', path: ['defaults'] },
  ];
  const found = (name: readonly string[]) => {
    for (const { from, path } of origins) {
      const value = valueAt(source.value, [...path, ...name]);
      if (value !== undefined) return { from, value, line: source.positionOfKey([...path, ...name]).line };
    }
    return undefined;
  };
  const table = (settingsTable: Table, above: readonly string[]): Settings =>
    Object.entries(settingsTable).flatMap(([key, setting]: [string, Setting]) => {
      const path = [...above, key];
      if (setting.kind === 'section') return table(setting.table, path);
      const { from, value, line } = found(path) ?? { from: 'built in', value: setting.standard, line: null };
      return value === undefined ? [] : [{ name: path.join('.'), value: redact(String(value)), from, line }];
    });
  const entry = valueAt(source.value, [root, server]);
  const members = Object.entries(isRecord(entry) ? entry : {}).filter(([key]) => !Object.hasOwn(SERVER_SETTINGS, key));
  const own = members.map(([key, value]) => {
    const { line } = source.positionOfKey([root, server, key]);
    return { name: key, value: shown(key, value, redact), from: 'server', line };
  });
  const shared = ['env', 'envFile'].flatMap((key) => {
    const value = valueAt(source.value, ['defaults', key]);
    if (value === undefined) return [];
    return [
      {
        name: key,
        value: shown(key, value, redact),
        from: 'defaults',
        line: source.positionOfKey(['defaults', key]).line,
      },
    ];
  });
  return [...own, ...shared, ...table(SERVER_SETTINGS, [])];
}

/** Members of an entry whose values are credentials or can contain some. Their names are shown. */
const NAMED_ONLY = new Set(['env', 'headers', 'oauth', 'headersCommand', 'proxy']);

function shown(key: string, value: unknown, redact: Redact): string {
  if (NAMED_ONLY.has(key)) return isRecord(value) ? Object.keys(value).join(', ') : REDACTED;
  if (key === 'url') return redact(publicPartOf(String(value)));
  return redact(typeof value === 'string' ? value : JSON.stringify(value));
}
