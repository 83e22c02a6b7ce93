import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { isSameSecret } from '../../host/sealed-bytes.js';
import type { ByteReader } from '../../wire/io/byte-reader.js';
import { readInto } from '../../wire/io/streams/read-into.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { listenIn } from '../endpoint.js';
import { hubFiles, hubNumbers, numberOf, writeMarker } from '../hub-folder.js';
import { newNonce, proofOf } from '../proof.js';
import { FirstLineReader, type Hello, type HubRefusal, type Proof, type Welcome, WIRE } from '../wire.js';

export interface HubListenerOptions {
  /** The folder of this hub, whose name is its number, in the folder of the hubs of one configuration; or that of another gateway. */
  readonly hubFolder: string;
  /** The descriptor of the socket that listens already, if the process that started this one has handed it over. */
  readonly descriptor?: number;
  readonly version: string;
  /** Takes a connection with a valid hello, or returns the reason for which the connection is refused. */
  readonly onHello: (hello: Hello, connection: HubPeer) => HubRefusal | undefined;
  /** Called if this process cannot listen, so that no client can reach it. */
  readonly onUnreachable: (error: Error) => void;
}

export interface HubPeer {
  readonly stream: Duplex;
  /** Reads the bytes after the hello. */
  readonly reader: { handOver(next: ByteReader): void };
  /** Answers the hello. Nothing may be written to the stream before. */
  welcome(): void;
}

/** Time within which the hello must arrive. An attach process writes its hello at once. */
const HELLO_WITHIN_MS = 5_000;
/** Limit of the connections without a hello, beyond which the oldest is closed. Only this user can connect. */
const MAX_SILENT = 1_024;

export class HubListener {
  readonly #options: HubListenerOptions;
  readonly #server: Server;
  readonly #token: string;
  readonly #silent = new Set<Duplex>();
  #isEnding = false;

  constructor(options: HubListenerOptions) {
    this.#options = options;
    this.#token = readFileSync(filesOf(options.hubFolder).token, 'latin1');
    this.#server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) => this.#connected(socket));
    this.#server.on('error', (error) => {
      // While it listens, an error means that no file descriptor is free. The connection then waits in the queue of the socket.
      if (!this.#server.listening) options.onUnreachable(error);
    });
    listenIn(options.hubFolder, this.#server, options.descriptor);
  }

  /** The hub answers clients from now on. New clients then wait less long for its first line. */
  markReady(): void {
    writeMarker(filesOf(this.#options.hubFolder).ready);
  }

  /** Takes no more connections. New clients start another hub. */
  close(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    writeMarker(filesOf(this.#options.hubFolder).ended);
    this.#server.close();
    for (const stream of this.#silent) stream.destroy();
  }

  #connected(socket: Duplex): void {
    const refuse = (because: HubRefusal) =>
      stream.end(lineOf({ ok: false, because } satisfies Welcome), () => stream.destroy());
    const own = newNonce();
    let challenge = '';
    const second = new FirstLineReader((line) => {
      clearTimeout(timer);
      this.#silent.delete(stream);
      const hello = readHello(line);
      const expected = proofOf('client', this.#token, { client: challenge, hub: own });
      const refusal = this.#refusalOf(hello, expected) ?? this.#options.onHello(hello as Hello, peer);
      if (refusal !== undefined) refuse(refusal);
    });
    const first = new FirstLineReader((line) => {
      const nonce = readChallenge(line);
      if (nonce === undefined) {
        refuse('malformed');
        return;
      }
      challenge = nonce;
      const proof = proofOf('hub', this.#token, { client: challenge, hub: own });
      stream.write(lineOf({ nonce: own, proof } satisfies Proof));
      first.handOver(second);
    });
    const stream = readInto(socket, first, true);
    const { version } = this.#options;
    const welcome = () => void stream.write(lineOf({ ok: true, version, pid: process.pid } satisfies Welcome));
    const peer: HubPeer = { stream, reader: second, welcome };
    const timer = setTimeout(() => stream.destroy(), HELLO_WITHIN_MS);
    this.#silent.add(stream);
    // Ignore errors before the hello. After it, the owner of the session also listens to them.
    stream.on('error', () => {});
    stream.once('close', () => {
      clearTimeout(timer);
      this.#silent.delete(stream);
    });
    const [oldest] = this.#silent;
    if (this.#silent.size > MAX_SILENT) oldest?.destroy();
  }

  #refusalOf(hello: Hello | undefined, expected: string): HubRefusal | undefined {
    if (hello === undefined) return 'malformed';
    if (!isSameSecret(hello.proof, expected)) return 'token';
    return this.#isEnding ? 'ending' : undefined;
  }
}

const MAX_NONCE_LENGTH = 128;

/** Reads the nonce in the first line of a connection. `undefined` if the line is none of this protocol. */
function readChallenge(line: string | undefined): string | undefined {
  const challenge = parseJson(line ?? '');
  if (!isRecord(challenge) || challenge.wire !== WIRE) return undefined;
  const { nonce } = challenge;
  return typeof nonce === 'string' && nonce.length <= MAX_NONCE_LENGTH ? nonce : undefined;
}

/** Reads the hello in the second line of a connection. `undefined` if the line is no hello of this protocol. */
export function readHello(line: string | undefined): Hello | undefined {
  const hello = parseJson(line ?? '');
  if (!isRecord(hello) || hello.wire !== WIRE) return undefined;
  const { proof, role, version, pid, folder, environment, path, view, resumed } = hello;
  const isSound =
    typeof proof === 'string' &&
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

function lineOf(answer: Proof | Welcome): string {
  return `${JSON.stringify(answer)}\n`;
}

function filesOf(hubFolder: string): ReturnType<typeof hubFiles> {
  return hubFiles(dirname(hubFolder), basename(hubFolder));
}

/** Age at which the files of a dead hub are removed. Until then, `isHubFailing` needs them. */
const LEFTOVER_MS = 5 * 60_000;

/** Removes the files of earlier hubs and attach processes that have ended. `running` are the numbers of hubs that run. */
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
    // Another process removes the folder.
  }
}
