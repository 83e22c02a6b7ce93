import { readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { privateFile, readRegularFile, replaceFile } from '../host/files/whole-file.js';
import { hostIdentity, identify, isRunning } from '../host/process/processes.js';
import { isRunProcess, type RunProcess } from '../host/process/run-file.js';
import { isRecord, parseJson } from '../wire/json/json-value.js';
import type { Clock } from '../wire/timing/clock.js';
import { Debounce } from '../wire/timing/debounce.js';

/** Report of a gateway that is no hub, for the commands that look for it. */
export interface GatewayFacts {
  readonly kind: 'http' | 'stdio';
  /** The URL of a gateway that serves HTTP, without the path; null for one that serves the client on stdin. */
  readonly url: string | null;
  /** Empty without a configuration file. */
  readonly configFile: string;
  /** Time of its start, in milliseconds since 1970. */
  readonly since: number;
  /** Whether the gateway drains: it finishes the requests in flight, and then ends. */
  readonly isDraining: boolean;
  /** HTTP requests refused because the name in a header is not allowed, counted by header. */
  readonly refused: readonly CountedRefusal[];
}

interface CountedRefusal {
  readonly header: 'Host' | 'Origin';
  readonly count: number;
  /** The name in the last refused request. */
  readonly last: string;
  /** Time of the last refused request, in milliseconds since 1970. */
  readonly at: number;
}

export interface FoundGateway extends GatewayFacts {
  readonly pid: number;
  /** The folder with the file, and with the socket on which the gateway takes commands. */
  readonly folder: string;
}

export interface GatewayFileOptions {
  /** Folder of this gateway, in the folder of all gateways of this user that are no hubs. */
  readonly folder: string;
  readonly clock: Clock;
  /** Called for the first failed write. */
  readonly onFault: (error: unknown) => void;
}

/** Minimum time between two writes, because many requests may be refused. */
const WRITE_EVERY_MS = 1_000;
/** Size limit, far above the real size, because a refused name has 100 characters at most. */
const MAX_FILE_BYTES = 64 * 1024;
const FILE_NAME = 'gateway.json';

export class GatewayFile {
  readonly #options: GatewayFileOptions;
  readonly #debounce: Debounce;
  #writing: Promise<void> = Promise.resolve();
  #facts: GatewayFacts | undefined;
  #isFaultReported = false;

  constructor(options: GatewayFileOptions) {
    this.#options = options;
    this.#debounce = new Debounce({ clock: options.clock, everyMs: WRITE_EVERY_MS, run: () => this.#write() });
  }

  /** Writes the latest facts in the background, at most once a second. */
  set(facts: GatewayFacts): void {
    this.#facts = facts;
    this.#debounce.request();
  }

  /** Removes the folder and its content. Never rejects. */
  async close(): Promise<void> {
    this.#debounce.close();
    await this.#writing;
    await remove(this.#options.folder);
  }

  async #write(): Promise<void> {
    this.#writing = this.#writeOnce().catch((error: unknown) => this.#report(error));
    await this.#writing;
  }

  async #writeOnce(): Promise<void> {
    const identity = await identify(process.pid);
    if (identity === undefined) return;
    const gateway: RunProcess = { pid: process.pid, startTime: identity.startTime };
    const file = join(this.#options.folder, FILE_NAME);
    await replaceFile(file, `${JSON.stringify({ host: hostIdentity(), gateway, ...this.#facts })}\n`);
  }

  #report(error: unknown): void {
    if (!this.#isFaultReported) this.#options.onFault(error);
    this.#isFaultReported = true;
  }
}

/** The gateways of this user on this host that are no hubs. `folders` hold the folders of all of them. Never rejects. */
export async function findGateways(folders: readonly string[]): Promise<readonly FoundGateway[]> {
  const found = (await Promise.all(folders.map(readFiles))).flat();
  const running = await Promise.all(found.map(({ gateway }) => isRunning(gateway).catch(() => true)));
  return found.flatMap(({ file, gateway, facts }, index) =>
    running[index] ? [{ ...facts, pid: gateway.pid, folder: dirname(file) }] : [],
  );
}

/** Removes the folders of gateways of this host that were killed. Never rejects. */
export async function removeEndedGateways(folder: string): Promise<void> {
  for (const { file, gateway } of await readFiles(folder))
    if (!(await isRunning(gateway).catch(() => true))) await remove(dirname(file));
}

async function remove(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true }).catch(() => {});
}

async function readFiles(folder: string) {
  const names = await readdir(folder).catch((): string[] => []);
  const host = hostIdentity();
  const found: { file: string; gateway: RunProcess; facts: GatewayFacts }[] = [];
  for (const name of names) {
    const file = join(folder, name, FILE_NAME);
    const read = await readRegularFile(file, privateFile(MAX_FILE_BYTES));
    const value = read.kind === 'read' ? parseJson(read.bytes.toString()) : undefined;
    if (!isRecord(value) || value.host !== host || !isRunProcess(value.gateway)) continue;
    const { gateway, kind, url = null, configFile, since, refused } = value;
    if (kind !== 'http' && kind !== 'stdio') continue;
    if ((url !== null && typeof url !== 'string') || typeof configFile !== 'string') continue;
    if (typeof since !== 'number' || !Array.isArray(refused)) continue;
    const isDraining = value.isDraining === true;
    const facts: GatewayFacts = { kind, url, configFile, since, isDraining, refused: refused.filter(isRefusal) };
    found.push({ file, gateway, facts });
  }
  return found;
}

function isRefusal(value: unknown): value is CountedRefusal {
  if (!isRecord(value)) return false;
  const isHeader = value.header === 'Host' || value.header === 'Origin';
  return isHeader && typeof value.count === 'number' && typeof value.last === 'string' && typeof value.at === 'number';
}
