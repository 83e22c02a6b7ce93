import { readText } from '../../json/json-text.js';
import { type SplicedMessage, splice } from '../../json/splice.js';
import { type MessageSink, whole } from '../../jsonrpc/message.js';
import type { ScanEnvelope } from '../../mcp/envelope.js';
import { LISTS } from '../../mcp/lists.js';
import { METHODS } from '../../mcp/methods.js';

const LIST_CHANGED = /^notifications\/\w+\/list_changed$/;

/** The changes of the lists that MCP defines. */
const DEFINED_CHANGES: ReadonlySet<string> = new Set(Object.values(LISTS).map(({ changed }) => changed));

/** Notifications that are sent only once and that a client waits for. */
const BUFFERED: ReadonlySet<string> = new Set([
  METHODS.cancelled,
  METHODS.elicitationComplete,
  METHODS.taskStatus,
  METHODS.resourceUpdated,
]);

/**
 * Limit of buffered notifications besides changes of the lists that MCP defines. A client that missed more has to read
 * everything again anyway.
 */
const MAX_NOTIFICATIONS = 256;

/**
 * Buffers unsolicited messages while the client has no GET stream open: server requests, list changes, and a bounded
 * number of the notifications that a client waits for. All other messages are dropped.
 */
export class UnsolicitedBuffer {
  readonly #scan: ScanEnvelope;
  /**
   * Server requests by their ids, so that a cancellation removes them; list changes by their methods, the latest of each;
   * other notifications by their text, without repeats.
   */
  readonly #messages = new Map<string, SplicedMessage>();
  #notifications = 0;

  constructor(scan: ScanEnvelope) {
    this.#scan = scan;
  }

  add(message: SplicedMessage): void {
    const bytes = splice(message);
    const scanned = this.#scan(bytes);
    // The era session bounds how many server requests wait at once.
    if (scanned.kind === 'request') this.#messages.set(requestKey(readText(bytes, scanned.id)), whole(bytes));
    if (scanned.kind !== 'notification') return;
    const { requestId } = scanned.tokens;
    const isCancellation = scanned.method === METHODS.cancelled && requestId !== undefined;
    if (isCancellation && this.#messages.delete(requestKey(readText(bytes, requestId)))) return;
    const { method } = scanned;
    const isListChange = LIST_CHANGED.test(method);
    if (!isListChange && !BUFFERED.has(method)) return;
    const key = isListChange ? method : new TextDecoder().decode(bytes);
    if (!DEFINED_CHANGES.has(method) && !this.#messages.has(key)) {
      this.#notifications += 1;
      if (this.#notifications > MAX_NOTIFICATIONS) return;
    }
    this.#messages.set(key, whole(bytes));
  }

  /** Sends all buffered messages in order and empties the buffer. */
  flushTo(stream: Pick<MessageSink, 'send'>): void {
    for (const message of this.#messages.values()) stream.send(message);
    this.#messages.clear();
    this.#notifications = 0;
  }
}

function requestKey(id: string): string {
  return `request ${id}`;
}
