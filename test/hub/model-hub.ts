// A hub in memory that the test plays: real frames, and answers in the order that the test wants.

import type { ReplyChannel } from '../../src/downstream/transport.js';
import { HubFraming } from '../../src/hub/server/framing.js';
import type { Closing } from '../../src/hub/wire.js';
import { splice } from '../../src/wire/json/splice.js';
import { notificationMessage, unedited } from '../../src/wire/jsonrpc/message.js';
import { bytesOf, type Message, scan } from '../support/wire.js';

/** One hub's side of one session. */
export class ModelHub {
  /** The messages that it got, as the client wrote them. */
  readonly lines: string[] = [];
  /** Those that wait for an answer. */
  readonly pending: { readonly message: Message | Message[]; readonly reply: ReplyChannel }[] = [];
  /** Bytes that it has written and nobody has read yet. */
  #unread: Uint8Array[] = [];
  readonly #framing: HubFraming;
  #input = '';

  constructor(resumed: number) {
    const send = (message: Parameters<HubFraming['sink']['send']>[0]) => {
      this.#unread.push(Buffer.concat([splice(message), Buffer.from('\n')]));
    };
    this.#framing = new HubFraming({ send, unwrittenBytes: 0 }, resumed);
  }

  /** Reads what the attach process writes. */
  read(bytes: Uint8Array): void {
    this.#input += Buffer.from(bytes).toString();
    const lines = this.#input.split('\n');
    this.#input = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') this.#line(line);
  }

  /** Answers one of the requests that wait. */
  answer(index: number, result: Message = {}): void {
    const [pending] = this.pending.splice(index % this.pending.length, 1);
    if (pending === undefined) return;
    const { message, reply } = pending;
    const answers = [message].flat().filter(isRequest);
    const texts = answers.map(({ id }) => JSON.stringify({ jsonrpc: '2.0', id, result }));
    reply.answer(unedited(bytesOf(Array.isArray(message) ? `[${texts.join()}]` : texts.join())));
  }

  notify(): void {
    this.#framing.sink.send(notificationMessage('notifications/message'));
  }

  move(): void {
    this.#framing.moved();
  }

  /** Ends the session in order: what was not answered is withdrawn, as when a session is closed. */
  end(because?: Closing): void {
    this.#framing.end(because);
    for (const { reply } of this.pending.splice(0)) reply.withdraw();
  }

  /** Takes at most so many of the bytes that it has written. */
  take(maxBytes: number): Uint8Array {
    const all = Buffer.concat(this.#unread);
    this.#unread = [all.subarray(maxBytes)];
    return all.subarray(0, maxBytes);
  }

  #line(line: string): void {
    this.lines.push(line);
    const message = JSON.parse(line);
    const channel = {
      isShared: true,
      isDisconnected: false,
      unwrittenBytes: 0,
      send: () => {},
      answer: () => {},
      withdraw: () => {},
      onAbandoned: () => {},
      passing: () => {},
    };
    const reply = this.#framing.openReply(channel, scan(bytesOf(line)));
    if ([message].flat().some(isRequest)) this.pending.push({ message, reply });
    else reply.withdraw();
  }
}

function isRequest(message: Message): boolean {
  return message.method !== undefined && message.id !== undefined;
}
