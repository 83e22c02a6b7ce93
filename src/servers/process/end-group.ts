import type { Readable } from 'node:stream';
import { errorCode } from '../../host/errors/error-text.js';
import { HAS_GROUPS, listPids, listProcesses, statFields } from '../../host/process/processes.js';
import { systemProgram } from '../../host/process/windows.js';
import type { StopLadder } from '../../spec/launch.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { processTrees } from './process-trees.js';
import type { SpawnedChild } from './spawn-child.js';

export interface GroupEnd {
  /** False when a process survived SIGKILL, for example because it is stuck in the kernel. */
  readonly gone: boolean;
}

/** Longest wait for the list of processes, because PowerShell may take long on a busy machine. A later list still counts for the family. */
const LIST_MS = 2_000;
/** Longest wait for the end of the group after SIGKILL. */
const CONFIRM_MS = 1_000;
/** Time limit for reading the last output after the group has ended. */
const DRAIN_MS = 250;
/** Pauses between two polls of the group, in milliseconds. Only the leader reports its exit, and most other processes end soon. */
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 100;

const endings = new WeakMap<SpawnedChild, GroupEnding>();

/**
 * Ends the process group of a child: closes stdin, sends SIGTERM, then SIGKILL, at the times of the ladder, and destroys the pipes.
 *
 * A second call joins the first one, and brings the signals forward if its times are shorter. Resolves at most one second after SIGKILL is
 * due, and 250 ms later if there is output to read. Never rejects. If the group is still alive, another call tries again.
 */
export function endGroup(child: SpawnedChild, ladder: StopLadder, clock: Clock): Promise<GroupEnd> {
  let ending = endings.get(child);
  if (ending === undefined) {
    ending = new GroupEnding(child, ladder, clock);
    endings.set(child, ending);
  } else {
    ending.hasten(ladder);
  }
  return ending.result;
}

/** The end of a group or of a family: steps with pauses between them, which `wake` cuts short. */
export abstract class Ending {
  protected readonly clock: Clock;
  #wake: () => void = () => {};

  constructor(clock: Clock) {
    this.clock = clock;
  }

  protected wake(): void {
    this.#wake();
  }

  protected pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.clock.schedule(delayMs, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

class GroupEnding extends Ending {
  readonly result: Promise<GroupEnd>;
  readonly #child: SpawnedChild;
  readonly #startedAt: number;
  #termAt: number;
  #killAt: number;
  #lastSignal: GroupSignal | undefined;
  #leaderExited = false;
  #pauseMs = FIRST_PAUSE_MS;

  constructor(child: SpawnedChild, { termAfterMs, killAfterMs }: StopLadder, clock: Clock) {
    super(clock);
    this.#child = child;
    this.#startedAt = clock.now();
    this.#termAt = this.#startedAt + termAfterMs;
    this.#killAt = this.#startedAt + killAfterMs;
    this.result = this.#run();
  }

  hasten({ termAfterMs, killAfterMs }: StopLadder): void {
    this.#termAt = Math.min(this.#termAt, this.#startedAt + termAfterMs);
    this.#killAt = Math.min(this.#killAt, this.#startedAt + killAfterMs);
    this.wake();
  }

  async #run(): Promise<GroupEnd> {
    await this.#list();
    this.#child.stdin.end();
    void this.#child.exit.then(() => {
      this.#leaderExited = true;
      this.wake();
    });
    while (!this.#isGone()) {
      const now = this.clock.now();
      if (now >= this.#killAt + CONFIRM_MS) {
        endings.delete(this.#child);
        this.#destroyPipes();
        return { gone: false };
      }
      if (now >= this.#killAt) this.#signal('SIGKILL');
      else if (now >= this.#termAt) this.#signal('SIGTERM');
      await this.pause(this.#nextPauseMs(now));
    }
    await this.#drain();
    this.#destroyPipes();
    return { gone: true };
  }

  /** Brings the tree up to date, because the children of a process cannot be assigned to it after its end. */
  async #list(): Promise<void> {
    const mark = processTrees.markOf(this.#child.pid);
    if (mark === undefined) return;
    const listed = listProcesses().then(
      (processes) => void processTrees.family(mark, processes),
      () => {},
    );
    await this.#within(LIST_MS, listed);
  }

  #isGone(): boolean {
    const { pid } = this.#child;
    return pid === undefined || (this.#leaderExited && !isGroupAlive(pid));
  }

  #signal(signal: GroupSignal): void {
    if (this.#child.pid === undefined || this.#lastSignal === signal) return;
    this.#lastSignal = signal;
    this.#pauseMs = FIRST_PAUSE_MS;
    signalGroup(this.#child.pid, signal);
  }

  /** Time until the next signal is due, or until the next poll of the group. */
  #nextPauseMs(now: number): number {
    const steps = [this.#termAt, this.#killAt, this.#killAt + CONFIRM_MS];
    const untilStepMs = Math.min(...steps.filter((at) => at > now)) - now;
    if (!this.#leaderExited) return untilStepMs;
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    return Math.min(pauseMs, untilStepMs);
  }

  /** Waits until the output is read. A process that left the group can keep the pipes open, so the wait is limited. */
  async #drain(): Promise<void> {
    const { stdout, stderr } = this.#child;
    await this.#within(DRAIN_MS, Promise.all([whenClosed(stdout), whenClosed(stderr)]));
  }

  async #within(limitMs: number, done: Promise<unknown>): Promise<void> {
    let cancel: Cancel = () => {};
    const overdue = new Promise<void>((resolve) => {
      cancel = this.clock.schedule(limitMs, resolve);
    });
    await Promise.race([overdue, done]);
    cancel();
  }

  #destroyPipes(): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const stream of [stdin, stdout, stderr]) stream.destroy();
  }
}

async function whenClosed(stream: Readable): Promise<void> {
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve));
}

type GroupSignal = 'SIGTERM' | 'SIGKILL';

/**
 * Sends a signal to every process of a group; does nothing when the group has ended.
 *
 * Windows has neither process groups nor signals for console programs: both signals end the process tree of the leader.
 */
export function signalGroup(pgid: number, signal: GroupSignal): void {
  if (!HAS_GROUPS) {
    void endTree(pgid);
    return;
  }
  try {
    process.kill(-pgid, signal);
  } catch {
    // ESRCH: the group has ended. EPERM: it belongs to another user. `isGroupAlive` tells them apart.
  }
}

async function endTree(pid: number): Promise<void> {
  const listed = await listProcesses().catch(() => undefined);
  const members = listed === undefined ? [] : processTrees.family(processTrees.markOf(pid), listed);
  for (const member of members) {
    try {
      process.kill(member.pid, 'SIGKILL');
    } catch {
      // It has ended, or belongs to another user.
    }
  }
  if (members.length > 0) return;
  // The tree is not followed, or the processes cannot be listed.
  const { execa } = await import('execa');
  await execa(systemProgram('taskkill'), ['/PID', String(pid), '/T', '/F'], { reject: false, stdio: 'ignore' });
}

/**
 * Whether a group has processes that still run. Zombies do not count, because in a container whose first process does not reap
 * orphans they stay forever.
 *
 * On Windows only the leader is checked, because the processes that it has started are found as its family.
 */
export function isGroupAlive(pgid: number): boolean {
  try {
    process.kill(HAS_GROUPS ? -pgid : pgid, 0);
  } catch (error) {
    // EPERM: there is a process, and it belongs to another user. On macOS, a group of zombies gives the same code.
    return errorCode(error) === 'EPERM' && process.platform !== 'darwin';
  }
  return process.platform !== 'linux' || hasLivingMember(pgid);
}

function hasLivingMember(pgid: number): boolean {
  try {
    // Starts with the highest pid, since a running group was most likely started recently.
    return listPids().findLast((pid) => isLivingMember(pid, pgid)) !== undefined;
  } catch {
    // /proc cannot be read (no free descriptors, not mounted): trust the kernel's answer to the signal.
    return true;
  }
}

function isLivingMember(pid: string, pgid: number): boolean {
  const [state, , pgrp] = statFields(pid);
  return Number(pgrp) === pgid && state !== 'Z' && state !== 'X';
}
