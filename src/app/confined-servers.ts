import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { userConfigFile } from '../config/file/find-config.js';
import type { Config } from '../config/resolve/config.js';
import type { Logger } from '../host/observe/logger.js';
import { foldersOfHubs } from '../hub/hub-folder.js';
import type { ConfinementPlaces, Trial } from '../servers/sandbox/confined-launch.js';
import { describeSandboxRefusal, proxyRemark, Refusals } from '../servers/sandbox/refusals.js';
import type { ChildSpec, SandboxSpec } from '../spec/server-spec.js';
import { sandboxFolder, userDataFolder, userHubsFolder } from '../state/user-files.js';
import type { StdioDialer } from '../upstream/stdio/stdio-dialer.js';
import {
  type Dialed,
  type Dialer,
  type DialTarget,
  dialLater,
  type UpstreamListener,
} from '../upstream/upstream-connection.js';
import type { Clock } from '../wire/timing/clock.js';

type Variables = Readonly<Record<string, string | undefined>>;

/** The home folders of confined servers, and Trunkline's own files, which stay closed for all of them. */
export function confinementPlaces({ file, envFiles, gateway }: Config, env: Variables): ConfinementPlaces {
  const home = env.HOME || homedir();
  const configs = dirname(userConfigFile({ env, home, platform: process.platform }));
  const { sealKeyFile, secretFolder, record, http, cluster } = gateway;
  const { tokens, variables } = http.auth ?? {};
  const { storePasswordFile, storeCaFile } = cluster ?? {};
  const ofGateway = [sealKeyFile, secretFolder, record, tokens, variables, storePasswordFile, storeCaFile];
  const named = [...envFiles, ...ofGateway.filter((path) => path !== undefined)];
  const closed = [configs, userDataFolder(), ...foldersOfHubs(userHubsFolder()), ...named];
  return { folder: sandboxFolder(), home, configFile: file, closed };
}

type ConfinedSpec = ChildSpec & { readonly sandbox: SandboxSpec };

/** Whether a server may only run confined. */
export function isConfined(spec: ChildSpec): spec is ConfinedSpec {
  return spec.sandbox !== undefined;
}

export interface ConfinementOptions {
  /** A launch that finds out the needs of a server. Absent unless the person wants one. */
  readonly trial?: Trial | undefined;
  readonly config: () => Config;
}

interface ConfinedDialerOptions extends ConfinementOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Starts servers confined, or not at all. Loads the code with the first of them, because most gateways have none. */
export class ConfinedDialer implements Dialer<ChildSpec> {
  readonly #stdio: { readonly dial: StdioDialer['dial'] };
  readonly #options: ConfinedDialerOptions;
  readonly #refusals = new Refusals();
  /** The latest sentences about places that stay closed, because a server could have opened them for itself; by the key of the server. */
  readonly #distrusted = new Map<string, readonly string[]>();

  constructor(stdio: { readonly dial: StdioDialer['dial'] }, options: ConfinedDialerOptions) {
    this.#stdio = stdio;
    this.#options = options;
  }

  /** Sentences about refusals of the sandbox, about places that stay closed, and about a Node that ignores the proxy. */
  remarksOn(spec: ConfinedSpec): readonly string[] {
    const remark = proxyRemark(spec, spec.sandbox.network.length > 0);
    const distrusted = this.#distrusted.get(spec.key) ?? [];
    return [
      ...(remark === undefined ? [] : [remark]),
      ...distrusted,
      ...this.#refusals.of(spec.sandbox).map(describeSandboxRefusal),
    ];
  }

  /** A sentence about refusals since `at`, including a refused write that `error` is about; `undefined` if there was none. */
  refusedSince({ sandbox }: ConfinedSpec, at: number, error: string): string | undefined {
    this.#refusals.noteWrite(sandbox, error, this.#options.clock.now());
    return this.#refusals.since(sandbox, at);
  }

  dial(target: DialTarget<ChildSpec>, listener: UpstreamListener): Dialed {
    return dialLater(async (isEnded) => {
      const confined = await this.#prepare(target);
      if (confined.kind === 'refused') {
        target.log.add(confined.reason);
        return { ...confined, kind: 'failed' };
      }
      if (isEnded()) {
        confined.close();
        return { kind: 'failed', reason: 'stopped', fault: 'host' };
      }
      const closed: UpstreamListener['closed'] = (exit) => {
        confined.close();
        listener.closed(exit);
      };
      return this.#stdio.dial(target, { ...listener, closed }, confined.confine);
    });
  }

  async #prepare({ spec, log }: DialTarget<ChildSpec>) {
    if (!isConfined(spec)) throw new Error(`The server "${spec.key}" is not to be confined`);
    const { config, environment, trial } = this.#options;
    const { confineLaunch } = await import('../servers/sandbox/confined-launch.js');
    const confined = await confineLaunch(spec, {
      environment,
      ...(trial && { trial }),
      places: confinementPlaces(config(), environment),
      onRefused: (target, reason) => this.#refused(spec, log, target, reason),
    });
    const distrusted = confined.kind === 'ready' ? confined.policy.distrusted : [];
    if (distrusted.length > 0) this.#distrusted.set(spec.key, distrusted);
    else this.#distrusted.delete(spec.key);
    for (const remark of distrusted) {
      this.#options.logger.warn({ server: spec.key, remark }, 'the sandbox keeps a place closed');
      log.add(remark);
    }
    return confined;
  }

  /** Reports a name to which the sandbox refuses connections, in the log and in the output of the server. */
  #refused({ sandbox }: ConfinedSpec, log: DialTarget['log'], target: string, reason: string): void {
    const { clock, logger } = this.#options;
    const refusal = this.#refusals.note(sandbox, { target, reason, at: clock.now() });
    if (refusal === undefined) return;
    logger.warn({ server: sandbox.server, target: refusal.target, reason }, 'the sandbox refused a connection');
    log.add(describeSandboxRefusal(refusal));
  }
}
