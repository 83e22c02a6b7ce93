import type { Duplex, Readable, Writable } from 'node:stream';
import type { ByteReader } from '../../wire/io/byte-reader.js';
import { readInto } from '../../wire/io/streams/read-into.js';
import { END_OF_INPUT, withoutMark } from '../wire.js';
import { AttachSession } from './attach-session.js';
import type { FoundHub } from './find-hub.js';

/** The connection of a client to a hub, or to a server in this process that takes the place of a hub. */
export interface HubEnd {
  readonly stream: Duplex;
  /** Passes the bytes from the hub to `reader` from now on. */
  readInto(reader: ByteReader): void;
}

export interface AttachClientOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly first: HubEnd;
  /** Finds or starts a hub. `resumed` is the number of hubs that have served the client before. */
  readonly find: (resumed: number) => Promise<FoundHub>;
  /** Serves the client in this process from now on, because no hub is available. `because` is the reason. */
  readonly serveAlone: (because: string, resumed: number) => HubEnd;
  readonly now: () => number;
}

/** Number of bytes that wait for a hub that does not read. Above it, reading from the client pauses. */
const HIGH_WATER_BYTES = 1024 * 1024;
const READ_BYTES = 64 * 1024;
/** Number of writes that wait for the client, one for each read from the hub. At this number, reading from the hub pauses. */
const MAX_UNWRITTEN = 3;

/** A hub that dies within this time after it took the client may have died because of a message of the client. */
const SHORT_MS = 2_000;
/** Hubs in a row that may die within `SHORT_MS`. After them, this process serves the client itself. */
const MAX_SHORT = 8;

/**
 * Connects a client on two pipes to a hub until the client leaves. If the hub dies, the next hub continues the session.
 * Resolves when the client has left, or cannot read any more.
 */
export function attachClient(options: AttachClientOptions): Promise<void> {
  return new Promise((resolve) => new Attachment(options, resolve).begin());
}

class Attachment {
  readonly #options: AttachClientOptions;
  readonly #onLeft: () => void;
  readonly #session: AttachSession;
  readonly #buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  #input: Readable | undefined;
  #hub: HubEnd | undefined;
  #leaveHub = (): void => {};
  /** Number of writes that the client has not read. */
  #unwritten = 0;
  /** Whether this process serves the client, without a hub. */
  #isAlone = false;
  /** Whether a user has stopped the hub, and the client has sent no message since. */
  #isAsleep = false;
  /** Whether the client has closed its end, and the hub has ended the session. */
  #isDrained = false;
  /** Reason for which every other hub would refuse the client, too. */
  #refusal: string | undefined;
  #hasInputEnded = false;
  #hasLeft = false;
  #resumed = 0;
  #attachedAt = 0;
  #shortLives = 0;

  constructor(options: AttachClientOptions, onLeft: () => void) {
    this.#options = options;
    this.#onLeft = onLeft;
    this.#session = new AttachSession({
      toClient: (bytes, lend) => this.#toClient(bytes, lend),
      toHub: (bytes) => this.#toHub(bytes),
      onMoved: () => this.#leaveHub(),
      onClosed: (because) => this.#closed(because),
    });
  }

  begin(): void {
    const { input, output, first } = this.#options;
    output.on('error', () => this.#leave());
    this.#attach(first);
    const buffer = this.#buffer;
    this.#input = readInto(input, {
      freeSpace: buffer,
      // Copies the bytes, because the session stores each line until the hub has settled it.
      filled: (byteLength) => this.#fromClient(withoutMark(Buffer.from(buffer.subarray(0, byteLength)))),
    });
    this.#input.once('end', () => this.#inputEnded());
    this.#input.once('error', () => this.#inputEnded());
  }

  #attach(hub: HubEnd): void {
    this.#hub = hub;
    this.#attachedAt = this.#options.now();
    const { stream } = hub;
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      stream.destroy();
      this.#hubGone();
    };
    this.#leaveHub = over;
    stream.on('error', over);
    stream.once('end', over);
    stream.once('close', over);
    stream.on('drain', () => this.#input?.resume());
    hub.readInto(this.#session);
    this.#session.attached();
    this.#input?.resume();
    if (this.#hasInputEnded) stream.write(END);
  }

  #toClient(bytes: Uint8Array, lend: () => void): void {
    const { output } = this.#options;
    output.write(bytes);
    if (output.writableLength === 0) return;
    lend();
    this.#unwritten += 1;
    if (this.#unwritten >= MAX_UNWRITTEN) this.#hub?.stream.pause();
    // Node calls back when all earlier writes have ended.
    output.write(NOTHING, () => {
      this.#unwritten -= 1;
      this.#hub?.stream.resume();
    });
  }

  #toHub(bytes: Uint8Array): void {
    const stream = this.#hub?.stream;
    stream?.write(bytes);
    if ((stream?.writableLength ?? 0) > HIGH_WATER_BYTES) this.#input?.pause();
  }

  #inputEnded(): void {
    if (this.#hasInputEnded) return;
    this.#hasInputEnded = true;
    if (this.#isAsleep) this.#leave();
    else this.#hub?.stream.write(END);
  }

  /** Notes why the hub closes the session. The hub closes the connection next. */
  #closed(because: string): void {
    if (because === 'stopped') this.#isAsleep = true;
    else if (because === 'drained') this.#isDrained = true;
    else this.#refusal = 'the hub is off in the configuration';
  }

  #fromClient(bytes: Uint8Array): void {
    this.#session.fromClient(bytes);
    if (!this.#isAsleep || this.#hub !== undefined) return;
    this.#isAsleep = false;
    void this.#resume();
  }

  #hubGone(): void {
    if (this.#hasLeft) return;
    this.#hub = undefined;
    if (this.#isDrained) {
      this.#leave();
      return;
    }
    if (!this.#isAlone) this.#session.detached();
    if (this.#isAlone || (this.#hasInputEnded && this.#session.inFlight === 0)) {
      this.#leave();
      return;
    }
    this.#shortLives = this.#options.now() - this.#attachedAt < SHORT_MS ? this.#shortLives + 1 : 0;
    this.#isAsleep &&= this.#session.inFlight === 0;
    // The next message of the client makes `#fromClient` look for a hub.
    if (this.#isAsleep) this.#input?.resume();
    else void this.#resume();
  }

  /** Continues the session at the next hub, or in this process. */
  async #resume(): Promise<void> {
    this.#resumed += 1;
    // Do not read the client until a hub takes its messages, because they would fill the memory.
    this.#input?.pause();
    const found = await this.#findNext();
    if (this.#hasLeft) return;
    if (found.kind === 'none') this.#serveAlone(found.because);
    else this.#attach({ stream: found.connection.socket, readInto: (reader) => found.connection.readInto(reader) });
  }

  async #findNext(): Promise<FoundHub> {
    if (this.#refusal !== undefined) return { kind: 'none', because: this.#refusal };
    if (this.#shortLives >= MAX_SHORT) return { kind: 'none', because: DIES };
    return await this.#options.find(this.#resumed);
  }

  #serveAlone(because: string): void {
    this.#isAlone = true;
    this.#attach(this.#options.serveAlone(because, this.#resumed));
  }

  #leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#hub?.stream.destroy();
    const tooLate = setTimeout(() => this.#onLeft(), READ_WITHIN_MS);
    this.#options.output.write(NOTHING, () => {
      clearTimeout(tooLate);
      this.#onLeft();
    });
  }
}

/** Time for a client that leaves to read the last messages. */
const READ_WITHIN_MS = 3_000;
const NOTHING = new Uint8Array(0);
const END = Uint8Array.of(END_OF_INPUT);
const DIES = `${MAX_SHORT} hubs in a row died soon after they took this client`;
