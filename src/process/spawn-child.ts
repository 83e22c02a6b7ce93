import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { execa } from 'execa';
import type { ChildSpec } from '../supervision/child-spec.js';
import type { ChildExit } from '../supervision/launcher.js';
import { type SpawnError, toSpawnError } from './spawn-error.js';

/** What to run. `env` is the child's whole environment: nothing is inherited. */
export type SpawnRequest = Pick<ChildSpec, 'command' | 'label' | 'args' | 'cwd' | 'env'>;

/** Exactly one of these is called, once, and never before `spawnChild` has returned. */
export interface SpawnListeners {
  onSpawnError(error: SpawnError): void;
  /** The leader ended. Its output may still hold unread bytes, and members of its group may live on. */
  onExit(exit: ChildExit): void;
}

/** A running child, which leads a process group of its own. */
export interface SpawnedChild {
  /** The leader's pid, which is the group's id too; absent when nothing was spawned. */
  readonly pid: number | undefined;
  readonly stdin: Writable;
  /** Bytes, flowing from the next turn of the event loop: listen in the tick of the spawn or lose the beginning. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when `onExit` is called; without code and signal when nothing was spawned. Never rejects. */
  readonly exit: Promise<ChildExit>;
}

/** Starts a process: the one place where Trunkline does so for a child. Never throws. */
export function spawnChild(request: SpawnRequest, { onSpawnError, onExit }: SpawnListeners): SpawnedChild {
  const { subprocess, failure } = spawnWithExeca(request);
  const { pid, stdin, stdout, stderr } = subprocess ?? closedStreams();
  // A broken pipe is followed by an exit, and only the exit counts.
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {});
  const exit = new Promise<ChildExit>((resolve) => {
    // The process's own `exit`, since a grandchild that holds stdout keeps `close` and execa's promise waiting.
    subprocess?.on('exit', (code, signal) => {
      const childExit = { code, signal };
      onExit(childExit);
      resolve(childExit);
    });
    void failure?.then((cause) => {
      onSpawnError(toSpawnError(cause, request));
      resolve({ code: null, signal: null });
    });
  });
  return { pid, stdin, stdout, stderr, exit };
}

function runWithExeca({ command, args, cwd, env }: SpawnRequest) {
  return execa(command, args, {
    cwd,
    env,
    extendEnv: false,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    // Otherwise execa keeps up to 100 million characters of each stream, and then ends the child.
    buffer: false,
    reject: false,
    // A session of its own, so that the group can be signalled as one and a terminal's Ctrl-C does not reach it.
    detached: process.platform !== 'win32',
    windowsHide: true,
    cleanup: false,
  });
}

interface Spawning {
  readonly subprocess?: ReturnType<typeof runWithExeca>;
  /** Resolves with the cause when nothing was spawned. */
  readonly failure?: Promise<unknown>;
}

/**
 * Without descriptors left, Node's process has no streams and reports EMFILE in the next tick. execa 9.6 throws a
 * TypeError over the lack of streams, so that the report would find no listener and end us. The diagnostics channel
 * hands out the process before execa sees it.
 */
function spawnWithExeca(request: SpawnRequest): Spawning {
  let failure: Promise<unknown> | undefined;
  const listen = (message: unknown) => {
    const { process: created } = message as { process: ChildProcess };
    // Stays for good: an `error` that nobody listens for would end us.
    failure = new Promise((resolve) => {
      created.on('error', resolve);
    });
  };
  subscribe('child_process', listen);
  try {
    const subprocess = runWithExeca(request);
    if (subprocess.pid !== undefined) return { subprocess };
    // Some causes are thrown by Node and never emitted; execa's result holds both kinds.
    return { subprocess, failure: subprocess.then(({ cause }) => cause) };
  } catch (error) {
    return { failure: failure ?? Promise.resolve(error) };
  } finally {
    unsubscribe('child_process', listen);
  }
}

function closedStreams(): Omit<SpawnedChild, 'exit'> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  for (const stream of [stdin, stdout, stderr]) stream.destroy();
  return { pid: undefined, stdin, stdout, stderr };
}
