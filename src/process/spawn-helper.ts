import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync, unlinkSync } from 'node:fs';
import { Socket } from 'node:net';
import { constants as system, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, type Writable } from 'node:stream';
import type { ChildExit } from '../supervision/launcher.js';
import type { Cancel, Clock } from '../timing/clock.js';
import type { SpawnedChild, SpawnRequest } from './spawn-child.js';
import { POSIX_SPAWN_HELPER, toShellCommand } from './spawn-helper-script.js';

/** Where the helper finds `setsid`, `mkfifo`, `cat` and `rm`. */
const PATH = '/usr/bin:/bin:/usr/local/bin';
/** A process that is not running after this is given up. */
const START_MS = 5_000;
/** How long after the end of its output a process is looked at that has not reported its exit. */
const CHECK_MS = 1_000;
const { O_RDWR, O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;

/**
 * Starts processes by way of a small shell process, on Linux.
 *
 * Node forks to start a process, and holds the event loop meanwhile, for longer the more memory the gateway has.
 * The fork of a shell takes next to nothing, since a shell is small, and holds nobody up. The price is some milliseconds
 * before the process runs, and one more shell that waits for its end.
 */
export class SpawnHelper {
  readonly #clock: Clock;
  /** By ids. */
  readonly #starts = new Map<number, Start>();
  #helper: ChildProcess | undefined;
  /** Folder of the named pipes. */
  #root = '';
  /** Ids count up from 1. */
  #count = 0;
  #unread = '';
  #isClosed = process.platform !== 'linux';

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Starts a process. Resolves with `undefined` if the helper cannot do that. Nothing runs then, and the caller starts
   * the process itself. `onExit` is not called before.
   */
  async spawn(request: SpawnRequest, onExit: (exit: ChildExit) => void): Promise<SpawnedChild | undefined> {
    const command = toShellCommand(request);
    const stdin = command === undefined ? undefined : this.#stdin();
    if (command === undefined || stdin === undefined) return undefined;
    this.#count += 1;
    const id = this.#count;
    const start = new Start(this.#clock, join(this.#root, String(id)), onExit);
    this.#starts.set(id, start);
    stdin.write(`${id}\n${this.#lowestStarting()}\n${command.split('\n').length}\n${command}\n`);
    return await start.result;
  }

  #lowestStarting(): number {
    // In the order of the ids.
    for (const [id, { isStarting }] of this.#starts) if (isStarting) return id;
    return this.#count;
  }

  /** Ends the helper. Processes that it has started keep running. */
  close(): void {
    this.#isClosed = true;
    this.#helper?.stdin?.end();
    this.#helper?.stdout?.destroy();
    this.#giveUpAll();
    if (this.#root !== '') rmSync(this.#root, { recursive: true, force: true });
  }

  /** The stdin of the helper, which is started for the first process. */
  #stdin(): Writable | undefined {
    if (!this.#isClosed && this.#helper === undefined) this.#start();
    const stdin = this.#helper?.stdin;
    return !this.#isClosed && stdin?.writable === true ? stdin : undefined;
  }

  #start(): void {
    try {
      this.#root = mkdtempSync(join(tmpdir(), 'trunkline-spawn-'));
      const helper = spawn('/bin/sh', ['-c', POSIX_SPAWN_HELPER, 'trunkline-spawn', this.#root], {
        env: { PATH },
        cwd: '/',
        stdio: ['pipe', 'pipe', 'ignore'],
        // Ctrl-C and signals to the gateway's group do not reach it.
        detached: true,
      });
      this.#helper = helper;
      // Whatever has happened to the helper, nothing more can be asked of it, and what was asked is not waited for.
      const ended = () => {
        this.#isClosed = true;
        this.#giveUpAll();
      };
      helper.on('error', ended);
      helper.once('exit', ended);
      helper.stdin?.on('error', ended);
      helper.stdout?.setEncoding('utf8').on('data', (text: string) => this.#read(text));
      helper.unref();
    } catch {
      this.#isClosed = true;
    }
  }

  #giveUpAll(): void {
    for (const start of this.#starts.values()) start.giveUp();
  }

  #read(text: string): void {
    const lines = `${this.#unread}${text}`.split('\n');
    this.#unread = lines.pop() ?? '';
    for (const line of lines) {
      const [event, id, value] = line.split(' ');
      this.#starts.get(Number(id))?.told(event, Number(value));
      if (event === 'exit') this.#starts.delete(Number(id));
    }
  }
}

/** One process on its way, from the request to its exit. */
class Start {
  readonly result: Promise<SpawnedChild | undefined>;
  readonly #clock: Clock;
  /** Begins the names of its files. */
  readonly #path: string;
  readonly #onExit: (exit: ChildExit) => void;
  readonly #cancelTimeout: Cancel;
  #resolve: (child: SpawnedChild | undefined) => void = () => {};
  #pid: number | undefined;
  #isUp = false;
  #isSettled = false;
  #isGivenUp = false;
  /** The gateway's ends of the pipes. Of stdin, both ends until the process has opened it. */
  #files: number[] = [];
  #exited: (exit: ChildExit) => void = () => {};

  constructor(clock: Clock, path: string, onExit: (exit: ChildExit) => void) {
    this.#clock = clock;
    this.#path = path;
    this.#onExit = onExit;
    this.result = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#cancelTimeout = clock.schedule(START_MS, () => this.giveUp());
  }

  /** Whether its pipes are still to be opened. */
  get isStarting(): boolean {
    return !this.#isSettled;
  }

  /** The helper tells what has happened. `value` is a pid or an exit code. */
  told(event: string | undefined, value: number): void {
    if (event === 'made') this.#openPipes();
    else if (event === 'pid') this.#pid = value;
    else if (event === 'up') this.#isUp = true;
    if (event === 'exit') {
      this.#end(toExit(value));
      return;
    }
    if (this.#pid === undefined) return;
    // The caller has started another process by now.
    if (this.#isGivenUp) {
      kill(this.#pid);
      this.#removePidFile();
    } else if (this.#isUp) this.#settle(this.#pid);
  }

  /** Starts nothing, or kills what is started. */
  giveUp(): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#isGivenUp = true;
    if (this.#pid !== undefined) kill(this.#pid);
    this.#cleanUp();
    this.#resolve(undefined);
  }

  /** Opens the gateway's ends without waiting for the process. */
  #openPipes(): void {
    if (this.#isSettled) return;
    try {
      // A pipe with a reader only, or a writer only, would be at its end before the process has opened it.
      this.#files.push(openSync(`${this.#path}.in`, O_RDWR | O_NONBLOCK));
      this.#files.push(openSync(`${this.#path}.out`, O_RDONLY | O_NONBLOCK));
      this.#files.push(openSync(`${this.#path}.err`, O_RDONLY | O_NONBLOCK));
    } catch {
      this.giveUp();
    }
  }

  #settle(pid: number): void {
    if (this.#isSettled) return;
    const [both, out, err] = this.#files;
    if (both === undefined || out === undefined || err === undefined) return;
    this.#isSettled = true;
    const stdin = this.#openStdin();
    this.#files = [both];
    this.#cleanUp();
    const [stdout, stderr] = [out, err].map((fd) => new Socket({ fd, readable: true, writable: false }));
    if (stdout === undefined || stderr === undefined) throw new Error('two pipes were opened');
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {});
    let cancelCheck: Cancel = () => {};
    const exit = new Promise<ChildExit>((resolve) => {
      this.#exited = (childExit) => {
        this.#exited = () => {};
        cancelCheck();
        this.#onExit(childExit);
        resolve(childExit);
      };
    });
    // The shell that waits for the process may have been killed.
    stdout.once('close', () => {
      cancelCheck = this.#clock.schedule(CHECK_MS, () => isGone(pid) && this.#exited(NO_EXIT));
    });
    this.#resolve({ pid, stdin, stdout, stderr, exit, isStdinPlain: true });
  }

  /** The end for writing only: with both ends, a process that closes its stdin would go unnoticed. */
  #openStdin(): Socket | PassThrough {
    try {
      const fd = openSync(`${this.#path}.in`, O_WRONLY | O_NONBLOCK);
      return new Socket({ fd, readable: false, writable: true });
    } catch {
      // The process has closed it already.
      const closed = new PassThrough();
      closed.destroy();
      return closed;
    }
  }

  #end(exit: ChildExit): void {
    if (this.#isSettled) this.#exited(exit);
    else this.giveUp();
  }

  #cleanUp(): void {
    this.#cancelTimeout();
    for (const fd of this.#files.splice(0)) closeSync(fd);
    this.#removePidFile();
  }

  /** The helper would kill the process at its end, or another one that has the pid by then. */
  #removePidFile(): void {
    try {
      unlinkSync(`${this.#path}.pid`);
    } catch {
      // There is none yet, or the system has tidied up the folder of temporary files.
    }
  }
}

const NO_EXIT: ChildExit = { code: null, signal: null };

/** A shell reports the end by a signal as 128 and its number. */
function toExit(code: number): ChildExit {
  const signal = Object.entries(system.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? { code, signal: null } : { code: null, signal };
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
