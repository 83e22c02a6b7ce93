import { randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { readInto } from '../../io/streams/read-into.js';
import { isRecord, parseJson } from '../../json/json-value.js';
import { hubFiles, hubNumbers, note, numberOf } from '../hub-folder.js';
import { FirstLineReader, type Hello, type Refusal, type Welcome, WIRE } from '../wire.js';

export interface HubListenerOptions {
  /** The folder of this hub: the folder of the hubs of one configuration, and the number. */
  readonly hubFolder: string;
  /** The descriptor of the socket, which listens already. */
  readonly descriptor: number;
  readonly version: string;
  /** Takes a connection whose hello was accepted, unless it returns why not. */
  readonly onHello: (hello: Hello, connection: HubPeer) => Refusal | undefined;
}

/** The other end of an accepted connection. */
export interface HubPeer {
  readonly stream: Duplex;
  /** Reads what follows the hello. */
  readonly reader: Pick<FirstLineReader, 'handOver'>;
  /** Answers the hello. Nothing may be written to the stream before. */
  welcome(): void;
}

/** An attach process writes its hello at once. */
const HELLO_WITHIN_MS = 5_000;
/** Connections without a hello. Only this user can connect, so that more of them are a mistake. */
const MAX_SILENT = 1_024;

export class HubListener {
  readonly #options: HubListenerOptions;
  readonly #server: Server;
  readonly #token: Buffer;
  readonly #silent = new Set<Duplex>();
  #isEnding = false;

  constructor(options: HubListenerOptions) {
    this.#options = options;
    this.#token = readFileSync(filesOf(options.hubFolder).token);
    this.#server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => this.#connected(socket));
    this.#server.listen({ fd: options.descriptor });
    // Without file descriptors, a connection waits in the queue of the socket until there is one.
    this.#server.on('error', () => {});
  }

  /** Clients get answers from now on, and those that come expect a prompt one. */
  markReady(): void {
    note(filesOf(this.#options.hubFolder).ready);
  }

  /** Takes no more connections. Clients that come from now on start another hub. */
  close(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    note(filesOf(this.#options.hubFolder).ended);
    this.#server.close();
    for (const stream of this.#silent) stream.destroy();
  }

  #connected(socket: Duplex): void {
    const reader = new FirstLineReader((line) => {
      clearTimeout(timer);
      this.#silent.delete(stream);
      const hello = readHello(line);
      const refusal = this.#refusalOf(hello) ?? this.#options.onHello(hello as Hello, peer);
      if (refusal !== undefined) stream.end(welcomeLine({ ok: false, because: refusal }), () => stream.destroy());
    });
    const stream = readInto(socket, reader, true);
    const { version } = this.#options;
    const welcome = () => void stream.write(welcomeLine({ ok: true, version, pid: process.pid }));
    const peer: HubPeer = { stream, reader, welcome };
    const timer = setTimeout(() => stream.destroy(), HELLO_WITHIN_MS);
    this.#silent.add(stream);
    // An error before the hello has no consequence. Later, the owner of the session listens, too.
    stream.on('error', () => {});
    stream.once('close', () => {
      clearTimeout(timer);
      this.#silent.delete(stream);
    });
    const [oldest] = this.#silent;
    if (this.#silent.size > MAX_SILENT) oldest?.destroy();
  }

  #refusalOf(hello: Hello | undefined): Refusal | undefined {
    if (hello === undefined) return 'malformed';
    const token = Buffer.from(hello.token);
    if (token.length !== this.#token.length || !timingSafeEqual(token, this.#token)) return 'token';
    return this.#isEnding ? 'ending' : undefined;
  }
}

/** The hello in the first line of a connection; `undefined` if the line is none. */
export function readHello(line: string | undefined): Hello | undefined {
  const hello = parseJson(line ?? '');
  if (!isRecord(hello) || hello.wire !== WIRE) return undefined;
  const { token, role, version, pid, folder, environment, path, view, resumed } = hello;
  const isSound =
    typeof token === 'string' &&
    (role === 'client' || role === 'control') &&
    typeof version === 'string' &&
    typeof pid === 'number' &&
    typeof folder === 'string' &&
    typeof resumed === 'number' &&
    [path, view].every((optional) => optional === undefined || typeof optional === 'string') &&
    isRecord(environment) &&
    Object.values(environment).every((value) => typeof value === 'string');
  return isSound ? (hello as unknown as Hello) : undefined;
}

function welcomeLine(answer: Welcome): string {
  return `${JSON.stringify(answer)}\n`;
}

function filesOf(hubFolder: string): ReturnType<typeof hubFiles> {
  return hubFiles(dirname(hubFolder), numberOf(hubFolder));
}

/** Age at which the remains of a dead hub no longer show that it has failed: see `isHubFailing`. */
const LEFTOVER_MS = 5 * 60_000;

/** Removes what hubs and attach processes have left behind that ended without doing so. Hubs that run need their sockets. */
export function removeLeftovers(hubFolder: string, running: ReadonlySet<number>, now: number): void {
  const folder = dirname(hubFolder);
  for (const number of hubNumbers(folder)) {
    const { folder: own, ended } = hubFiles(folder, number);
    if (number >= numberOf(hubFolder)) break;
    if (existsSync(ended) || (!running.has(number) && isOlder(own, now))) remove(own);
  }
  for (const name of readdirSync(folder)) {
    if (/^\.\d+-/.test(name) && isOlder(join(folder, name), now)) remove(join(folder, name));
  }
}

function isOlder(path: string, now: number): boolean {
  const since = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return since !== undefined && now - since > LEFTOVER_MS;
}

/** Removes a folder. Renames it first, so that no process sees a part of it. */
function remove(path: string): void {
  try {
    const doomed = join(dirname(path), `.${process.pid}-${randomBytes(4).toString('hex')}`);
    renameSync(path, doomed);
    rmSync(doomed, { recursive: true, force: true });
  } catch {
    // Somebody else removes it.
  }
}
