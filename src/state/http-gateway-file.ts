import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { privateFile, readRegularFile, replaceFile } from '../files/whole-file.js';
import { isRecord, parseJson } from '../json/json-value.js';
import { hostIdentity, identify, isRunning } from '../process/processes.js';
import { isRunProcess, type RunProcess } from '../process/run-file.js';
import type { Clock } from '../timing/clock.js';
import { Debounce } from '../timing/debounce.js';

/** Report of an HTTP gateway for commands, which cannot ask the gateway because they are no allowed clients. */
export interface HttpGatewayFacts {
  readonly url: string;
  /** Empty without a configuration file. */
  readonly configFile: string;
  /** Whether the gateway finishes what is in flight, and then ends. */
  readonly isDraining: boolean;
  /** Requests refused because the name in a header is not allowed, counted by header. */
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

export interface FoundHttpGateway extends HttpGatewayFacts {
  readonly pid: number;
}

export interface HttpGatewayFileOptions {
  /** Folder of the files of all gateways of this user that serve HTTP. */
  readonly folder: string;
  readonly clock: Clock;
  /** Called for the first failed write. */
  readonly onFault: (error: unknown) => void;
}

/** Minimum time between two writes, because many requests may be refused. */
const WRITE_EVERY_MS = 1_000;
/** Far above the real size, because a name has 100 characters at most. */
const MAX_FILE_BYTES = 64 * 1024;

/** The file with the facts about this gateway while it serves HTTP. Not on Windows, where a process has no identity but its pid. */
export class HttpGatewayFile {
  readonly #options: HttpGatewayFileOptions;
  readonly #file: string;
  readonly #debounce: Debounce;
  #writing: Promise<void> = Promise.resolve();
  #facts: HttpGatewayFacts | undefined;
  #isFaultReported = false;

  constructor(options: HttpGatewayFileOptions) {
    this.#options = options;
    this.#debounce = new Debounce({ clock: options.clock, everyMs: WRITE_EVERY_MS, run: () => this.#write() });
    // The random part makes the name unique, because a gateway in another pid namespace may have the same pid.
    this.#file = join(options.folder, `${process.pid}-${randomBytes(6).toString('hex')}.json`);
  }

  /** Writes the latest facts in the background, at most once a second. */
  set(facts: HttpGatewayFacts): void {
    this.#facts = facts;
    this.#debounce.request();
  }

  /** Removes the file. Never rejects. */
  async close(): Promise<void> {
    this.#debounce.close();
    await this.#writing;
    await rm(this.#file, { force: true }).catch(() => {});
  }

  async #write(): Promise<void> {
    this.#writing = this.#writeOnce().catch((error: unknown) => this.#report(error));
    await this.#writing;
  }

  async #writeOnce(): Promise<void> {
    const identity = await identify(process.pid);
    if (identity === undefined) return;
    const gateway: RunProcess = { pid: process.pid, startTime: identity.startTime };
    await replaceFile(this.#file, `${JSON.stringify({ host: hostIdentity(), gateway, ...this.#facts })}\n`);
  }

  #report(error: unknown): void {
    if (!this.#isFaultReported) this.#options.onFault(error);
    this.#isFaultReported = true;
  }
}

/** The gateways of this user that serve HTTP on this host. Never rejects. */
export async function findHttpGateways(folder: string): Promise<readonly FoundHttpGateway[]> {
  const gateways: FoundHttpGateway[] = [];
  for (const { facts, gateway } of await readFiles(folder))
    if (await isRunning(gateway)) gateways.push({ ...facts, pid: gateway.pid });
  return gateways;
}

/** Removes the files of gateways of this host that were killed. Never rejects. */
export async function removeEndedHttpGateways(folder: string): Promise<void> {
  for (const { file, gateway } of await readFiles(folder))
    if (!(await isRunning(gateway))) await rm(file, { force: true }).catch(() => {});
}

async function readFiles(folder: string) {
  const names = await readdir(folder).catch((): string[] => []);
  const host = hostIdentity();
  const found: { file: string; gateway: RunProcess; facts: HttpGatewayFacts }[] = [];
  for (const name of names.filter((each) => each.endsWith('.json'))) {
    const file = join(folder, name);
    const read = await readRegularFile(file, privateFile(MAX_FILE_BYTES));
    const value = read.kind === 'read' ? parseJson(read.bytes.toString()) : undefined;
    if (!isRecord(value) || value.host !== host || !isRunProcess(value.gateway)) continue;
    const { gateway, url, configFile, refused } = value;
    if (typeof url !== 'string' || typeof configFile !== 'string' || !Array.isArray(refused)) continue;
    const isDraining = value.isDraining === true;
    found.push({ file, gateway, facts: { url, configFile, isDraining, refused: refused.filter(isRefusal) } });
  }
  return found;
}

function isRefusal(value: unknown): value is CountedRefusal {
  if (!isRecord(value)) return false;
  const isHeader = value.header === 'Host' || value.header === 'Origin';
  return isHeader && typeof value.count === 'number' && typeof value.last === 'string' && typeof value.at === 'number';
}
