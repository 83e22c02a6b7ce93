import { isRecord } from '../../json/is-record.js';
import { viewFaults } from '../resolve/views.js';
import type { ServerEntry } from '../schema/schema.js';
import { sameButForCase, serverKeyFault, TOOL_NAME, VIEW_NAME } from '../schema/server-key.js';
import {
  GATEWAY_SETTINGS,
  HTTP_SETTINGS,
  LIMIT_SETTINGS,
  RESTART_SETTINGS,
  readSetting,
  SERVER_SETTINGS,
  type Setting,
  START_LIMIT,
  SWITCHES,
} from '../schema/settings.js';
import {
  type CheckedFile,
  enabledServers,
  type FileData,
  overruledSettings,
  type ServersKey,
  toCheckedGateway,
  toCheckedServer,
} from './checked-file.js';
import { parsePlainYaml } from './plain-yaml.js';

/**
 * Checks a file without the schema and without the YAML library, which take most of the time from the start of Trunkline
 * to the start of its first server. Knows only the usual notations, and no places.
 *
 * Returns what `checkFile` would return, without places, for a file about which there is nothing to say. Returns
 * `undefined` for every other file, for which `checkFile` has the mistakes or the warnings, and also for some without any.
 */
export function checkQuickly(text: string): CheckedFile | undefined {
  if (text.includes('${secret:')) return undefined;
  const value = parsePlainYaml(text);
  if (value === undefined) return undefined;
  try {
    return toCheckedFile(value);
  } catch (error) {
    if (error === UNSURE) return undefined;
    throw error;
  }
}

/** Thrown at the first value that may be a mistake. It is no error, so it has no stack. */
const UNSURE = Symbol('unsure');

function toCheckedFile(value: unknown): CheckedFile {
  const root: ServersKey = isRecord(value) && Object.hasOwn(value, 'mcpServers') ? 'mcpServers' : 'servers';
  const data = readFile(value) as FileData;
  const servers = enabledServers(data, root).map(([key, own]) => {
    // Only a fault needs a place. The file is checked again then.
    return { ...toCheckedServer(key, own, data), places: [{ path: [root, key], line: 1, column: 1 }] };
  });
  if (viewFaults(data, root).length > 0) unsure();
  const gateway = toCheckedGateway(data);
  const hasWarnings =
    servers.some(({ settings }) => overruledSettings(settings).length > 0) ||
    gateway.http.maxSessions > gateway.http.maxConnections;
  if (hasWarnings || (data.servers === undefined) === (data.mcpServers === undefined)) unsure();
  return { servers, sharedVariables: Object.keys(data.defaults?.env ?? {}), secretCommands: {}, gateway, warnings: [] };
}

/** Returns the value as the schema would, or throws `UNSURE`. */
type Read = (value: unknown) => unknown;

const readText: Read = (value) => (typeof value === 'string' && value !== '' ? value : unsure());
const readAnyText: Read = (value) => (typeof value === 'string' ? value : unsure());
const listOf =
  (readItem: Read): Read =>
  (value) =>
    Array.isArray(value) ? value.map(readItem) : unsure();
const only =
  (word: string): Read =>
  (value) =>
    value === word ? value : unsure();

/** A map that has some of these keys and no others. */
function mapOf<Key extends string>(keys: Readonly<Record<Key, Read>>): Read {
  return (value) => mapEntries(value, (key, each) => (Object.hasOwn(keys, key) ? keys[key as Key](each) : unsure()));
}

function tableOf<Key extends string>(table: Readonly<Record<Key, Setting>>): Readonly<Record<Key, Read>> {
  const reads = Object.entries<Setting>(table).map(([key, setting]): [string, Read] => [
    key,
    (value) => readSetting(setting, value) ?? unsure(),
  ]);
  return Object.fromEntries(reads) as Record<Key, Read>;
}

function mapEntries(value: unknown, read: (key: string, value: unknown) => unknown): Record<string, unknown> {
  if (!isRecord(value)) return unsure();
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, read(key, each)]));
}

const readVariables: Read = (value) =>
  mapEntries(value, (name, each) => (/^[^=\0]+$/.test(name) ? readAnyText(each) : unsure()));

const valuesOf =
  (read: Read): Read =>
  (value) =>
    mapEntries(value, (_, each) => read(each));

const readAppended: Read = (value) =>
  isRecord(value) && Object.hasOwn(value, 'append') ? mapOf({ append: readText })(value) : unsure();

const tunables = {
  ...tableOf(SERVER_SETTINGS),
  restart: mapOf(tableOf(RESTART_SETTINGS)),
  limits: mapOf(tableOf(LIMIT_SETTINGS)),
};

const entryKeys: Readonly<Record<keyof ServerEntry, Read>> = {
  ...tunables,
  ...tableOf(SWITCHES),
  package: readText,
  command: readText,
  bin: readText,
  args: listOf(readAnyText),
  cwd: readText,
  env: readVariables,
  envFile: readText,
  prefix: only(''),
  methods: listOf(readText),
  tools: mapOf({
    allow: listOf(readText),
    deny: listOf(readText),
    rename: valuesOf((name) => (typeof name === 'string' && TOOL_NAME.test(name) ? name : unsure())),
    describe: valuesOf((value) => (typeof value === 'string' ? readText(value) : readAppended(value))),
    params: valuesOf(
      mapOf({
        hide: listOf(readText),
        set: valuesOf((value) => value),
        default: valuesOf((value) => value),
        describe: valuesOf(readText),
      }),
    ),
  }),
  type: only('stdio'),
};

const readKeysOfEntry = mapOf(entryKeys);

/** Keys of remote servers are unknown here. */
const readEntry: Read = (value) => {
  const entry = readKeysOfEntry(value) as ServerEntry;
  const isPackage = entry.package !== undefined;
  const isForPackage = entry.bin !== undefined || entry.installScripts !== undefined;
  return isPackage === (entry.command !== undefined) || (isForPackage && !isPackage) ? unsure() : entry;
};

const readServers: Read = (value) => {
  const servers = mapEntries(value, (key, entry) => (serverKeyFault(key) === undefined ? readEntry(entry) : unsure()));
  const keys = Object.keys(servers);
  return keys.length === 0 || sameButForCase(keys).length > 0 ? unsure() : servers;
};

const readView = mapOf({
  servers: listOf(readText),
  tools: mapOf({ allow: listOf(readText), deny: listOf(readText) }),
});

const fileKeys: Readonly<Record<keyof FileData, Read>> = {
  $schema: readText,
  servers: readServers,
  mcpServers: readServers,
  defaults: mapOf({ ...tunables, env: readVariables, envFile: readText }),
  views: (value) => mapEntries(value, (name, view) => (VIEW_NAME.test(name) ? readView(view) : unsure())),
  clients: valuesOf(readText),
  // Secrets have to be read before the file can be resolved.
  secretCommand: unsure,
  gateway: mapOf({
    ...tableOf(GATEWAY_SETTINGS),
    startLimit: (value) => readSetting(START_LIMIT, value) ?? unsure(),
    record: readText,
    sealKeyFile: readText,
    http: mapOf(tableOf(HTTP_SETTINGS)),
  }),
};

const readFile = mapOf(fileKeys);

function unsure(): never {
  throw UNSURE;
}
