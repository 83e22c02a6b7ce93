import { type ChildProcess, spawn } from 'node:child_process';
import type { Cancel, Clock } from '../timing/clock.js';
import { posixGuardian, WINDOWS_GUARDIAN } from './guardian-script.js';

/** The program of the guardian process. */
export interface GuardianProgram {
  readonly command: string;
  readonly args: readonly string[];
}

export interface GuardianOptions {
  readonly clock: Clock;
  /** Called when the guardian process cannot be started or has ended; once for a series of failures. */
  readonly onTrouble: (trouble: string) => void;
  readonly program?: GuardianProgram;
}

/** Delay before a restart of the guardian process; doubles with each failure in a row. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 60_000;
/** A guardian process that ran this long ends the series of failures. */
const STABLE_AFTER_MS = 10_000;
/** Far more than a working guardian process leaves unread. */
const MAX_UNREAD_BYTES = 64 * 1024;
/** A removal waits so long for others: the write wakes the guardian process, on the processor of the gateway. */
const REMOVAL_MS = 10;
/** How long `close` waits for a guardian process that has nothing left to do. */
const FAREWELL_MS = 300;

/**
 * Starts the guardian process and tells it the process groups and the marks of their families, so that no process outlives
 * the gateway, even when the gateway is killed: the guardian process, in its own session, reads a pipe from the gateway,
 * and ends all registered groups and families when the pipe closes.
 *
 * It starts before the first group and is restarted when it ends. No method but `close` waits for it, and none throws.
 */
export class Guardian {
  readonly #options: GuardianOptions;
  readonly #program: GuardianProgram;
  readonly #groups = new Set<number>();
  readonly #marks = new Set<string>();
  #process: ChildProcess | undefined;
  #startedAt = 0;
  #troubles = 0;
  /** Removals that the guardian process was not told yet. */
  #removals = '';
  #cancelRemovals: Cancel | undefined;
  /** Cancels the planned restart of the guardian process. */
  #cancelStart: Cancel | undefined;
  #isClosed = false;

  constructor(options: GuardianOptions) {
    this.#options = options;
    this.#program = options.program ?? guardianProgram(process.platform);
  }

  /** The pid of the guardian process while it runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /**
   * Must be called right before a process with this mark in its environment is spawned: if the gateway is killed before
   * `add`, the guardian process finds it by the mark.
   */
  addFamily(mark: string): void {
    this.#marks.add(mark);
    this.#tell(`+f${mark}\n`);
    this.#ensure();
  }

  /** Must be called when no process with this mark is left, or when they may outlive the gateway. */
  removeFamily(mark: string): void {
    this.#marks.delete(mark);
    this.#tellSoon(`-f${mark}\n`);
  }

  /** Must be called as soon as the group exists. */
  add(pgid: number): void {
    this.#groups.add(pgid);
    this.#tell(`+${pgid}\n`);
    this.#ensure();
  }

  /** Must be called when the group has ended: the system can reuse its id from then on. */
  remove(pgid: number): void {
    this.#groups.delete(pgid);
    this.#tellSoon(`-${pgid}\n`);
  }

  /** Ends the guardian process, which first ends what is still registered. Resolves within 300 ms. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelStart?.();
    this.#tell('');
    const guardian = this.#process;
    if (guardian === undefined) return;
    guardian.stdin?.end();
    // A guardian process that still ends processes must not delay the exit of the gateway.
    if (this.#isNeeded()) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.schedule(FAREWELL_MS, resolve);
      guardian.once('exit', () => {
        cancel();
        resolve();
      });
    });
  }

  #isNeeded(): boolean {
    return this.#groups.size + this.#marks.size > 0;
  }

  /** Starts the guardian process at once: a group that it does not know is lost when the gateway is killed. */
  #ensure(): void {
    if (this.#process === undefined && this.#cancelStart === undefined && !this.#isClosed) this.#start();
  }

  #tellSoon(lines: string): void {
    this.#removals += lines;
    this.#cancelRemovals ??= this.#options.clock.schedule(REMOVAL_MS, () => this.#tell(''));
  }

  /** Tells the removals first, because their ids can be in use again. */
  #tell(additions: string): void {
    const lines = this.#removals + additions;
    this.#removals = '';
    this.#cancelRemovals?.();
    this.#cancelRemovals = undefined;
    const { stdin } = this.#process ?? {};
    if (!stdin?.writable || lines === '') return;
    stdin.write(lines);
    // A guardian process that does not read is useless; it is killed and restarted.
    if (stdin.writableLength > MAX_UNREAD_BYTES) this.#process?.kill('SIGKILL');
  }

  #start(): void {
    this.#startedAt = this.#options.clock.now();
    let guardian: ChildProcess;
    try {
      guardian = this.#spawn();
    } catch (error) {
      this.#recover(String(error));
      return;
    }
    this.#process = guardian;
    const ended = (reason: string) => {
      if (this.#process === guardian) this.#recover(reason);
    };
    guardian.on('error', (error) => ended(error.message));
    guardian.once('exit', (code, signal) => ended(signal ?? `exit code ${code}`));
    // Without free file descriptors there are no streams, only an `error` event. A broken pipe is followed by an exit.
    guardian.stdin?.on('error', () => {});
    guardian.unref();
  }

  #spawn(): ChildProcess {
    const { command, args } = this.#program;
    // What is known are arguments: on the pipe it would be lost when the gateway is killed right after this spawn.
    const known = [...[...this.#marks].map((mark) => `+f${mark}`), ...[...this.#groups].map((pgid) => `+${pgid}`)];
    return spawn(command, [...args, ...known], {
      // PATH is for `sleep`; Windows needs its whole environment to find programs.
      env: process.platform === 'win32' ? process.env : { PATH: `${process.env.PATH ?? ''}:/usr/bin:/bin` },
      cwd: '/',
      // The guardian process inherits nothing but the pipe.
      stdio: ['pipe', 'ignore', 'ignore'],
      // A session of its own: Ctrl-C and signals to the gateway's group do not reach it.
      detached: true,
      windowsHide: true,
    });
  }

  #recover(reason: string): void {
    this.#process = undefined;
    if (this.#isClosed) return;
    if (this.#options.clock.now() - this.#startedAt >= STABLE_AFTER_MS) this.#troubles = 0;
    if (this.#troubles === 0) this.#options.onTrouble(reason);
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#troubles, LONGEST_PAUSE_MS);
    this.#troubles += 1;
    this.#cancelStart = this.#options.clock.schedule(pauseMs, () => {
      this.#cancelStart = undefined;
      if (this.#isNeeded()) this.#start();
    });
  }
}

/** The program for a platform, as in `process.platform`. What is registered is added after its last argument, the pid. */
export function guardianProgram(platform: string): GuardianProgram {
  const owner = ['trunkline-guardian', String(process.pid)];
  if (platform === 'win32') return { command: process.execPath, args: ['-e', WINDOWS_GUARDIAN, ...owner] };
  const shell = platform === 'android' ? '/system/bin/sh' : '/bin/sh';
  return { command: shell, args: ['-c', posixGuardian(platform), ...owner] };
}
