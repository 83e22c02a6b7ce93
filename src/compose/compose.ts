import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { ClientProfile } from '../bridge/legacy-child.js';
import type { Config, ServerConfig } from '../config/config.js';
import { Backend, type LifecycleState } from '../gateway/backend.js';
import { Gateway } from '../gateway/gateway.js';
import { createRestartTool } from '../gateway/restart-tool.js';
import type { StatusFacts } from '../gateway/status.js';
import { createStatusTool } from '../gateway/status-tool.js';
import { createToolPolicy } from '../gateway/tool-policy.js';
import type { Hmac } from '../mcp/exposed-name.js';
import { ChildLog } from '../observe/child-log.js';
import type { Logger } from '../observe/logger.js';
import { createRedactor } from '../observe/redact.js';
import type { StopLadder } from '../supervision/launcher.js';
import { type ChildSnapshot, Supervisor } from '../supervision/supervisor.js';
import { VERSION } from '../version.js';
import { ChildLauncher, type LaunchTarget } from './child-launcher.js';
import { createPlatform, type Platform } from './platform.js';

export interface ComposeOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Shared with a front that is open already. */
  readonly platform?: Platform;
  /** What servers are told of the client; that there is none which could be asked anything, when absent. */
  readonly profile?: ClientProfile | Promise<ClientProfile>;
  /** What is wrong with the configuration as a whole, when it could not be used. */
  readonly configFault?: string;
  /** Told of every change of a child, in the same tick as its cause. */
  readonly onChange?: (key: string, snapshot: ChildSnapshot) => void;
}

/** What servers are told when there is no client that could be asked anything. */
export const NO_CLIENT: ClientProfile = { clientInfo: { name: 'trunkline', version: VERSION }, capabilities: {} };

/** Everything that runs, for whoever opens a front before it. */
export interface Composition {
  readonly gateway: Gateway;
  readonly platform: Platform;
  /** Starts every server. */
  start(): void;
  status(): StatusFacts;
  /** Ends everything; called again with a shorter ladder, it hastens the end. Resolves when no process is left. */
  stop(ladder: StopLadder): Promise<void>;
}

/** Puts the gateway together: the one place where the core meets processes, clock and log. */
export function compose(options: ComposeOptions): Composition {
  const { config, logger, environment, configFault, onChange, platform = createPlatform() } = options;
  const { clock } = platform;
  const startedAt = clock.now();
  const redact = createRedactor(config.servers.flatMap(({ child }) => (child === undefined ? [] : [child])));
  const runnable = config.servers.flatMap(({ key, child }) => (child === undefined ? [] : [{ key, child }]));

  const logs = new Map(
    config.servers.map(({ key }) => [
      key,
      new ChildLog({ redact, onLine: (line) => logger.debug({ server: key, line }, 'output') }),
    ]),
  );
  const backends = new Map(config.servers.map((server) => [server.key, createBackend(server)]));
  const launcher = new ChildLauncher({
    platform,
    logger,
    environment,
    profile: Promise.resolve(options.profile ?? NO_CLIENT),
    targets: new Map(config.servers.map((server) => [server.key, toTarget(server)])),
  });
  const supervisor = new Supervisor({
    clock,
    random: Math.random,
    launcher,
    startLimit: config.gateway.startLimit,
    onChange: (key, snapshot) => {
      backends.get(key)?.moved(snapshot.state);
      logChange(key, snapshot);
      onChange?.(key, snapshot);
    },
  });
  for (const { child } of runnable) supervisor.add(child);

  const status = (): StatusFacts => ({
    now: clock.now(),
    startedAt,
    version: VERSION,
    configFile: config.file,
    configFault,
    catalogs: gateway.catalogs,
    canRestart: config.gateway.restartTool,
    servers: config.servers.flatMap(({ key, child, problem }) => {
      const backend = backends.get(key);
      const lifecycle = child === undefined ? undefined : supervisor.snapshot(key);
      return backend === undefined ? [] : [{ backend, lifecycle, problem, logLines: logs.get(key)?.lines ?? [] }];
    }),
  });
  const keys = runnable.map(({ key }) => key);
  const restartTools = config.gateway.restartTool ? [createRestartTool(keys, (key) => supervisor.restart(key))] : [];
  const notice = configFault === undefined ? undefined : `The configuration cannot be used:\n${configFault}`;
  const gateway = new Gateway({
    clock,
    backends: [...backends.values()],
    ownTools: [createStatusTool(status, notice), ...restartTools],
    startupWaitMs: config.gateway.startupWaitMs,
    hmac: createSeal(),
    ...(notice === undefined ? {} : { notice }),
  });

  return {
    gateway,
    platform,
    status,
    start: () => {
      for (const key of keys) supervisor.start(key);
    },
    stop: async (ladder) => {
      gateway.close();
      await supervisor.stopAll(ladder);
    },
  };

  function createBackend({ key, prefix, child, tools, calls }: ServerConfig): Backend {
    return new Backend({
      key,
      prefix,
      clock,
      limits: calls,
      policy: createToolPolicy(tools),
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      isMisconfigured: child === undefined,
      demandStart: () => supervisor.demand(key),
      retryInMs: () => (child === undefined ? undefined : supervisor.retryInMs(key)),
    });
  }

  function toTarget({ key, frames }: ServerConfig): LaunchTarget {
    const backend = backends.get(key);
    const log = logs.get(key);
    if (backend === undefined || log === undefined) throw new Error(`No backend for "${key}"`);
    return { backend, log, ...frames };
  }

  function logChange(key: string, { state, generation, pid, lastFailure, restarts }: ChildSnapshot): void {
    const isTrouble: LifecycleState[] = ['backoff', 'parked'];
    const facts = { server: key, state, generation, pid, restarts };
    if (!isTrouble.includes(state)) logger.info(facts, `server ${state}`);
    else
      logger.warn({ ...facts, reason: lastFailure?.reason, log: logs.get(key)?.lines.slice(-20) }, `server ${state}`);
  }
}

/** Under a key that nobody learns and that ends with us, as does what is sealed with it. */
function createSeal(): Hmac {
  const key = randomBytes(32);
  return (text) => createHmac('sha256', key).update(text).digest('hex');
}
