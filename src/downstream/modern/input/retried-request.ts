import type { SplicedMessage } from '../../../json/splice.js';
import type { IdKey } from '../../../jsonrpc/id-key.js';
import type { Answer } from '../../../jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../../mcp/envelope.js';
import type { ReplyChannel } from '../../transport.js';
import type { Front, InputRounds } from './input-rounds.js';

export interface RetriedRequestOptions {
  readonly envelope: RequestEnvelope;
  readonly reply: ReplyChannel;
  /** The id under which the session tracks the request. */
  readonly key: IdKey;
  readonly rounds: InputRounds;
  /** The request was answered or cancelled. Called once. */
  readonly onOver: (request: RetriedRequest) => void;
}

/** A request with which a client comes back to a suspended call. It is open until the call needs more or is answered. */
export class RetriedRequest implements Front, ReplyChannel {
  readonly envelope: RequestEnvelope;
  readonly key: IdKey;
  readonly isShared: boolean;
  readonly #reply: ReplyChannel;
  readonly #rounds: InputRounds;
  readonly #onOver: (request: RetriedRequest) => void;

  constructor({ envelope, reply, key, rounds, onOver }: RetriedRequestOptions) {
    this.envelope = envelope;
    this.key = key;
    this.isShared = reply.isShared;
    this.#reply = reply;
    this.#rounds = rounds;
    this.#onOver = onOver;
  }

  get reply(): ReplyChannel {
    return this;
  }

  get isUnheard(): boolean {
    return this.#reply.isUnheard;
  }

  get unwrittenBytes(): number {
    return this.#reply.unwrittenBytes;
  }

  send(message: SplicedMessage, source?: string): void {
    this.#reply.send(message, source);
  }

  answer(message: Answer, source?: string): void {
    this.#onOver(this);
    this.#reply.answer(message, source);
  }

  onAbandoned(listener: () => void): void {
    this.#reply.onAbandoned(listener);
  }

  withdraw(): void {
    this.#onOver(this);
    this.#reply.withdraw();
  }

  /** The client has cancelled the request or left. */
  cancel(notification?: NotificationEnvelope): void {
    this.#rounds.cancel(this, notification);
  }
}
