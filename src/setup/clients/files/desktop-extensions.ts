import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readRegularFile } from '../../../host/files/whole-file.js';
import { isRecord, parseJson } from '../../../wire/json/json-value.js';
import { MAX_FILE_BYTES } from './client-file.js';
import { userFiles } from './client-locations.js';
import { clientNamed } from './client-table.js';
import type { ClientLocation, ClientSystem, FoundServers } from './found-server.js';

const FOLDER = 'Claude Extensions';
const SETTINGS_FOLDER = 'Claude Extensions Settings';

/**
 * The servers of the extensions (`.mcpb`) of Claude Desktop: one folder for each, beside the file of its other servers. The
 * manifest has the command, and a file of the same name elsewhere has the values that the user entered. Neither is written.
 */
export async function findDesktopExtensions(system: ClientSystem): Promise<FoundServers> {
  const client = clientNamed('claude-desktop');
  const folders = new Set(client === undefined ? [] : userFiles(client, system, 'all').map((file) => dirname(file)));
  const read = [...folders].flatMap((folder) => extensionsIn(folder).map((id) => readExtension(folder, id, system)));
  const found = await Promise.all(read);
  return {
    servers: found.flatMap(({ servers }) => servers),
    unreadable: found.flatMap(({ unreadable }) => unreadable),
  };
}

function extensionsIn(folder: string): readonly string[] {
  try {
    const entries = readdirSync(join(folder, FOLDER), { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort();
  } catch {
    // Most users have no extensions.
    return [];
  }
}

async function readExtension(folder: string, id: string, system: ClientSystem): Promise<FoundServers> {
  const file = join(folder, FOLDER, id, 'manifest.json');
  const place: ClientLocation = {
    client: 'claude-desktop',
    title: 'Claude Desktop',
    scope: 'extension',
    file,
    format: 'json',
    path: ['server', 'mcp_config'],
  };
  const cannot = (because: string): FoundServers => ({ servers: [], unreadable: [{ place, because }] });
  const manifest = await readJson(file);
  if (typeof manifest === 'string') return cannot(manifest);
  const settings = await readJson(join(folder, SETTINGS_FOLDER, `${id}.json`));
  const values = new UserConfig(manifest, typeof settings === 'string' ? {} : settings, dirname(file), system);
  const config = configFor(manifest, system);
  if (typeof config.command !== 'string' || config.command === '')
    return cannot('its manifest names no command, so that only Claude Desktop can start it');
  const run = {
    kind: 'command' as const,
    command: values.text(config.command),
    args: list(config.args).flatMap((arg) => values.argument(arg)),
    env: values.variables(record(config.env)),
  };
  const name = typeof manifest.name === 'string' && manifest.name !== '' ? manifest.name : id;
  const isDisabled = typeof settings !== 'string' && settings.isEnabled === false;
  const variables = values.hasReferences ? ('claude-code' as const) : ('none' as const);
  return { servers: [{ place, name, run, isDisabled, variables }], unreadable: [] };
}

function configFor(manifest: Members, { platform }: ClientSystem): Members {
  const { platform_overrides: overrides, ...config } = record(record(manifest.server).mcp_config);
  return { ...config, ...record(record(overrides)[platform]) };
}

type Members = Readonly<Record<string, unknown>>;

const REFERENCE = /\$\{([^}]*)\}/g;
/** Values that Claude Desktop has encrypted for itself. */
const ENCRYPTED = /^__encrypted__:/;

/** Replaces the variables of a manifest by values. An unreadable value becomes a variable that the user sets. */
class UserConfig {
  readonly #fields: Members;
  readonly #values: Members;
  readonly #folder: string;
  readonly #system: ClientSystem;
  readonly #prefix: string;
  hasReferences = false;

  constructor(manifest: Members, settings: Members, folder: string, system: ClientSystem) {
    this.#fields = record(manifest.user_config);
    this.#values = record(settings.userConfig);
    this.#folder = folder;
    this.#system = system;
    this.#prefix = String(manifest.name ?? 'extension');
  }

  text(text: string): string {
    return text.replace(REFERENCE, (all, name: string) => this.#known(name) ?? this.#ofUser(name) ?? all);
  }

  /** Translates an argument of the manifest: into several if the user has entered several values, into none if it is not needed. */
  argument(text: string): string[] {
    const key = whole(text);
    const value = key && this.#valueOf(key);
    if (Array.isArray(value)) return value.map(String);
    return this.#isLeftOut(text) ? [] : [this.text(text)];
  }

  variables(env: Members): Record<string, string> {
    const entries = Object.entries(env).flatMap(([name, value]) =>
      typeof value !== 'string' || this.#isLeftOut(value) ? [] : [[name, this.text(value)] as const],
    );
    return Object.fromEntries(entries);
  }

  /** Whether a text is nothing but a value of the user that is missing and not needed. */
  #isLeftOut(text: string): boolean {
    const key = whole(text);
    return key !== undefined && this.#valueOf(key) === undefined && !this.#isNeeded(key);
  }

  /** `undefined` if the user has entered nothing that can be read, and there is no default. */
  #valueOf(key: string): unknown {
    const field = record(this.#fields[key]);
    const value = this.#values[key] ?? field.default;
    const isReadable = value !== undefined && value !== null && value !== '' && !ENCRYPTED.test(String(value));
    return isReadable ? value : undefined;
  }

  /** Whether the server gets this value: it is required, was entered, or is a secret, which only Claude Desktop can decrypt. */
  #isNeeded(key: string): boolean {
    const { required, sensitive } = record(this.#fields[key]);
    return required === true || sensitive === true || this.#values[key] !== undefined;
  }

  #ofUser(name: string): string | undefined {
    const [, key] = /^user_config\.(.+)$/.exec(name) ?? [];
    if (key === undefined) return undefined;
    const value = this.#valueOf(key);
    if (value !== undefined) {
      const text = Array.isArray(value) ? value.join(',') : String(value);
      // A default may name a folder of the user.
      return text.replace(REFERENCE, (all, folder: string) => this.#known(folder) ?? all);
    }
    if (!this.#isNeeded(key)) return '';
    this.hasReferences = true;
    return `\${${`${this.#prefix}_${key}`.replaceAll(/[^A-Za-z0-9]+/g, '_').toUpperCase()}}`;
  }

  #known(name: string): string | undefined {
    const { home, platform } = this.#system;
    const separator = platform === 'win32' ? '\\' : '/';
    const folders = { DESKTOP: 'Desktop', DOCUMENTS: 'Documents', DOWNLOADS: 'Downloads', HOME: '' };
    const known = new Map(Object.entries(folders).map(([each, folder]) => [each, join(home, folder)]));
    return known.set('__dirname', this.#folder).set('/', separator).set('pathSeparator', separator).get(name);
  }
}

/** The key of a text that is nothing but a value of the user. */
function whole(text: string): string | undefined {
  return /^\$\{user_config\.([^}]+)\}$/.exec(text)?.[1];
}

/** The content of a file of JSON, or the reason for none, as a sentence. */
async function readJson(file: string): Promise<Members | string> {
  const found = await readRegularFile(file, { maxBytes: MAX_FILE_BYTES, followsLinks: true });
  if (found.kind === 'absent') return 'it has no manifest';
  if (found.kind === 'unusable') return found.reason;
  const value = parseJson(found.bytes.toString());
  return isRecord(value) ? value : 'its manifest is no JSON object';
}

function record(value: unknown): Members {
  return isRecord(value) ? value : {};
}

function list(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
