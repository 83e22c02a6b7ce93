import { createHash } from 'node:crypto';
import { contain } from '../bridge/contain.js';
import type { Config, ServerConfig } from '../config/config.js';
import { Backend, type BackendRules, type LifecycleState } from '../gateway/backend.js';
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
import { ChildInstaller } from './child-installer.js';
import { ChildLauncher, type LaunchTarget } from './child-launcher.js';
import type { PackageInstaller } from './package-installer.js';
import type { PackagePlaces } from './packages.js';
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
  /** Where packages are installed that are missing; absent where none is. */
  readonly packages?: Omit<PackagePlaces, 'configFile'>;
  /** Clients come on a connection each, as they do over HTTP. */
  readonly hasManyConnections: boolean;
  /** Told of every change of a child, by its id, in the same tick as its cause. */
  readonly onChange: (id: string, snapshot: ChildSnapshot) => void;
}

/** One backend with its child's log; the process comes and goes. */
interface Instance extends LaunchTarget {
  server: ServerConfig;
}

/**
 * The supervised children behind the backends, by ids: the server's key for its first child, and others for those of
 * further clients.
 */
export class Instances {
  readonly #options: InstancesOptions;
  #servers: ReadonlyMap<string, ServerConfig> = new Map();
  readonly #instances = new Map<string, Instance>();
  readonly #installer: ChildInstaller;
  readonly #supervisor: Supervisor;
  /** The state of each child that was logged last. */
  readonly #logged = new Map<string, string>();

  constructor(options: InstancesOptions) {
    const { config, platform, logger } = options;
    this.#options = options;
    this.#know(config);
    this.#installer = new ChildInstaller({
      open: () => this.#openInstaller(),
      logger,
      log: (id, line) => this.#instances.get(id)?.log.add(line),
    });
    this.#supervisor = new Supervisor({
      clock: platform.clock,
      random: Math.random,
      launcher: new ChildLauncher({ ...options, targets: this.#instances }),
      installer: this.#installer,
      startLimit: config.gateway.startLimit,
      onChange: (id, snapshot) => {
        contain(() => this.#instances.get(id)?.backend.moved(snapshot.state), platform.faults.onFault);
        this.#log(id, snapshot);
        options.onChange(id, snapshot);
      },
    });
  }

  /** Makes backends of these servers from now on; of those that are there, the `adjusted` follow their new settings. */
  change(config: Config, adjusted: readonly string[]): void {
    this.#know(config);
    this.#supervisor.startLimit = config.gateway.startLimit;
    for (const [id, instance] of this.#instances) {
      const server = this.#servers.get(instance.server.key);
      if (server === undefined || !adjusted.includes(server.key)) continue;
      instance.server = server;
      instance.backend.follow(rulesOf(server));
      if (server.child !== undefined) this.#supervisor.adjust({ ...this.#installer.completed(server.child), key: id });
    }
  }

  /** The same configuration as it would be read now, with what was missing in it and has been installed since. */
  completed(config: Config): Config {
    const servers = config.servers.map((server) => {
      const { child } = server;
      return child === undefined ? server : { ...server, child: this.#installer.completed(child) };
    });
    return { ...config, servers };
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
    if (child !== undefined) this.#supervisor.add({ ...this.#installer.completed(child), key: id });
    return {
      backend,
      start: () => {
        if (child !== undefined) this.#supervisor.start(id);
      },
      end: () => this.#end(id),
    };
  }

  /** Everything there is to know about a backend and the process behind it. */
  factsOf({ id }: Backend): Omit<ServerFacts, 'backend' | 'instances'> {
    const instance = this.#instances.get(id);
    return {
      lifecycle: instance?.server.child === undefined ? undefined : this.#supervisor.snapshot(id),
      problem: instance?.server.problem,
      logLines: instance?.log.lines ?? [],
      droppedLogLines: instance?.log.droppedLines ?? 0,
    };
  }

  restart(id: string): void {
    this.#supervisor.restart(id);
  }

  async stopAll(ladder: StopLadder): Promise<void> {
    await Promise.all([this.#supervisor.stopAll(ladder), this.#installer.close()]);
  }

  async #openInstaller(): Promise<PackageInstaller> {
    const { config, platform, packages } = this.#options;
    if (packages === undefined) throw new Error('there is no place to install to');
    const { openInstaller } = await import('./open-installer.js');
    const places = { ...packages, configFile: config.file };
    return openInstaller({ ...this.#options, clock: platform.clock, places }).installer;
  }

  async #end(id: string): Promise<void> {
    if (this.#instances.get(id)?.server.child !== undefined) await this.#supervisor.remove(id);
    this.#instances.delete(id);
    this.#logged.delete(id);
  }

  #know({ servers }: Config): void {
    this.#servers = new Map(servers.map((server) => [server.key, server]));
  }

  #createBackend(server: ServerConfig, id: string): Backend {
    const { key, child } = server;
    const { platform, waiting } = this.#options;
    return new Backend({
      ...rulesOf(server),
      key,
      id,
      clock: platform.clock,
      waiting,
      onFault: platform.faults.onFault,
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      isMisconfigured: child === undefined,
      demandStart: () => this.#supervisor.demand(id),
      retryInMs: () => (child === undefined ? undefined : this.#supervisor.retryInMs(id)),
    });
  }

  #log(id: string, { state, generation, pid, lastFailure, restarts, missing }: ChildSnapshot): void {
    const { logger } = this.#options;
    const isTrouble: LifecycleState[] = ['suspect', 'backoff', 'parked'];
    if (this.#logged.get(id) === state) return;
    this.#logged.set(id, state);
    const facts = { server: id, state, generation, pid, restarts, ...(missing && { package: missing }) };
    if (!isTrouble.includes(state)) logger.info(facts, `server ${state}`);
    else {
      const log = this.#instances.get(id)?.log.lines.slice(-20);
      const { reason, code, signal } = (state === 'suspect' ? undefined : lastFailure) ?? {};
      logger.warn({ ...facts, reason, code, signal, log }, `server ${state}`);
    }
  }
}

function rulesOf({ prefix, tools, methods, trusted, calls }: ServerConfig): BackendRules {
  return {
    prefix,
    limits: calls,
    policy: createToolPolicy(tools),
    answers: createToolPolicy({ allow: methods, deny: [] }),
    isTrusted: trusted,
  };
}
