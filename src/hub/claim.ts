import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { errorCode } from '../errors/error-text.js';
import { hubFiles, hubNumbers, latestHub, socketPath } from './hub-folder.js';

/** The right to start the hub with this number, and its socket, which listens already. */
export interface Claim {
  readonly number: number;
  readonly listener: Server;
}

/**
 * Claims the right to start the successor of hub `latest`. Returns `undefined` if another process was faster, or has done
 * so meanwhile: its hub is the one to use.
 *
 * The listening socket is the lock. It is made in a folder of its own, and that folder is renamed to the next number, which
 * the system refuses while a folder with content has that name. So a hub is never seen without its socket, and a socket
 * that refuses connections belongs to a dead hub: no process ids, no times, nothing stale to interpret.
 *
 * Throws if the folder cannot be written.
 */
export async function claimSuccessor(folder: string, latest: number): Promise<Claim | undefined> {
  const number = latest + 1;
  const draft = join(folder, `.${process.pid}-${randomBytes(4).toString('hex')}`);
  mkdirSync(draft, { mode: 0o700 });
  let listener: Server | undefined;
  try {
    writeFileSync(join(draft, 'token'), randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' });
    listener = await listen(socketPath(draft));
    const { folder: place } = hubFiles(folder, number);
    renameSync(draft, place);
    if (latestHub(folder) === number) return { number, listener };
    // Somebody saw a later hub end and started another one since: this number came too late.
    rmSync(place, { recursive: true, force: true });
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) {
      listener?.close();
      throw error;
    }
  }
  listener?.close();
  return undefined;
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    // Enough for all clients of a person that start at once.
    server.listen({ path, backlog: 511 }, () => resolve(server));
  });
}

/** Number of failed starts within a minute after which no hub is started for a while. */
const MAX_FAILED = 3;
const FAILED_WITHIN_MS = 60_000;

/** Whether the hub keeps failing before it has served anybody, so that clients had better serve themselves. */
export function isHubFailing(folder: string, now: number): boolean {
  const failed = hubNumbers(folder).filter((number) => {
    const { folder: own, ready, ended } = hubFiles(folder, number);
    if (existsSync(ready) || existsSync(ended)) return false;
    const since = statSync(own, { throwIfNoEntry: false })?.mtimeMs;
    return since !== undefined && now - since < FAILED_WITHIN_MS;
  });
  return failed.length >= MAX_FAILED;
}
