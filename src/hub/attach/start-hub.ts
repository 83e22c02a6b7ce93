import { accessSync, closeSync, constants, openSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Claim } from '../claim.js';
import { hubFiles } from '../hub-folder.js';

export interface StartHubOptions {
  /** The folder of the hub. */
  readonly folder: string;
  /** The program and the arguments before those of a hub. */
  readonly program: readonly string[];
  /** The arguments that the hub has in common with this process, such as `--config`. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The descriptor on which a hub finds its listening socket. */
export const LISTENER_DESCRIPTOR = 3;

/** The log of the hubs of this folder. */
export function hubLog(folder: string): string {
  return join(folder, 'hub.log');
}

/**
 * Starts a hub that outlives this process, and hands it the listening socket. Clients can connect at once: they wait in the
 * queue of the socket until the hub accepts them. Throws if no process can be started, as when Node itself was updated since
 * this process began. The message is a phrase.
 */
export function startHub({ number, listener }: Claim, options: StartHubOptions): void {
  const { folder, program, args, environment } = options;
  const log = openLog(hubLog(folder));
  // Most attach processes find a hub, and the module takes longer to load than all of ours.
  const { spawn } = process.getBuiltinModule('node:child_process');
  const { pid, ended } = hubFiles(folder, number);
  let isStarted = false;
  try {
    const [command = process.execPath, ...first] = program;
    const child = spawn(command, [...first, 'hub', 'serve', '--place', join(folder, String(number)), ...args], {
      cwd: workingFolder(folder),
      env: environment,
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'ignore', log ?? 'ignore', descriptorOf(listener)],
    });
    // Without a process, there is no id; the error comes later.
    child.on('error', () => {});
    if (child.pid === undefined) throw new Error(`${command} cannot be run`);
    isStarted = true;
    // So that a person can find a hub that does not answer.
    note(pid, String(child.pid));
    child.unref();
  } finally {
    // The socket is closed, so that the next client looks for another hub. No hub has failed: that client may start one.
    if (!isStarted) note(ended, '');
    listener.close();
    if (log !== undefined) closeSync(log);
  }
}

/** A process cannot be started in a folder that does not exist, such as the home folder of a user without one. */
function workingFolder(folder: string): string {
  const home = homedir();
  try {
    accessSync(home, constants.X_OK);
    return home;
  } catch {
    return folder;
  }
}

function note(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch {
    // The disk is full.
  }
}

const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;

/** A hub runs without a log, too: the disk may be full. */
function openLog(file: string): number | undefined {
  try {
    return openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0o600);
  } catch {
    return undefined;
  }
}

/** Node documents no way to pass a listening socket on to a program, but `spawn` takes any descriptor. */
function descriptorOf(listener: Server): number {
  const { _handle: handle } = listener as unknown as { _handle: { readonly fd: number } };
  return handle.fd;
}
