import { createHash } from 'node:crypto';
import { contain } from '../bridge/contain.js';
import type { Config, ServerConfig } from '../config/config.js';
import { Backend, type LifecycleState } from '../gateway/backend.js';
import type { RunningBackend } from '../gateway/backend-pool.js';
import { createToolPolicy } from '../gateway/catalog/tool-policy.js';
import type { ServerFacts } from '../gateway/status/status.js';
import type { SharedLimit } from '../jsonrpc/shared-limit.js';
import type { ClientProfile } from '../mcp/client-profile.js';
import { ChildLog } from '../observe/child-log.js';
import type { Logger } from '../observe/logger.js';
import type { Redact } from '../observe/redact.js';
import type { StopLadder } from '../supervision/launcher.js';
import { type ChildSnapshot, Supervisor } from '../supervision/supervisor.js';
import { ChildLauncher, type LaunchTarget } from './child-launcher.js';
import type { Platform } from './platform.js';
import type { SafetyNet } from './safety-net.js';

export interface InstancesOptions {
  readonly config: Config;
  readonly platform: Platform;
  readonly logger: Logger;
  readonly redact: Redact;
  /** Counts the calls that wait for their turn, of all servers together. */
  readonly waiting: SharedLimit;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly safetyNet: SafetyNet;
  /** Clients come on a connection each, as they do over HTTP. */
  readonly hasManyConnections: boolean;
  /** Told of every change of a child, by its id, in the same tick as its cause. */
  readonly onChange: (id: string, snapshot: ChildSnapshot) => void;
}

/** One backend with its child's log; the process comes and goes. */
interface Instance extends LaunchTarget {
  readonly server: ServerConfig;
}

/**
 * The supervised children behind the backends, by ids: the server's key for its first child, and others for those of
 * further clients.
 */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #servers: ReadonlyMap<string, ServerConfig>;
  readonly #instances = new Map<string, Instance>();
  readonly #supervisor: Supervisor;
  /** The state of each child that was logged last. */
  readonly #logged = new Map<string, string>();

  constructor(options: InstancesOptions) {
    const { config, platform } = options;
    this.#options = options;
    this.#servers = new Map(config.servers.map((server) => [server.key, server]));
    this.#supervisor = new Supervisor({
      clock: platform.clock,
      random: Math.random,
      launcher: new ChildLauncher({ ...options, targets: this.#instances }),
      startLimit: config.gateway.startLimit,
      onChange: (id, snapshot) => {
        contain(() => this.#instances.get(id)?.backend.moved(snapshot.state), platform.faults.onFault);
        this.#log(id, snapshot);
        options.onChange(id, snapshot);
      },
    });
  }

  create(key: string, id: string, profile: Promise<ClientProfile>): RunningBackend {
    const server = this.#servers.get(key);
    if (server === undefined) throw new Error(`There is no server "${key}"`);
    const { logger, redact, platform } = this.#options;
    const log = new ChildLog({
      redact,
      now: () => platform.clock.now(),
      onLine: (line) => logger.debug({ server: id, line }, 'output'),
    });
    const backend = this.#createBackend(server, id);
    this.#instances.set(id, { server, backend, profile, log, ...server.frames });
    const { child } = server;
    if (child !== undefined) this.#supervisor.add({ ...child, key: id });
    return {
      backend,
      start: () => {
        if (child !== undefined) this.#supervisor.start(id);
      },
      end: () => void this.#end(id),
    };
  }

  /** Everything there is to know about a backend and the process behind it. */
  factsOf({ id, key }: Backend): Omit<ServerFacts, 'backend' | 'instances'> {
    const lifecycle = this.#servers.get(key)?.child === undefined ? undefined : this.#supervisor.snapshot(id);
    return {
      lifecycle,
      problem: this.#servers.get(key)?.problem,
      logLines: this.#instances.get(id)?.log.lines ?? [],
      droppedLogLines: this.#instances.get(id)?.log.droppedLines ?? 0,
    };
  }

  restart(id: string): void {
    this.#supervisor.restart(id);
  }

  async stopAll(ladder: StopLadder): Promise<void> {
    await this.#supervisor.stopAll(ladder);
  }

  async #end(id: string): Promise<void> {
    if (this.#instances.get(id)?.server.child !== undefined) await this.#supervisor.remove(id);
    this.#instances.delete(id);
    this.#logged.delete(id);
  }

  #createBackend({ key, prefix, child, tools, methods, trusted, calls }: ServerConfig, id: string): Backend {
    const { platform, waiting } = this.#options;
    return new Backend({
      key,
      id,
      prefix,
      clock: platform.clock,
      limits: calls,
      waiting,
      onFault: platform.faults.onFault,
      policy: createToolPolicy(tools),
      answers: createToolPolicy({ allow: methods, deny: [] }),
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      isTrusted: trusted,
      isMisconfigured: child === undefined,
      demandStart: () => this.#supervisor.demand(id),
      retryInMs: () => (child === undefined ? undefined : this.#supervisor.retryInMs(id)),
    });
  }

  #log(id: string, { state, generation, pid, lastFailure, restarts }: ChildSnapshot): void {
    const { logger } = this.#options;
    const isTrouble: LifecycleState[] = ['suspect', 'backoff', 'parked'];
    if (this.#logged.get(id) === state) return;
    this.#logged.set(id, state);
    const facts = { server: id, state, generation, pid, restarts };
    if (!isTrouble.includes(state)) logger.info(facts, `server ${state}`);
    else {
      const log = this.#instances.get(id)?.log.lines.slice(-20);
      const { reason, code, signal } = (state === 'suspect' ? undefined : lastFailure) ?? {};
      logger.warn({ ...facts, reason, code, signal, log }, `server ${state}`);
    }
  }
}
