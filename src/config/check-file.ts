import type { z } from 'zod';
import { isRecord } from '../json/is-record.js';
import type { CheckedFile, CheckedServer } from './checked-file.js';
import type { ServerProblem } from './config.js';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { toHttpConfig } from './http-settings.js';
import { toProblems, unknownKeyHint } from './problems.js';
import { remoteFault, remoteKeys, withStandIns } from './remote-entry.js';
import { fileSchema, GATEWAY_BUILT_IN, type ServerEntry, withDefaults } from './schema.js';
import { locateFault, type Place } from './server-fault.js';
import { gatewayWarnings, settingWarnings } from './setting-warnings.js';
import { type Path, parseYaml, type YamlSource } from './yaml-source.js';

/**
 * Checks the text of a configuration file. Throws a `ConfigError` with all mistakes in the text; `file` is the name for
 * its messages.
 */
export function checkFile(text: string, file: string): CheckedFile {
  const source = parseYaml(text, file);
  const root = serversKey(source, file);
  const data = check(source, root, file);
  const { defaults = {}, gateway = {} } = data;
  const entries = Object.entries(data[root] ?? {}).filter(([, entry]) => entry.disabled !== true);

  const remote = remoteKeys(source.value, root);
  const servers = entries.map(([key, entry]): CheckedServer => {
    const places = placesIn(entry, [root, key], source);
    const problem: ServerProblem | undefined = remote.has(key) ? locateFault(remoteFault(), places) : undefined;
    return { key, entry, settings: withDefaults(entry, defaults), places, ...(problem && { problem }) };
  });
  return {
    servers,
    gateway: {
      startupWaitMs: gateway.startupWait ?? GATEWAY_BUILT_IN.startupWait,
      idleStopMs: gateway.idleStop ?? GATEWAY_BUILT_IN.idleStop,
      restartTool: gateway.restartTool ?? GATEWAY_BUILT_IN.restartTool,
      watch: gateway.watch ?? GATEWAY_BUILT_IN.watch,
      startLimit: gateway.startLimit ?? null,
      maxQueued: gateway.maxQueued ?? GATEWAY_BUILT_IN.maxQueued,
      maxPartialBytes: gateway.maxPartial ?? GATEWAY_BUILT_IN.maxPartial,
      http: toHttpConfig(gateway.http ?? {}),
    },
    warnings: [
      ...unknownTopLevel(source, root),
      ...entries.flatMap(([key, entry]) => settingWarnings(entry, defaults, [root, key], source)),
      ...gatewayWarnings(gateway, source),
    ],
  };
}

type ServersKey = 'servers' | 'mcpServers';

function serversKey({ value, positionOfKey }: YamlSource, file: string): ServersKey {
  if (!isRecord(value) || !Object.hasOwn(value, 'mcpServers')) return 'servers';
  if (!Object.hasOwn(value, 'servers')) return 'mcpServers';
  throw new ConfigError('config-invalid', file, [
    {
      message: 'found both `servers` and `mcpServers`, which mean the same; only one of them is allowed',
      hint: 'move all servers to one of them, and remove the other',
      ...positionOfKey(['mcpServers']),
    },
  ]);
}

function check(source: YamlSource, root: ServersKey, file: string): z.output<typeof fileSchema> {
  const { value } = source;
  if (value === null || (isRecord(value) && value[root] === null)) throw noServers(source, root, file);
  // A file of another program may contain settings of that program.
  const schema = root === 'mcpServers' ? fileSchema.strip() : fileSchema;
  const { data, error } = schema.safeParse(withStandIns(value, root));
  const [first, ...rest] = toProblems(error?.issues ?? [], fileSchema, source);
  if (first !== undefined) throw new ConfigError('config-invalid', file, [first, ...rest]);
  if (data === undefined || Object.keys(data[root] ?? {}).length === 0) throw noServers(source, root, file);
  return data;
}

function noServers({ positionOf }: YamlSource, root: ServersKey, file: string): ConfigError {
  const problem = {
    message: `there are no servers; expected at least one below \`${root}:\``,
    hint: `for example:\n${EXAMPLE}`,
    ...positionOf([root]),
  };
  return new ConfigError('config-invalid', file, [problem]);
}

const EXAMPLE = `servers:
  files: { package: "@modelcontextprotocol/server-filesystem", args: ["\${HOME}"] }`;

function unknownTopLevel({ value, positionOfKey }: YamlSource, root: ServersKey): ConfigProblem[] {
  if (root !== 'mcpServers' || !isRecord(value)) return [];
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(fileSchema.shape, key))
    .map((key) => ({
      message: `ignored the unknown key \`${key}\``,
      hint: unknownKeyHint(key, Object.keys(fileSchema.shape)),
      ...positionOfKey([key]),
    }));
}

/** The place of the entry, then the places of all its values that are resolved later. */
function placesIn(entry: ServerEntry, root: Path, { positionOf, positionOfKey }: YamlSource): readonly Place[] {
  const resolved: Path[] = [
    ...(entry.args ?? []).map((_, index) => ['args', index]),
    ...Object.keys(entry.env ?? {}).map((name) => ['env', name]),
    ['cwd'],
    ['command'],
    ['package'],
  ];
  const inside = resolved.map((steps) => [...root, ...steps]);
  return [{ path: root, ...positionOfKey(root) }, ...inside.map((path) => ({ path, ...positionOf(path) }))];
}
