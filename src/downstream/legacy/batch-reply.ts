import { type SplicedMessage, splicedLength } from '../../json/splice.js';
import { batchMessage } from '../../jsonrpc/batch.js';
import type { MessageSink } from '../../jsonrpc/message.js';
import type { ReplyChannel } from './reply-channel.js';

/** What is held back at most: with more, the answers that are there leave as an array of their own. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/**
 * Collects the answers to a batch that came through a pipe, and sends them as one array when the last is there.
 * Nothing else is held back.
 */
export class BatchReply implements ReplyChannel {
  readonly isPipe = true;
  readonly #sink: MessageSink;
  #left: number;
  #held: SplicedMessage[] = [];
  #heldBytes = 0;

  /** `answers` counts those that are withdrawn in the end as well. */
  constructor(sink: MessageSink, answers: number) {
    this.#sink = sink;
    this.#left = answers;
  }

  send(message: SplicedMessage, source?: string): void {
    this.#sink.send(message, source);
  }

  answer(message: SplicedMessage): void {
    this.#held.push(message);
    this.#heldBytes += splicedLength(message);
    this.#settleOne();
  }

  withdraw(): void {
    this.#settleOne();
  }

  #settleOne(): void {
    this.#left -= 1;
    if (this.#held.length === 0 || (this.#left > 0 && this.#heldBytes <= MAX_HELD_BYTES)) return;
    this.#sink.send(batchMessage(this.#held));
    this.#held = [];
    this.#heldBytes = 0;
  }
}
