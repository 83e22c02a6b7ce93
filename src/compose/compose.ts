import type { Config, ServerConfig } from '../config/config.js';
import type { Backend } from '../gateway/backend.js';
import { Gateway } from '../gateway/gateway.js';
import type { SeenBackends } from '../gateway/status/own-tool.js';
import { createRestartTool } from '../gateway/status/restart-tool.js';
import type { StatusFacts } from '../gateway/status/status.js';
import { createStatusTool } from '../gateway/status/status-tool.js';
import { createToolCountWarning } from '../gateway/status/tool-count.js';
import { SharedLimit } from '../jsonrpc/shared-limit.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import type { Logger } from '../observe/logger.js';
import { KnownSecrets, type SecretSource } from '../observe/redact.js';
import type { StopLadder } from '../supervision/launcher.js';
import type { ChildSnapshot } from '../supervision/supervisor.js';
import { VERSION } from '../version.js';
import { Instances } from './instances.js';
import { createPlatform, type Platform } from './platform.js';
import { SafetyNet } from './safety-net.js';
import { createSeal } from './seal.js';

export interface ComposeOptions {
  readonly config: Config;
  readonly logger: Logger;
  /** Told of the secrets in the configuration; shared with the logger. */
  readonly secrets?: KnownSecrets;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where it is written down which processes are ours, for the gateway that starts after us should we be killed. */
  readonly runFolder: string;
  /** Shared with a front that is open already. */
  readonly platform?: Platform;
  /** Seals what clients keep, such as the ids of tasks; what was sealed before a restart is good under the same one. */
  readonly secret?: string;
  /** Called when the secret is first used. */
  readonly onSealed?: () => void;
  /** Clients come on a connection each, as they do over HTTP. */
  readonly hasManyConnections?: boolean;
  /** What is wrong with the configuration as a whole, when it could not be used. */
  readonly configFault?: string;
  /** Told of every change of a child, in the same tick as its cause. */
  readonly onChange?: (id: string, snapshot: ChildSnapshot) => void;
}

/** What a server is told that serves all clients in one process: what the gateway can see to for each of them. */
const ALL_CLIENTS: ClientProfile = {
  clientInfo: { name: 'trunkline', version: VERSION },
  capabilities: { sampling: { context: {}, tools: {} }, elicitation: { form: {}, url: {} } },
};

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
  const {
    config,
    logger,
    environment,
    runFolder,
    configFault,
    secrets = new KnownSecrets(),
    secret,
    onSealed = () => {},
    hasManyConnections = false,
    onChange = () => {},
    platform = createPlatform(),
  } = options;
  const { clock, partialFrames, faults } = platform;
  const { maxQueued, maxPartialBytes } = config.gateway;
  partialFrames.limitTo(maxPartialBytes);
  const waiting = new SharedLimit(maxQueued);
  faults.listen((err) => logger.error({ err }, 'a bug in Trunkline, which failed one request and no more'));
  secrets.know(config.servers.flatMap(secretsOf));
  const startedAt = clock.now();
  const safetyNet = new SafetyNet({ clock, logger, runFolder });
  const { redact } = secrets;
  const instances = new Instances({
    config,
    platform,
    logger,
    redact,
    waiting,
    environment,
    safetyNet,
    hasManyConnections,
    onChange,
  });

  const statusOf = ({ backends, catalogs }: SeenBackends): StatusFacts => ({
    now: clock.now(),
    startedAt,
    version: VERSION,
    configFile: config.file,
    configFault,
    redact,
    waiting,
    partialFrames,
    ownBugs: faults.count,
    catalogs,
    canRestart: config.gateway.restartTool,
    servers: [...backends.values()].map((backend) => ({
      backend,
      ...instances.factsOf(backend),
      instances: gateway.pool.of(backend.key).map((each) => ({
        backend: each,
        lifecycle: instances.factsOf(each).lifecycle,
        isUnclaimed: gateway.pool.isUnclaimed(each),
      })),
    })),
  });
  const runnable = config.servers.filter(({ child }) => child !== undefined).map(({ key }) => key);
  const restartTools = config.gateway.restartTool ? [createRestartTool(runnable, (id) => instances.restart(id))] : [];
  const notice = configFault === undefined ? undefined : `The configuration cannot be used:\n${configFault}`;
  const gateway = new Gateway({
    clock,
    servers: config.servers.map(({ key, child, sharing }) => ({ key, sharing: child === undefined ? 'all' : sharing })),
    create: (key, id, profile) => instances.create(key, id, profile),
    profileOfAll: ALL_CLIENTS,
    idleStopMs: config.gateway.idleStopMs,
    ownTools: [createStatusTool(statusOf, notice), ...restartTools],
    seal: createSeal({ secret, onSealed }),
    startupWaitMs: config.gateway.startupWaitMs,
    hmac: createSeal(),
    onFault: faults.onFault,
    onToolsListed: createToolCountWarning((advice) => logger.warn(advice)),
    ...(notice === undefined ? {} : { notice }),
  });

  return {
    gateway,
    platform,
    status: () => {
      const oldest = [...gateway.pool.keys].flatMap((key) => gateway.pool.of(key).slice(0, 1));
      const backends = new Map<string, Backend>(oldest.map((backend) => [backend.key, backend]));
      return statusOf({ backends, catalogs: gateway.catalogs });
    },
    start: () => {
      gateway.start();
      void safetyNet.sweep();
    },
    stop: async (ladder) => {
      gateway.close();
      await instances.stopAll(ladder);
      await safetyNet.close();
    },
  };
}

function secretsOf({ child, references }: ServerConfig): SecretSource[] {
  const fromFile = child === undefined ? [] : [child];
  return [...fromFile, { env: references, args: [] }];
}
