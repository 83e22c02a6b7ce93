import { readFileSync } from 'node:fs';
import { availableParallelism, homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import type { Config, ServerConfig, ServerProblem } from './config.js';
import { ConfigError, type ConfigProblem, formatProblem } from './config-error.js';
import { MIN_START_LIMIT } from './defaults.js';
import type { Variables } from './expand.js';
import { toHttpConfig } from './http-settings.js';
import type { InstalledPackages } from './package-bin.js';
import { formatPath, toProblems, unknownKeyHint } from './problems.js';
import { isMap, remoteFault, remoteKeys, withStandIns } from './remote-entry.js';
import { resolveServer, type Surroundings } from './resolve-server.js';
import { fileSchema, GATEWAY_BUILT_IN } from './schema.js';
import { gatewayWarnings, settingWarnings } from './setting-warnings.js';
import { type Path, parseYaml, type YamlSource } from './yaml-source.js';

export interface LoadOptions {
  /** What `${NAME}` stands for. */
  env: Variables;
  /** The Node that runs the servers given as `package`. */
  nodePath: string;
  /** The packages that Trunkline has installed itself. */
  store?: InstalledPackages;
}

/**
 * Reads and checks a configuration file.
 *
 * A mistake in the file throws a `ConfigError` with everything that is wrong. What is merely not there for one server,
 * such as a package, a folder or a variable, becomes that server's `problem`, so that the others can run.
 */
export function loadConfig(file: string, { env, nodePath, store }: LoadOptions): Config {
  const source = parseYaml(readText(file), file);
  const root = serversKey(source, file);
  const data = check(source, root, file);
  const { defaults = {}, gateway = {} } = data;
  const entries = Object.entries(data[root] ?? {}).filter(([, entry]) => entry.disabled !== true);

  const remote = remoteKeys(source.value, root);
  const surroundings = {
    folder: dirname(resolve(file)),
    home: env.HOME || env.USERPROFILE || homedir(),
    env,
    nodePath,
    store,
    defaults,
  };
  const servers = entries.map(([key, entry]): ServerConfig => {
    const locate = locator([root, key], source);
    const server = resolveServer(key, entry, { ...surroundings, locate });
    return remote.has(key) ? { ...server, child: undefined, problem: locate(remoteFault()) } : server;
  });
  const warnings = [
    ...unknownTopLevel(source, root),
    ...entries.flatMap(([key, entry]) => settingWarnings(entry, defaults, [root, key], source)),
    ...gatewayWarnings(gateway, source),
  ];
  return {
    file: resolve(file),
    servers,
    gateway: {
      startupWaitMs: gateway.startupWait ?? GATEWAY_BUILT_IN.startupWait,
      idleStopMs: gateway.idleStop ?? GATEWAY_BUILT_IN.idleStop,
      restartTool: gateway.restartTool ?? GATEWAY_BUILT_IN.restartTool,
      watch: gateway.watch ?? GATEWAY_BUILT_IN.watch,
      startLimit: gateway.startLimit ?? Math.max(MIN_START_LIMIT, availableParallelism()),
      maxQueued: gateway.maxQueued ?? GATEWAY_BUILT_IN.maxQueued,
      maxPartialBytes: gateway.maxPartial ?? GATEWAY_BUILT_IN.maxPartial,
      http: toHttpConfig(gateway.http ?? {}),
    },
    warnings: warnings.map((warning) => formatProblem(file, warning)),
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
    if (reason === 'ENOENT') {
      const problem = { message: 'there is no such file', hint: 'create it, or name another one with --config FILE' };
      throw new ConfigError('config-not-found', file, [problem], { cause });
    }
    const message = `this cannot be read (${reason}); expected a readable file`;
    throw new ConfigError('config-unreadable', file, [{ message }], { cause });
  }
}

type ServersKey = 'servers' | 'mcpServers';

function serversKey({ value, positionOfKey }: YamlSource, file: string): ServersKey {
  if (!isMap(value) || !Object.hasOwn(value, 'mcpServers')) return 'servers';
  if (!Object.hasOwn(value, 'servers')) return 'mcpServers';
  throw new ConfigError('config-invalid', file, [
    {
      message: 'found servers and mcpServers, which mean the same; expected one of them',
      hint: 'move all servers below one of the two',
      ...positionOfKey(['mcpServers']),
    },
  ]);
}

function check(source: YamlSource, root: ServersKey, file: string): z.output<typeof fileSchema> {
  const { value } = source;
  if (value === null || (isMap(value) && value[root] === null)) throw noServers(source, root, file);
  // Files of other programs hold settings that mean something to those.
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
  if (root !== 'mcpServers' || !isMap(value)) return [];
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(fileSchema.shape, key))
    .map((key) => ({
      message: `ignored the unknown key \`${key}\``,
      hint: unknownKeyHint(key, Object.keys(fileSchema.shape)),
      ...positionOfKey([key]),
    }));
}

function locator(entry: Path, { positionOf, positionOfKey }: YamlSource): Surroundings['locate'] {
  return ({ message, hint, path }): ServerProblem => {
    const place = [...entry, ...path];
    const position = path.length === 0 ? positionOfKey(place) : positionOf(place);
    return { message: `${formatPath(place)}: ${message}`, hint, ...position };
  };
}
