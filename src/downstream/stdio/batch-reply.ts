import { type SplicedMessage, splicedLength } from '../../json/splice.js';
import { batchMessage } from '../../jsonrpc/batch.js';
import type { MessageSink } from '../../jsonrpc/message.js';
import type { ReplyChannel } from '../transport.js';

/** When the collected answers exceed this, they are sent as an array of their own. */
const MAX_COLLECTED_BYTES = 16 * 1024 * 1024;

/** Collects the answers to a batch and sends them as one array after the last one. Other messages are sent at once. */
export class BatchReply implements ReplyChannel {
  readonly isShared = true;
  readonly isUnheard = false;
  readonly #sink: MessageSink;
  #missing: number;
  #collected: SplicedMessage[] = [];
  #collectedBytes = 0;

  /** `answers` includes those that are withdrawn later. */
  constructor(sink: MessageSink, answers: number) {
    this.#sink = sink;
    this.#missing = answers;
  }

  get unwrittenBytes(): number {
    return this.#sink.unwrittenBytes;
  }

  send(message: SplicedMessage, source?: string): void {
    this.#sink.send(message, source);
  }

  answer(message: SplicedMessage): void {
    this.#collected.push(message);
    this.#collectedBytes += splicedLength(message);
    this.#settleOne();
  }

  withdraw(): void {
    this.#settleOne();
  }

  #settleOne(): void {
    this.#missing -= 1;
    if (this.#collected.length === 0 || (this.#missing > 0 && this.#collectedBytes <= MAX_COLLECTED_BYTES)) return;
    this.#sink.send(batchMessage(this.#collected));
    this.#collected = [];
    this.#collectedBytes = 0;
  }
}
