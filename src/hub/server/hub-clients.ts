import type { Duplex } from 'node:stream';
import {
  type Framing,
  openStdioTransport,
  type StdioService,
  type StdioTransport,
} from '../../downstream/stdio/stdio-transport.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { type Closing, type Hello, type HubRefusal, MarkedInput } from '../wire.js';
import { HubFraming } from './framing.js';
import type { HubPeer } from './hub-listener.js';

export interface HubClientsOptions extends StdioService {
  readonly maxClients: () => number;
  /** Calls `giveUp` when the time for the answers to a client that has sent its last request is over. */
  readonly limitDrain: (client: StdioTransport, giveUp: () => void) => Cancel;
  readonly onUnread: (client: Hello, unwrittenBytes: number) => void;
  readonly onChange: () => void;
}

export interface HubClient {
  readonly hello: Hello;
  /** Time of its arrival, in milliseconds on the clock. */
  readonly since: number;
  readonly transport: StdioTransport;
}

interface OpenSession {
  readonly framing: HubFraming;
  /** Ends the session, and sends the reason to the attach process. */
  close(because?: Closing): void;
}

/** Time for a client to read the last messages of its session. */
const LAST_WORDS_MS = 1_000;

export class HubClients {
  readonly #options: HubClientsOptions;
  readonly #clients = new Map<HubClient, OpenSession>();
  #hasMoved = false;

  constructor(options: HubClientsOptions) {
    this.#options = options;
  }

  get all(): readonly HubClient[] {
    return [...this.#clients.keys()];
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Opens the session of a client, or returns the reason for which it is refused. */
  open(hello: Hello, { stream, reader, welcome }: HubPeer): HubRefusal | undefined {
    const { clock, maxClients, limitDrain, onUnread, onChange, ...shared } = this.#options;
    if (this.#clients.size >= maxClients()) return 'full';
    welcome();
    let framing: HubFraming | undefined;
    const close = (because?: Closing) => {
      framing?.end(because);
      transport.close();
    };
    let cancelDrain: Cancel = () => {};
    const end = () => {
      if (!this.#clients.delete(client)) return;
      cancelDrain();
      endStream(stream, transport, clock);
      onChange();
    };
    const { environment, folder, view } = hello;
    const transport = openStdioTransport({
      ...shared,
      origin: { environment, folder },
      view,
      clock,
      output: stream,
      read: (lines) => {
        reader.handOver(new MarkedInput(lines, () => stream.push(null)));
        return stream;
      },
      framing: (sink): Framing => {
        framing = new HubFraming(sink, hello.resumed);
        return framing;
      },
      onInputEnd: () => {
        cancelDrain = limitDrain(transport, () => close('drained'));
      },
      onEnd: end,
      onUnread: (unwrittenBytes) => {
        onUnread(hello, unwrittenBytes);
        stream.destroy();
      },
    });
    const client: HubClient = { hello, since: clock.now(), transport };
    if (framing !== undefined) this.#clients.set(client, { framing, close });
    stream.once('close', () => transport.close());
    if (this.#hasMoved) framing?.moved();
    onChange();
    return undefined;
  }

  /** Sends all clients to another hub. Each leaves when it has nothing in flight. */
  move(): void {
    if (this.#hasMoved) return;
    this.#hasMoved = true;
    this.reattach();
  }

  /** Makes all clients attach again, with a new hello, as soon as nothing is in flight. */
  reattach(): void {
    for (const { framing } of this.#clients.values()) framing.moved();
  }

  /** Ends all sessions. Without a reason, the clients attach to another hub at once. */
  close(because?: Closing): void {
    for (const session of this.#clients.values()) session.close(because);
  }
}

/** Ends the connection when everything is written, but after `LAST_WORDS_MS` at the latest. */
function endStream(stream: Duplex, transport: StdioTransport, clock: Clock): void {
  if (stream.closed) return;
  const cancel = clock.schedule(LAST_WORDS_MS, () => stream.destroy());
  stream.once('close', cancel);
  transport.whenAllWritten(() => stream.end(() => stream.destroy()));
}
