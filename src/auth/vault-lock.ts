import { mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { errorCode } from '../errors/error-text.js';
import {
  claimSuccessor,
  fingerprint,
  fitsSocketPath,
  hubFiles,
  hubNumbers,
  latestHub,
  privateFolder,
} from '../hub/hub-folder.js';

/** Pause before connecting again to a holder whose queue of connections is full, in milliseconds. */
const BUSY_MS = 50;
/** Age from which a temporary file belongs to a process that was killed while it made a socket, in milliseconds. */
const LEFTOVER_MS = 60_000;

/**
 * Runs `work` while no other process of this machine holds the lock `name` of the vault, and resolves with its result.
 *
 * A listening socket is the lock, as it is for hubs (`claimSuccessor`). The kernel closes the socket when the holder dies, so
 * no pid and no time has to be compared. Each waiting process connects to the holder, and tries again when this connection
 * closes. Rejects when `signal` is aborted during the wait, and if no socket can be made.
 */
export async function withVaultLock<T>(
  vault: string,
  name: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const release = await (process.platform === 'win32'
    ? acquirePipe(vault, name, signal)
    : acquire(vault, name, signal));
  try {
    return await work();
  } finally {
    release();
  }
}

async function acquire(vault: string, name: string, signal: AbortSignal): Promise<() => void> {
  const folder = lockFolder(vault, name);
  for (;;) {
    signal.throwIfAborted();
    const latest = latestHub(folder);
    if (latest > 0 && (await untilReleased(hubFiles(folder, latest).socket, signal))) continue;
    const claim = await claimSuccessor(folder, latest);
    if (claim === undefined) continue;
    removeLeftovers(folder, claim.number);
    return closerOf(claim.listener);
  }
}

/** Makes the folder of a lock, in the vault that the processes share, or elsewhere if the path is too long for a socket. */
function lockFolder(vault: string, name: string): string {
  const real = realpathSync(vault);
  const own = join(real, 'locks', fingerprint(name));
  if (!fitsSocketPath(own)) return privateFolder(`login-${fingerprint(`${real}\0${name}`)}`);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  return own;
}

/** Acquires a lock on Windows, where only one process can listen on the name of a pipe. */
async function acquirePipe(vault: string, name: string, signal: AbortSignal): Promise<() => void> {
  const path = `\\\\.\\pipe\\trunkline-login-${fingerprint(`${realpathSync(vault)}\0${name}`)}`;
  for (;;) {
    signal.throwIfAborted();
    const server = createServer();
    const isTaken = await new Promise<boolean>((resolve, reject) => {
      server.once('error', (error) => (errorCode(error) === 'EADDRINUSE' ? resolve(true) : reject(error)));
      server.listen(path, () => resolve(false));
    });
    if (!isTaken) return closerOf(server);
    await untilReleased(path, signal);
  }
}

/** Waits until the holder releases the socket. Resolves with `false` at once if there is no holder. */
function untilReleased(path: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let isHeld = false;
    let isBusy = false;
    const onAbort = () => socket.destroy();
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('connect', () => {
      isHeld = true;
    });
    socket.on('error', (error) => {
      const code = errorCode(error) ?? '';
      // The queue of the holder is full, so the holder is alive.
      if (code === 'EAGAIN') isBusy = true;
      // The holder ends as this process connects.
      else if (code === 'ECONNRESET') isHeld = true;
      else if (!isHeld && !['ECONNREFUSED', 'ENOENT'].includes(code)) reject(error);
    });
    socket.once('close', () => {
      signal.removeEventListener('abort', onAbort);
      if (signal.aborted) reject(signal.reason);
      else if (isBusy) setTimeout(BUSY_MS).then(() => resolve(true), reject);
      else resolve(isHeld);
    });
    socket.resume();
  });
}

/** Keeps the connections of waiting processes until the returned function ends them. */
function closerOf(listener: Server): () => void {
  const waiting = new Set<Socket>();
  listener.on('connection', (socket) => {
    waiting.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => waiting.delete(socket));
  });
  return () => {
    listener.close();
    for (const socket of waiting) socket.destroy();
  };
}

/** Removes the sockets of earlier holders, and of processes that were killed before they got the lock. */
function removeLeftovers(folder: string, own: number): void {
  try {
    for (const number of hubNumbers(folder)) {
      if (number < own) rmSync(hubFiles(folder, number).folder, { recursive: true, force: true });
    }
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      const since = name.startsWith('.') ? statSync(path, { throwIfNoEntry: false })?.mtimeMs : undefined;
      if (since !== undefined && Date.now() - since > LEFTOVER_MS) rmSync(path, { recursive: true, force: true });
    }
  } catch {
    // A process that comes late puts its draft into a folder that is being removed. The next holder removes it.
  }
}
