import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Cancel, Clock } from '../timing/clock.js';
import { POSIX_GUARDIAN, SPAWN_MARK, WINDOWS_GUARDIAN } from './guardian-script.js';

/** What to run as the helper. */
export interface GuardianProgram {
  readonly command: string;
  readonly args: readonly string[];
}

export interface GuardianOptions {
  readonly clock: Clock;
  /** Called when the helper cannot be started or has ended; once for a row of such troubles. */
  readonly onTrouble: (trouble: string) => void;
  readonly program?: GuardianProgram;
}

/** Before it is started anew; twice as long with each further trouble in a row. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 60_000;
/** A helper that lived as long as this was sound. */
const SOUND_AFTER_MS = 10_000;
/** Far more than waits for a helper that reads. */
const MAX_UNREAD_BYTES = 64 * 1024;
/** How long an orderly end waits for a helper that has nothing left to do. */
const FAREWELL_MS = 300;

/**
 * Sees to it that no group outlives us, however we end: a helper process, in a session of its own, holds a pipe to us
 * and ends all registered groups when that pipe closes.
 *
 * It is started before the first group, and started anew if it ends before us. Nothing of this ever fails or waits.
 */
export class Guardian {
  readonly #options: GuardianOptions;
  readonly #program: GuardianProgram;
  readonly #groups = new Set<number>();
  /** Tells our spawns from those of another gateway that had our pid. */
  readonly #id = `${process.pid}-${randomBytes(4).toString('hex')}`;
  #spawns = 0;
  /** What is being spawned, until its group is added. */
  #announced = '';
  #helper: ChildProcess | undefined;
  #startedAt = 0;
  #troubles = 0;
  /** Takes back a start that is to come. */
  #cancelStart: Cancel | undefined;
  #isClosed = false;

  constructor(options: GuardianOptions) {
    this.#options = options;
    this.#program = options.program ?? guardianProgram(process.platform);
  }

  /** The helper's, while it runs. */
  get pid(): number | undefined {
    return this.#helper?.pid;
  }

  /**
   * To be called right before a spawn. What is returned belongs into the environment of the process, by which the helper
   * finds it if we are killed before `add` or `retract` is called, in the same tick.
   */
  announce(): Readonly<Record<string, string>> {
    this.#spawns += 1;
    this.#announced = `${this.#id}-${this.#spawns}`;
    this.#ensure();
    this.#tell(`?${this.#announced}\n`);
    return { [SPAWN_MARK]: this.#announced };
  }

  /** What was announced could not be spawned. */
  retract(): void {
    this.#announced = '';
    this.#tell('?\n');
  }

  /** To be called as soon as the group exists. */
  add(pgid: number): void {
    this.#announced = '';
    this.#groups.add(pgid);
    this.#tell(`+${pgid}\n`);
    this.#ensure();
  }

  /** To be called when no member of the group is left: its number may be given to somebody else from now on. */
  remove(pgid: number): void {
    this.#groups.delete(pgid);
    this.#tell(`-${pgid}\n`);
  }

  /** Lets the helper go; groups that are still registered are then ended by it. Resolves soon. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelStart?.();
    const helper = this.#helper;
    if (helper === undefined) return;
    helper.stdin?.end();
    // While it has something to do, it must not hold us up.
    if (this.#groups.size > 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.schedule(FAREWELL_MS, resolve);
      helper.once('exit', () => {
        cancel();
        resolve();
      });
    });
  }

  /** At once, since a group that the helper does not know is lost if we are killed now. */
  #ensure(): void {
    if (this.#helper === undefined && this.#cancelStart === undefined && !this.#isClosed) this.#start();
  }

  #tell(lines: string): void {
    const { stdin } = this.#helper ?? {};
    if (!stdin?.writable) return;
    stdin.write(lines);
    // A helper that does not read is none.
    if (stdin.writableLength > MAX_UNREAD_BYTES) this.#helper?.kill('SIGKILL');
  }

  #start(): void {
    this.#startedAt = this.#options.clock.now();
    let helper: ChildProcess;
    try {
      helper = this.#spawn();
    } catch (error) {
      this.#recover(String(error));
      return;
    }
    this.#helper = helper;
    const ended = (reason: string) => {
      if (this.#helper === helper) this.#recover(reason);
    };
    helper.on('error', (error) => ended(error.message));
    helper.once('exit', (code, signal) => ended(signal ?? `exit code ${code}`));
    // Without descriptors left there are no streams, but an error. A pipe that is broken is followed by an exit.
    helper.stdin?.on('error', () => {});
    helper.unref();
  }

  #spawn(): ChildProcess {
    const { command, args } = this.#program;
    // What there is already goes along: on the pipe it would come too late if we were killed right after the spawn.
    const known = [...[...this.#groups].map((pgid) => `+${pgid}`), `?${this.#announced}`];
    return spawn(command, [...args, ...known], {
      // For `sleep`, wherever it is; Windows needs more to find anything.
      env: process.platform === 'win32' ? process.env : { PATH: `${process.env.PATH ?? ''}:/usr/bin:/bin` },
      cwd: '/',
      // Nothing of ours may stay open through it, but the pipe whose end tells it of ours.
      stdio: ['pipe', 'ignore', 'ignore'],
      // A session of its own: neither Ctrl-C nor a signal to our group reaches it.
      detached: true,
      windowsHide: true,
    });
  }

  #recover(reason: string): void {
    this.#helper = undefined;
    if (this.#isClosed) return;
    if (this.#options.clock.now() - this.#startedAt >= SOUND_AFTER_MS) this.#troubles = 0;
    if (this.#troubles === 0) this.#options.onTrouble(reason);
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#troubles, LONGEST_PAUSE_MS);
    this.#troubles += 1;
    this.#cancelStart = this.#options.clock.schedule(pauseMs, () => {
      this.#cancelStart = undefined;
      if (this.#groups.size > 0) this.#start();
    });
  }
}

/**
 * What runs as the helper on a platform, as `process.platform` has it. Its last argument says whose it is; what the
 * helper is to know from the beginning goes behind that.
 */
export function guardianProgram(platform: string): GuardianProgram {
  const owner = ['trunkline-guardian', String(process.pid)];
  if (platform === 'win32') return { command: process.execPath, args: ['-e', WINDOWS_GUARDIAN, ...owner] };
  const shell = platform === 'android' ? '/system/bin/sh' : '/bin/sh';
  return { command: shell, args: ['-c', POSIX_GUARDIAN, ...owner] };
}
