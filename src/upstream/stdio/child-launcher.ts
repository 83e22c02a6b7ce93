import { dirname } from 'node:path';
import type { OrphanGuard } from '../../app/orphan-guard.js';
import type { Platform } from '../../app/platform.js';
import { withErrorBoundaryAsync } from '../../errors/error-boundary.js';
import type { Backend } from '../../gateway/registry/backend.js';
import { LineWriter } from '../../io/streams/line-writer.js';
import { readInto } from '../../io/streams/read-into.js';
import type { ClientProfile } from '../../mcp/client-profile.js';
import type { ChildLog } from '../../observe/child-log.js';
import type { Logger } from '../../observe/logger.js';
import { endGroup } from '../../process/end-group.js';
import { childEnvironment } from '../../process/environment.js';
import { type SpawnedChild, spawnChild } from '../../process/spawn-child.js';
import type { ChildSpec } from '../../supervision/child-spec.js';
import type { LaunchEvents, Launched, Launcher } from '../../supervision/launcher.js';
import { LivenessProbe } from '../health/liveness-probe.js';
import { answerLegacyServer, openLegacyConnection } from '../legacy/legacy-connection.js';
import { toServerRequest } from '../server-request.js';
import { type BridgeEvents, StdioBridge } from './stdio-bridge.js';

/** What a launch of one server needs besides its spec. */
export interface LaunchTarget {
  readonly backend: Backend;
  /** What the child is told of its client; it is greeted once that is known. */
  readonly profile: Promise<ClientProfile>;
  readonly log: ChildLog;
  readonly maxFrameBytes: number;
  readonly maxUnwrittenBytes: number;
}

export interface ChildLauncherOptions {
  readonly platform: Platform;
  readonly logger: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly orphanGuard: OrphanGuard;
  /** Clients come on a connection each, as they do over HTTP. */
  readonly hasManyConnections: boolean;
  /** By the ids of what is supervised. */
  readonly targets: ReadonlyMap<string, LaunchTarget>;
}

/** After an exit, what the child wrote last is read for this long; calls still open then are settled. */
const LAST_WORDS_MS = 80;

/**
 * Brings one generation of a child to life: spawns it, joins its pipes to a bridge, shakes hands, reads its lists, and
 * hands the connection to the backend. Only then is the child ready.
 */
export class ChildLauncher implements Launcher {
  readonly #options: ChildLauncherOptions;

  constructor(options: ChildLauncherOptions) {
    this.#options = options;
  }

  launch(spec: ChildSpec, generation: number, events: LaunchEvents): Launched {
    const { logger, platform, orphanGuard } = this.#options;
    const target = this.#target(spec.key);
    let hasExited = false;
    const giveUp = (reason: string) => {
      target.log.add(`Trunkline starts this server anew: ${reason}`);
      bridge.close('exited');
      events.unfit(reason);
    };
    const spawned = spawnChild(
      { ...spec, env: { ...this.#childEnvironment(spec), ...orphanGuard.beginning() } },
      {
        onSpawnError: (error) => {
          bridge.close('exited');
          target.log.add(error.message);
          events.failed({ reason: error.message, hostFault: error.isHostFault });
        },
        onExit: (exit) => {
          hasExited = true;
          this.#readLastWords(child, bridge);
          events.exited(exit);
        },
      },
    );
    if (spawned.pid === undefined) orphanGuard.notBegun();
    else orphanGuard.begun(spawned.pid);
    const { child, bridge } = this.#join(spawned, target, {
      silent: () => livenessProbe.begin(),
      offended: giveUp,
    });
    const livenessProbe = new LivenessProbe({
      clock: platform.clock,
      bridge,
      suspected: () => events.suspected(),
      cleared: () => events.cleared(),
      unresponsive: () => giveUp(UNRESPONSIVE),
    });
    logger.debug({ server: spec.key, generation, pid: child.pid }, 'spawned');
    if (child.pid !== undefined) this.#start(bridge, spec, generation, events);
    return {
      pid: child.pid,
      end: async (ladder) => {
        // After an exit the bridge closes by itself, when the last words were read.
        if (!hasExited) bridge.close('stopped');
        // The next generation must not begin while this one may still be at work.
        while (!(await endGroup(child, ladder, platform.clock)).gone) {
          logger.error({ server: spec.key, pid: child.pid }, 'a process of this server survives SIGKILL');
        }
        if (child.pid !== undefined) orphanGuard.gone(child.pid);
      },
    };
  }

  #target(key: string): LaunchTarget {
    const target = this.#options.targets.get(key);
    if (target === undefined) throw new Error(`No launch target for "${key}"`);
    return target;
  }

  #childEnvironment({ env }: ChildSpec): Record<string, string> {
    return childEnvironment({
      parent: this.#options.environment,
      declared: env,
      nodeDirectory: dirname(process.execPath),
      platform: process.platform,
    });
  }

  #join(
    spawned: SpawnedChild,
    { backend, log, maxFrameBytes, maxUnwrittenBytes }: LaunchTarget,
    conduct: Pick<BridgeEvents, 'silent' | 'offended'>,
  ): { readonly child: SpawnedChild; readonly bridge: StdioBridge } {
    const { clock, scan, backpressure, partialFrames, bufferPool, internalErrors } = this.#options.platform;
    const bridge: StdioBridge = new StdioBridge({
      clock,
      scan,
      // What was read from many connections leaves in one write; a single client need not wait for that.
      output: new LineWriter(spawned.stdin, this.#options.hasManyConnections ? setImmediate : undefined),
      maxFrameBytes,
      maxUnwrittenBytes,
      partialFrames,
      bufferPool,
      events: {
        ...conduct,
        fault: internalErrors.onInternalError,
        request: (request) => {
          if (!answerLegacyServer(bridge, request)) backend.serverRequest(toServerRequest(bridge, request));
        },
        notification: (notification) => backend.notification(notification),
        junk: (line, reason) =>
          log.add(`stdout (${reason}): ${new TextDecoder().decode(line.subarray(0, JUNK_BYTES))}`),
      },
    });
    const stdout = readInto(spawned.stdout, bridge);
    // Its exit follows, and only that counts.
    stdout.on('error', () => {});
    backpressure.add(stdout, backend.id);
    spawned.stderr.on('data', (chunk: Uint8Array) => log.write(chunk));
    spawned.stderr.once('close', () => log.end());
    return { child: { ...spawned, stdout }, bridge };
  }

  #start(bridge: StdioBridge, spec: ChildSpec, generation: number, events: LaunchEvents): void {
    const { onInternalError } = this.#options.platform.internalErrors;
    void withErrorBoundaryAsync(this.#shakeHands(bridge, spec, generation, events), onInternalError, () =>
      events.failed({ reason: 'a bug in Trunkline' }),
    );
  }

  async #shakeHands(bridge: StdioBridge, spec: ChildSpec, generation: number, events: LaunchEvents): Promise<void> {
    const { backend, profile: known } = this.#target(spec.key);
    const profile = await known;
    if (bridge.isClosed) return;
    events.began();
    const handshake = await openLegacyConnection(bridge, generation, profile, spec.timeouts.startMs);
    if (handshake.kind === 'failed') {
      events.failed({ reason: handshake.reason });
      return;
    }
    const fault = await backend.loadLists(handshake.connection);
    if (fault !== undefined) {
      events.failed({ reason: fault });
      return;
    }
    if (bridge.isClosed) return;
    backend.attach(handshake.connection);
    events.ready();
  }

  /** Answers may still be in the pipe. A grandchild that holds it open must not keep the callers waiting, though. */
  #readLastWords(child: SpawnedChild, bridge: StdioBridge): void {
    const { clock, backpressure } = this.#options.platform;
    backpressure.release(child.stdout);
    // The pipe may have been read to its end before the exit was noticed; then there is nothing to wait for.
    if (child.stdout.closed) {
      bridge.close('exited');
      return;
    }
    const cancel = clock.schedule(LAST_WORDS_MS, () => bridge.close('exited'));
    child.stdout.once('close', () => {
      cancel();
      bridge.close('exited');
    });
  }
}

const UNRESPONSIVE = 'it answered neither three requests in a row nor a ping nor tools/list';

/** How much of a line that is no message goes to the log. */
const JUNK_BYTES = 1024;
