import { readText } from '../../json/json-text.js';
import { type SplicedMessage, splice } from '../../json/splice.js';
import { type MessageSink, whole } from '../../jsonrpc/message.js';
import type { ScanEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';

const CHANGE = /^notifications\/\w+\/list_changed$/;

/** What is said once, and waited for. */
const KEPT: ReadonlySet<string> = new Set([
  METHODS.cancelled,
  METHODS.elicitationComplete,
  METHODS.taskStatus,
  METHODS.resourceUpdated,
]);

/** Far more than anybody waits for; a client that missed them all has to ask for everything again anyway. */
const MAX_NOTICES = 256;

/**
 * What a client may not lose while it does not listen: questions, which wait for an answer, that lists have changed, and
 * a bounded number of other notices. All else is lost.
 */
export class UnsolicitedBuffer {
  readonly #scan: ScanEnvelope;
  /** By what makes one superfluous: a question by its id, so that its end can take it back, the rest by its text. */
  readonly #messages = new Map<string, SplicedMessage>();
  #notifications = 0;

  constructor(scan: ScanEnvelope) {
    this.#scan = scan;
  }

  add(message: SplicedMessage): void {
    const bytes = splice(message);
    const scanned = this.#scan(bytes);
    // How many questions wait at once is bounded where they are asked.
    if (scanned.kind === 'request') this.#messages.set(questionKey(readText(bytes, scanned.id)), whole(bytes));
    if (scanned.kind !== 'notification') return;
    const { requestId } = scanned.tokens;
    const isEnd = scanned.method === METHODS.cancelled && requestId !== undefined;
    if (isEnd && this.#messages.delete(questionKey(readText(bytes, requestId)))) return;
    const text = new TextDecoder().decode(bytes);
    if (this.#messages.has(text)) return;
    if (KEPT.has(scanned.method)) {
      this.#notifications += 1;
      if (this.#notifications > MAX_NOTICES) return;
    } else if (!CHANGE.test(scanned.method)) {
      return;
    }
    this.#messages.set(text, whole(bytes));
  }

  /** Sends all of it, in order; from then on nothing was missed. */
  catchUp(stream: Pick<MessageSink, 'send'>): void {
    for (const message of this.#messages.values()) stream.send(message);
    this.#messages.clear();
    this.#notifications = 0;
  }
}

function questionKey(id: string): string {
  return `question ${id}`;
}
