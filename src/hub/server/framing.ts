import { createHash } from 'node:crypto';
import type { PipeReply } from '../../downstream/stdio/stdio-transport.js';
import type { ReplyChannel } from '../../downstream/transport.js';
import { isString, readString, valuesAt } from '../../wire/json/json-text.js';
import { type SplicedMessage, splicedLength } from '../../wire/json/splice.js';
import { type MessageSink, notificationMessage, unedited } from '../../wire/jsonrpc/message.js';
import type { Envelope, Rejection, RequestEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { type Closing, FRAME, FRAME_HEADER_BYTES, type FrameKind, lineAfter, writeFrameHeader } from '../wire.js';

/** Notifications that each client of the merged lists gets, because all of them are declared to it. */
const LIST_CHANGES = ['tools', 'prompts', 'resources'].map((list) => `notifications/${list}/list_changed`);
const NOTHING = new Uint8Array(0);
/** Ids of server requests for each hub. The ids of a thousand hubs fit into a signed integer of 32 bits. */
const REQUESTS_PER_HUB = 2 ** 20;
const START = { start: 0, end: 0 };
/** Length of the newline that ends every message. */
const NEWLINE_BYTES = 1;

/**
 * Writes the messages for one client as frames, and numbers the client's lines. The attach process learns from the numbers
 * which lines the hub has settled.
 */
export class HubFraming {
  readonly #sink: MessageSink;
  /** Sink for messages that settle no line. */
  readonly sink: MessageSink;
  /** Number of hubs that served the client before. The client has the lists of the last of them. */
  readonly #resumed: number;
  #lastLine = 0;
  #hasHandshake = false;
  #hasEnded = false;

  constructor(sink: MessageSink, resumed: number) {
    this.#sink = sink;
    this.#resumed = resumed;
    this.sink = {
      send: (message, source) => this.#send(message, source, 0),
      get unwrittenBytes() {
        return sink.unwrittenBytes;
      },
    };
  }

  /** Differs for each hub, because a late answer to a request of an earlier hub must not answer a request of this hub. */
  get firstRequestId(): number {
    return 1 + this.#resumed * REQUESTS_PER_HUB;
  }

  readonly probe = (): void => this.#settle(0);

  /** Tells the attach process that another hub serves from now on. */
  moved(): void {
    this.#control(FRAME.moved, 0, '');
  }

  /**
   * Ends the session, and sends the reason to the attach process. Requests that are cancelled from now on are not settled,
   * because the attach process or the next hub answers them.
   */
  end(because?: Closing): void {
    if (because !== undefined) this.#control(FRAME.closed, 0, because);
    this.#hasEnded = true;
  }

  readonly openReply = (pipe: PipeReply, message?: Envelope | Rejection): ReplyChannel => {
    this.#lastLine = lineAfter(this.#lastLine);
    const line = this.#lastLine;
    if (message !== undefined && message.kind !== 'rejected' && message.kind !== 'response') this.#keep(message, line);
    const once: Line = {
      answer: (answer, source) => {
        pipe.passing(answer);
        this.#send(answer, source, line);
      },
      settle: () => {
        if (!this.#hasEnded) this.#settle(line);
      },
    };
    const isListen = message?.kind === 'request' && message.method === METHODS.listen;
    const reply = isListen ? this.#listening(pipe, line, once, listenSlot(message)) : once;
    return {
      isShared: true,
      isDisconnected: false,
      onAbandoned: () => {},
      get unwrittenBytes() {
        return pipe.unwrittenBytes;
      },
      send: reply.send ?? ((sent, source) => pipe.send(sent, source)),
      answer: (answer, source) => {
        reply.answer(answer, source);
        pipe.withdraw();
      },
      withdraw: () => {
        reply.settle();
        pipe.withdraw();
      },
    };
  };

  /**
   * Returns the treatment of a `subscriptions/listen` request. Its acknowledgment settles the line, so that the client can move to another
   * hub while the subscription is open. The next hub gets the line again, and the client gets no second acknowledgment.
   */
  #listening(pipe: PipeReply, line: number, once: Line, slot: string): Line {
    let isOpen = false;
    const send = (message: SplicedMessage, source?: string) => {
      pipe.passing(message);
      this.#send(message, source, isOpen ? 0 : line);
    };
    const end = () => {
      if (!this.#hasEnded) this.#control(FRAME.keep, 0, slot);
    };
    return {
      send: (message, source) => {
        if (!isOpen) this.#control(FRAME.keep, line, slot);
        send(message, source);
        isOpen = true;
      },
      answer: (answer, source) => {
        if (isOpen) end();
        send(answer, source);
      },
      settle: () => (isOpen ? end() : once.settle()),
    };
  }

  #send(message: SplicedMessage, source: string | undefined, line: number): void {
    // Node takes the memory of small buffers from a pool.
    const text = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
    writeFrameHeader(text, 0, FRAME.message, line, splicedLength(message) + NEWLINE_BYTES);
    const { bytes, span, edits, lease } = message;
    const at = { start: span.start, end: span.start };
    // Of several edits at one place, the first is written first.
    this.#sink.send({ bytes, span, edits: [{ span: at, text }, ...edits], lease }, source);
  }

  #settle(line: number): void {
    this.#send(unedited(NOTHING), undefined, line);
  }

  /** Writes a control frame. The payload ends with a newline, which the sink adds to each message. */
  #control(kind: FrameKind, line: number, payload: string): void {
    const text = Buffer.from(payload);
    const header = Buffer.alloc(FRAME_HEADER_BYTES);
    writeFrameHeader(header, 0, kind, line, text.length + NEWLINE_BYTES);
    this.#sink.send({ bytes: text, span: { start: 0, end: text.length }, edits: [{ span: START, text: header }] });
  }

  /** Makes the attach process store a message that is part of the state of the session, because the next hub needs it first. */
  #keep(message: Exclude<Envelope, { kind: 'response' }>, line: number): void {
    switch (message.method) {
      case METHODS.initialized:
        // The lists of this hub may differ from those of the hub before.
        if (this.#resumed > 0) for (const list of LIST_CHANGES) this.#send(notificationMessage(list), undefined, 0);
        this.#control(FRAME.keep, line, message.method);
        break;
      case METHODS.initialize:
        // Only the first `initialize` counts, because the session refuses further ones.
        if (!this.#hasHandshake) this.#control(FRAME.keep, line, message.method);
        this.#hasHandshake = true;
        break;
      case METHODS.setLevel:
        this.#control(FRAME.keep, line, message.method);
        break;
      case METHODS.subscribe:
        this.#control(FRAME.keep, line, subscriptionSlot(message));
        break;
      case METHODS.unsubscribe:
        this.#control(FRAME.keep, 0, subscriptionSlot(message));
        break;
      default:
    }
  }
}

function subscriptionSlot({ bytes, params }: Exclude<Envelope, { kind: 'response' }>): string {
  const [uri] = params === undefined ? [] : valuesAt(bytes, params, ['uri']);
  const text = uri !== undefined && isString(bytes, uri) ? readString(bytes, uri) : '';
  // Hash the URI, because it may have any length, and control frames are small.
  return `subscription ${createHash('sha256').update(text).digest('base64url')}`;
}

function listenSlot({ bytes, id }: RequestEnvelope): string {
  return `listen ${createHash('sha256').update(bytes.subarray(id.start, id.end)).digest('base64url')}`;
}

interface Line {
  /** Absent if the messages before the answer go to the channel of the client. */
  readonly send?: (message: SplicedMessage, source?: string) => void;
  answer(message: SplicedMessage, source?: string): void;
  settle(): void;
}
