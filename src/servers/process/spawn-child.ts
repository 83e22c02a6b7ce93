import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { Server } from 'node:net';
import { delimiter, resolve } from 'node:path';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { execa } from 'execa';
import { errorCode } from '../../host/errors/error-text.js';
import { HAS_GROUPS } from '../../host/process/processes.js';
import type { ChildExit } from '../../spec/launch.js';
import type { Program } from '../../spec/server-spec.js';

/** Program to run. `env` is the child's whole environment, because it inherits nothing. */
export interface SpawnRequest extends Program {
  /** Whether the command is a line for the shell of the system. */
  readonly isShell?: boolean;
  /** Contents that the program reads from the descriptors 3, 4 and so on. */
  readonly inputs?: readonly Uint8Array[];
  /**
   * Takes the listening socket that the program sends over Node's IPC channel. The descriptor of the channel follows those of
   * `inputs`. The first message closes the channel.
   */
  readonly onListener?: (listener: Server) => void;
}

/** Exactly one of these is called, once, and never before `spawnChild` has returned. */
export interface SpawnListeners {
  onSpawnError(error: SpawnError): void;
  /** The leader has ended. There can be unread output, and other processes of the group can still run. */
  onExit(exit: ChildExit): void;
}

/** A running child, the leader of its own process group. */
export interface SpawnedChild {
  /** The pid of the leader and id of the group; undefined when nothing was spawned. */
  readonly pid: number | undefined;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when `onExit` is called, or without code and signal when `onSpawnError` is called. Never rejects. */
  readonly exit: Promise<ChildExit>;
}

/** The exit code of cmd.exe for a command that does not exist. Exit codes of other systems have eight bits, so none is this one. */
const NOT_FOUND_BY_CMD = 9009;

/** Starts a process, such as that of a server or of npm. Never throws. */
export function spawnChild(request: SpawnRequest, { onSpawnError, onExit }: SpawnListeners): SpawnedChild {
  const { subprocess, failure } = spawnProcess(request);
  const { pid, stdin, stdout, stderr } = subprocess ?? closedStreams();
  // Without a listener, the error of a broken pipe would end the gateway.
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {});
  const exit = new Promise<ChildExit>((resolve) => {
    const onFailed = (cause: unknown) => {
      onSpawnError(toSpawnError(cause, request));
      resolve({ code: null, signal: null });
    };
    const onEnded = (childExit: ChildExit) => {
      onExit(childExit);
      resolve(childExit);
    };
    const onMissing = () => onFailed(Object.assign(new Error('not found'), { code: 'ENOENT' }));
    // Not `close`, because a grandchild that keeps stdout open would delay it.
    subprocess?.on('exit', (code, signal) => {
      if (code === NOT_FOUND_BY_CMD || (code === 1 && !HAS_GROUPS && isMissing(request))) onMissing();
      else onEnded({ code, signal });
    });
    void failure?.then(onFailed);
  });
  return { pid, stdin, stdout, stderr, exit };
}

/**
 * Whether Windows does not find a command. cmd.exe can end with exit code 1 for such a command, as many programs do after a
 * failure, so this looks where cmd.exe looks, synchronously, because the pipes of the process are closed by now.
 */
export function isMissing({ command, cwd, env, isShell = false }: SpawnRequest): boolean {
  if (isShell) return false;
  const folders = /[\\/]/.test(command) ? ['.'] : ['.', ...(env.PATH ?? '').split(delimiter)];
  const endings = ['', ...(env.PATHEXT ?? '.COM;.EXE;.BAT;.CMD').split(';')];
  return folders.every((folder) => endings.every((ending) => !existsSync(resolve(cwd, folder, command + ending))));
}

interface Spawning {
  readonly subprocess?: ReturnType<typeof start>;
  /** Resolves with the cause if nothing was spawned. */
  readonly failure?: Promise<unknown>;
}

function spawnProcess(request: SpawnRequest): Spawning {
  let created: ChildProcess | undefined;
  const onCreated = (message: unknown) => {
    created = (message as { process: ChildProcess }).process;
  };
  subscribe('child_process', onCreated);
  try {
    const subprocess = start(request);
    // execa compares the working folder with that of this process. It rejects if the latter was removed, such as that of a repository.
    const ended = subprocess.then(
      ({ cause }) => cause,
      (error: unknown) => error,
    );
    return subprocess.pid === undefined ? { failure: ended } : { subprocess };
  } catch (error) {
    // Without a free file descriptor, Node creates no streams and emits the error in the next tick. execa expects streams, so
    // it throws another error before.
    return {
      failure: created === undefined ? Promise.resolve(error) : once(created, 'error').then(([cause]) => cause),
    };
  } finally {
    unsubscribe('child_process', onCreated);
  }
}

function start({ command, args, cwd, env, isShell = false, inputs = [], onListener }: SpawnRequest) {
  const subprocess = execa(command, args, {
    cwd,
    env,
    extendEnv: false,
    stdio: ['pipe', 'pipe', 'pipe', ...inputs],
    ipc: onListener !== undefined,
    shell: isShell,
    // A session of its own, so that the group can be signaled as a whole and Ctrl-C in a terminal does not reach it.
    detached: HAS_GROUPS,
    buffer: false,
    cleanup: false,
    reject: false,
  });
  // Stays for the life of the process, because an `error` event without a listener would crash the gateway.
  subprocess.on('error', () => {});
  if (onListener !== undefined) takeListener(subprocess, onListener);
  return subprocess;
}

function takeListener(subprocess: ChildProcess, onListener: (listener: Server) => void): void {
  subprocess.once('message', (_, handle) => {
    subprocess.disconnect();
    if (handle instanceof Server) onListener(handle);
  });
}

/** Closed streams, for a process that has no pipes to this one. */
export function closedStreams() {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  for (const stream of [stdin, stdout, stderr]) stream.destroy();
  return { pid: undefined, stdin, stdout, stderr };
}

/** The host is out of file descriptors, processes or memory. A later attempt can succeed. */
const HOST_FAULTS = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM']);

/** A process that could not be started. `code` is the name of the system error, such as `ENOENT`. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError';
  readonly code: string;
  /** The host is out of resources; the command and its configuration are not the cause. */
  readonly isHostFault: boolean;

  constructor(code: string, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
    this.isHostFault = HOST_FAULTS.has(code);
  }
}

/** Explains why a process could not be started. The system reports a missing working folder as a missing command. */
function toSpawnError(cause: unknown, { command, label = command, cwd }: SpawnRequest): SpawnError {
  const code = errorCode(cause) ?? 'UNKNOWN';
  const prefix = `Cannot start "${label}"`;
  const known = isDirectory(cwd) ? EXPLAINED[code] : 'the folder to run it in does not exist';
  const isTooLong = !HAS_GROUPS && cwd.length > LONGEST_FOLDER_ON_WINDOWS;
  const reason = isTooLong
    ? `\`cwd\` has ${cwd.length} characters, and Windows takes ${LONGEST_FOLDER_ON_WINDOWS}`
    : (known ?? (cause instanceof Error ? cause.message : 'the system refused'));
  return new SpawnError(code, `${prefix}: ${reason} (${code})`, cause);
}

/** The longest working folder in which Windows starts a program, in characters, although files may have longer paths. */
const LONGEST_FOLDER_ON_WINDOWS = 258;

const EXPLAINED: Readonly<Record<string, string>> = {
  // The system reports the same error for a script whose interpreter is missing.
  ENOENT: 'the command, or the interpreter it needs, was not found',
  EACCES: 'it may not be executed',
  // macOS also reports this for a folder, such as Documents, that it keeps from the program.
  EPERM: `it may not be executed${process.platform === 'darwin' ? ', or macOS keeps the folder to run it in from this program' : ''}`,
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  EAGAIN: 'too many processes are running',
  ENOMEM: 'the system is out of memory',
};

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing, or not accessible.
    return false;
  }
}
