import type { Readable, Writable } from 'node:stream';
import type { OnInternalError } from '../../host/errors/internal-error.js';
import type { EventSink } from '../../host/observe/events/events.js';
import type { Logger } from '../../host/observe/logger.js';
import { endGroup } from '../../servers/process/end-group.js';
import { environmentOf, familyVariable } from '../../servers/process/environment.js';
import { endFamily, type FamilyEnd } from '../../servers/process/family.js';
import type { GroupGuard } from '../../servers/process/orphan-guard.js';
import type { ResourceWatch } from '../../servers/process/resource-watch.js';
import { type SpawnedChild, type SpawnRequest, spawnChild } from '../../servers/process/spawn-child.js';
import type { StopLadder } from '../../spec/launch.js';
import type { ChildSpec } from '../../spec/server-spec.js';
import type { MessageFeed } from '../../wire/io/message-feed.js';
import type { Backpressure } from '../../wire/io/streams/backpressure.js';
import { LineWriter } from '../../wire/io/streams/line-writer.js';
import { readInto, watchReader } from '../../wire/io/streams/read-into.js';
import { FloodBound, type FloodQueue, TurnReader } from '../../wire/io/streams/turn-reader.js';
import type { EndedBecause } from '../../wire/mcp/outcome.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { Bridge } from '../channel/bridge.js';
import type { SharedReading } from '../channel/message-reader.js';
import { type Dialect, openConnection } from '../dialect.js';
import { type HealthEvents, LivenessProbe } from '../health/health-monitor.js';
import type {
  Dialed,
  Dialer,
  DialOutcome,
  DialTarget,
  UpstreamConnection,
  UpstreamListener,
} from '../upstream-connection.js';

/*
 * Communication with a server over stdio, for one launch:
 *
 * 1. `dial` starts the program (`spawn-child.ts`) in a process group of its own, with a mark in its environment. The mark finds
 *    the processes that leave the group (`LaunchedFamily`), and the guardian ends them if the gateway is killed.
 * 2. `joinPipes` gives stdin to a `LineWriter`, and stdout to the reader of a `Bridge` (`message-reader.ts`). The bridge gives each request
 *    an id and a deadline, settles it once (`outgoing-requests.ts`), and lets messages wait while the server does not read. stderr goes to
 *    the log of the server.
 * 3. The dialect of the era performs the handshake over the bridge, and makes the connection that the gateway uses.
 * 4. A server that floods is read in turns, and one that answers nothing is probed (`health-monitor.ts`). A server that closes a
 *    pipe (`watchPipes`) or exceeds a limit is given up: `giveUp` closes the bridge, and the supervisor ends the launch.
 * 5. After an exit, the rest of stdout is read for 80 ms. Then the bridge fails the requests in flight. `end` ends the group and
 *    the family.
 */

export interface StdioDialerOptions extends JoinOptions, FamilyOptions {
  readonly dialect: Dialect;
  readonly resources: ResourceWatch;
  /** The gateway's own environment. Servers get only the variables of an allowlist. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Time for which the output is read after an exit. Requests that are then still in flight fail. */
const LAST_OUTPUT_MS = 80;
const UNRESPONSIVE = 'it answered neither three requests in a row nor a ping nor tools/list';
const ENDLESS = 'for a minute it wrote more than Trunkline can read, without answering anything';
/** Shortest total pause that the log mentions after a failed start, because it may be the reason, in milliseconds. */
const NOTABLE_PAUSE_MS = 1_000;

/** Connects to servers by spawning them: one process group for each connection, with a `Bridge` on its pipes. */
export class StdioDialer implements Dialer<ChildSpec> {
  readonly #options: StdioDialerOptions;

  constructor(options: StdioDialerOptions) {
    this.#options = options;
  }

  /** `confine` changes the request to start the program into one that confines it. */
  dial(
    target: DialTarget<ChildSpec>,
    listener: UpstreamListener,
    confine: (request: SpawnRequest) => SpawnRequest = (request) => request,
  ): Dialed {
    const { clock, logger, resources, environment } = this.#options;
    const { spec, generation, log, limits = () => ({}) } = target;
    const family = new LaunchedFamily(this.#options, target);
    let hasExited = false;
    let reportSpawnFailure: (failure: DialOutcome) => void = () => {};
    const spawnFailure = new Promise<DialOutcome>((resolve) => {
      reportSpawnFailure = resolve;
    });
    const giveUp = (because: EndedBecause) => {
      closedPipes.end();
      bridge.close('exited', because);
      listener.unfit(because);
    };
    const closedPipes = watchPipes(clock, giveUp);
    const request = confine({ ...spec, env: { ...environmentOf(spec, environment), ...family.variable } });
    const spawned = spawnChild(request, {
      onSpawnError: ({ message, isHostFault }) => {
        // Comes first, because it says more than the end of the bridge. On Windows, cmd.exe runs before a command turns out to be missing.
        reportSpawnFailure({ kind: 'failed', reason: message, fault: isHostFault ? 'host' : 'server' });
        closedPipes.end();
        bridge.close('exited');
        log.add(message);
      },
      onExit: (exit) => {
        hasExited = true;
        drain();
        closedPipes.end();
        this.#readLastOutput(child, bridge);
        listener.closed(exit);
      },
    });
    family.started(spawned);
    const { pid } = spawned;
    const unwatch = pid === undefined ? () => {} : resources.add({ pid, limits, onExceeded: giveUp });
    const { pipes, bridge, flood, drain } = joinPipes(spawned, target, listener, this.#options, {
      silent: () => livenessProbe.start(),
      violated: giveUp,
      pipeClosed: closedPipes.closed,
    });
    const child = { ...spawned, ...pipes };
    let opened: UpstreamConnection | undefined;
    const livenessProbe = new LivenessProbe({
      clock,
      connection: bridge,
      request: (...request) => (opened ?? bridge).request(...request),
      suspected: () => listener.suspected(),
      cleared: () => listener.cleared(),
      unresponsive: () => giveUp(UNRESPONSIVE),
    });
    const open = async () => {
      const outcome = await openConnection(this.#options.dialect, bridge, target, listener);
      opened = outcome.kind === 'open' ? outcome.connection : undefined;
      // The status shows only the pauses of open connections, so the log tells of this one.
      if (opened === undefined && flood.pausedMs >= NOTABLE_PAUSE_MS) log.add(describeFlood(flood.pausedMs));
      return outcome;
    };
    logger.debug({ server: spec.key, generation, pid: child.pid }, 'spawned');
    return {
      pid: child.pid,
      connection: child.pid === undefined ? spawnFailure : Promise.race([spawnFailure, open()]),
      end: async (ladder) => {
        closedPipes.end();
        unwatch();
        // After an exit the bridge closes by itself, once the last output is read.
        if (!hasExited) bridge.close('stopped');
        await family.end(child, ladder);
      },
    };
  }

  /** Reads the answers that are still in the pipe, for a short time, because a grandchild may hold the pipe open. */
  #readLastOutput({ stdout }: SpawnedChild, bridge: Bridge): void {
    const { clock, backpressure } = this.#options;
    backpressure.release(stdout);
    // The pipe may have been read to its end before the exit was noticed.
    if (stdout.closed) {
      bridge.close('exited');
      return;
    }
    const cancel = clock.schedule(LAST_OUTPUT_MS, () => bridge.close('exited'));
    stdout.once('close', () => {
      cancel();
      bridge.close('exited');
    });
  }
}

interface ServerPipes {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

interface JoinOptions extends SharedReading {
  /** Queue that all flooding servers share. */
  readonly floods: FloodQueue;
  readonly backpressure: Backpressure;
  readonly messages: MessageFeed;
  /** Whether each client has its own connection to Trunkline, as over HTTP. */
  readonly hasManyConnections: boolean;
  readonly onInternalError: OnInternalError;
}

interface Joined {
  /** The pipes to use from now on. */
  readonly pipes: ServerPipes;
  readonly bridge: Bridge;
  readonly flood: FloodBound;
  /** Reads the rest of the output without pauses. */
  readonly drain: () => void;
}

/** Joins the pipes of a server to a new bridge. Call it in the tick of the spawn, or the first output is lost. */
export function joinPipes(
  spawned: ServerPipes,
  { spec, generation, log, maxFrameBytes, maxUnwrittenBytes }: DialTarget<ChildSpec>,
  listener: UpstreamListener,
  options: JoinOptions,
  { pipeClosed, ...health }: HealthEvents & { pipeClosed(pipe: 'stdin' | 'stdout'): void },
): Joined {
  const { clock, scan, unfinishedLines, bufferPool } = options;
  const { backpressure, messages, hasManyConnections, onInternalError } = options;
  const connection = { number: messages.nextConnection(), server: spec.key, generation };
  const stdin = watchReader(spawned.stdin);
  stdin.on('error', () => pipeClosed('stdin'));
  const flood = new FloodBound(options.floods, () => health.violated(ENDLESS));
  const bridge = new Bridge({
    clock,
    scan,
    // With many connections, one write has the requests of one turn of the event loop. A single client does not wait.
    output: new LineWriter(stdin, hasManyConnections ? setImmediate : undefined),
    maxFrameBytes,
    maxUnwrittenBytes,
    unfinishedLines,
    isPaused: () => stdout.isPaused(),
    bufferPool,
    flood,
    feed: { messages, connection },
    events: {
      ...health,
      fault: onInternalError,
      request: (request) => listener.request(request),
      notification: (notification) => listener.notification(notification),
      junk: (line, reason) => log.addJunk(line, reason),
    },
  });
  const reader = bridge.open();
  const turns = new TurnReader(reader, { stream: () => stdoutHold, clock, pace: flood.pace(reader) });
  const stdout = readInto(spawned.stdout, turns);
  stdout.on('error', () => pipeClosed('stdout'));
  stdout.once('end', () => pipeClosed('stdout'));
  const stdoutHold = backpressure.add(stdout, spec.key);
  const logTurns = new TurnReader(log.stderr, { stream: () => stderr, clock, pace: flood.pace(NEVER_USEFUL) });
  const stderr = readInto(spawned.stderr, logTurns);
  stderr.on('error', () => {});
  stderr.once('close', () => log.end());
  const drain = () => {
    turns.drain();
    logTurns.drain();
  };
  return { pipes: { stdin, stdout, stderr }, bridge, flood, drain };
}

const NEVER_USEFUL = { wasUseful: false };

function describeFlood(pausedMs: number): string {
  return `Trunkline did not read its output for ${Math.round(pausedMs / 1_000)} s in all, because it answers nothing`;
}

/**
 * Half of the wait for the exit of a process whose pipes are closed, because Node reports the exit some milliseconds later.
 * The wait is two timers, because Node can report the exit between them if the event loop was blocked.
 */
const HALF_WAIT_MS = 100;

const USELESS = {
  stdin: 'it closed its stdin and ran on, so no request could reach it',
  stdout: 'it closed its stdout and ran on, so it could not answer',
} as const;

/**
 * Detects a server that closes its stdin or its stdout and runs on, because it can no longer serve calls. An exit closes the
 * pipes too, and is reported instead of them. Reports only the first closed pipe, and none after `end`.
 */
export function watchPipes(clock: Clock, onUseless: (because: EndedBecause) => void) {
  let cancel: Cancel | undefined;
  return {
    closed: (pipe: keyof typeof USELESS): void => {
      cancel ??= clock.schedule(HALF_WAIT_MS, () => {
        cancel = clock.schedule(HALF_WAIT_MS, () => onUseless(USELESS[pipe]));
      });
    },
    /** The process has exited, or is being ended. */
    end: (): void => {
      cancel?.();
      cancel = () => {};
    },
  };
}

/** Most pids of processes outside of a server's group that one log line names. */
const SHOWN_PIDS = 10;

interface FamilyOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly orphanGuard: GroupGuard;
  readonly events: EventSink;
}

/** All processes of one launch of a server, which are its process group and its family. Ends them. */
class LaunchedFamily {
  /** Variable for the environment of the first process. */
  readonly variable: Readonly<Record<string, string>>;
  readonly #options: FamilyOptions;
  readonly #target: DialTarget<ChildSpec>;
  readonly #mark: string;
  #endsFamily = false;
  #isReported = false;

  /** Call this right before the launch. */
  constructor(options: FamilyOptions, target: DialTarget<ChildSpec>) {
    this.#options = options;
    this.#target = target;
    this.#mark = options.orphanGuard.announce();
    this.variable = familyVariable(this.#mark);
  }

  /** Call this in the tick of the spawn, even if the spawn failed. */
  started({ pid }: SpawnedChild): void {
    const { orphanGuard } = this.#options;
    this.#endsFamily = pid !== undefined && !this.#target.spec.leaveRunning;
    if (pid !== undefined) orphanGuard.add(pid, this.#endsFamily ? this.#mark : undefined);
    if (!this.#endsFamily) orphanGuard.release(this.#mark);
  }

  /** Ends all processes. Resolves when none is left, except those that cannot be ended. Never rejects. */
  async end(child: SpawnedChild, ladder: StopLadder): Promise<void> {
    const { clock, logger, orphanGuard } = this.#options;
    const { spec } = this.#target;
    const startedAt = clock.now();
    // The next generation must not start while a process of this one may still run.
    while (!(await endGroup(child, ladder, clock)).gone) {
      logger.error({ server: spec.key, pid: child.pid }, 'a process of this server survives SIGKILL');
    }
    if (child.pid !== undefined) orphanGuard.remove(child.pid);
    if (this.#endsFamily) {
      const killAfterMs = familyKillDelay(ladder, clock.now() - startedAt);
      const familyEnd = await endFamily(this.#mark, killAfterMs, clock);
      orphanGuard.release(this.#mark);
      if (!this.#isReported) this.#report(familyEnd);
      this.#isReported = true;
    }
  }

  #report({ signaled, gone }: FamilyEnd): void {
    const { logger, events } = this.#options;
    const { spec, generation } = this.#target;
    if (signaled.length > 0) events.emit({ kind: 'server.left-processes', server: spec.key, count: signaled.length });
    const facts = { server: spec.key, generation, count: signaled.length, pids: signaled.slice(0, SHOWN_PIDS) };
    if (!gone) {
      const causes = 'they survive SIGKILL, start others faster than Trunkline finds them, or cannot be searched for';
      logger.error(facts, `processes outside of the server's group may still run: ${causes}`);
    } else if (signaled.length > 0) {
      logger.info(facts, "ended processes outside of the server's group; `leaveRunning: true` would keep them");
    }
  }
}

/** Shortest time from SIGTERM to SIGKILL for a family, even if its group took all of the configured time. */
const MIN_KILL_DELAY_MS = 250;

/** Time from SIGTERM to SIGKILL for the family, after its group has ended. It is the configured time, or the rest of it. */
function familyKillDelay({ termAfterMs, killAfterMs }: StopLadder, elapsedMs: number): number {
  return Math.min(killAfterMs - termAfterMs, Math.max(killAfterMs - elapsedMs, MIN_KILL_DELAY_MS));
}
