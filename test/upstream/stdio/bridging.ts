import { Bridge } from '../../../src/upstream/channel/bridge.js';
import type {
  RequestHandler,
  RequestTimeouts,
  SentRequest,
  ServerRequest,
} from '../../../src/upstream/upstream-connection.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { createLineMemory } from '../../../src/wire/io/line-decoder.js';
import { MessageFeed } from '../../../src/wire/io/message-feed.js';
import { splice } from '../../../src/wire/json/splice.js';
import type { NotificationEnvelope } from '../../../src/wire/mcp/envelope.js';
import type { Outcome } from '../../../src/wire/mcp/outcome.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { FakeClock } from '../../support/fake-clock.js';
import { lineOf, type Message, RecordingSink, requestOf, scan } from '../../support/wire.js';

export const TIMEOUTS: RequestTimeouts = { idleMs: 1_000, maxMs: 5_000 };

/** A bridge to a child that the test plays, with all that came of it written down. */
export function bridging({
  maxFrameBytes = 64 * 1024,
  maxUnwrittenBytes = 1_000,
  giveUp = false,
  isObserved = false,
  isPaused = (): boolean => false,
  unfinishedLines = createLineMemory(Number.POSITIVE_INFINITY),
} = {}) {
  const clock = new FakeClock();
  const output = new RecordingSink();
  const requests: ServerRequest[] = [];
  const notifications: NotificationEnvelope[] = [];
  const junk: [line: string, reason: string][] = [];
  /** What the bridge reports of the server's health. */
  const health: string[] = [];
  const passed: [direction: string, line: string][] = [];
  const messages = new MessageFeed(() => clock.now());
  if (isObserved)
    messages.observe(({ direction, message }) => passed.push([direction, Buffer.from(splice(message)).toString()]));
  const bridge: Bridge = new Bridge({
    clock,
    scan,
    output,
    maxFrameBytes,
    maxUnwrittenBytes,
    unfinishedLines,
    isPaused,
    feed: { messages, connection: { number: 1 } },
    events: {
      request: (request) => requests.push(request),
      notification: (notification) => notifications.push(notification),
      junk: (line, reason) => junk.push([Buffer.from(line).toString(), reason]),
      silent: () => health.push('silent'),
      violated: (reason) => {
        health.push(reason);
        if (giveUp) bridge.close('exited');
      },
    },
  });
  const stdout = bridge.open();
  /** The child writes lines. */
  const say = (...messages: (Message | string)[]) => {
    for (const message of messages) copyInto(stdout, lineOf(message));
  };
  return { bridge, stdout, clock, output, passed, requests, notifications, junk, health, say };
}

/** A request handler that remembers, and says how often it was settled. */
export class Listener implements RequestHandler {
  readonly outcomes: Outcome[] = [];
  readonly reports: string[] = [];

  settle(outcome: Outcome): void {
    this.outcomes.push(outcome);
  }

  progress({ bytes, span }: NotificationEnvelope): void {
    this.reports.push(Buffer.from(bytes.subarray(span.start, span.end)).toString());
  }

  /** In short: the raw result or error, or why there is none and whether the request was sent. */
  get told(): string[] {
    return this.outcomes.map((outcome) => {
      if (outcome.kind === 'failed') return `${outcome.reason} ${outcome.sent ? 'sent' : 'unsent'}`;
      const { bytes, result, error } = outcome.response;
      const span = result ?? error ?? { start: 0, end: 0 };
      return Buffer.from(bytes.subarray(span.start, span.end)).toString();
    });
  }
}

export const CALL = '{"jsonrpc":"2.0","id":"c-1","method":"tools/call","params":{"name":"k__read"}}';

/** Sends a call and remembers how it went on. */
export function sendCall(
  bridge: Bridge,
  call: string | Message = CALL,
  timeouts = TIMEOUTS,
): { listener: Listener; sent: SentRequest | undefined } {
  const listener = new Listener();
  return { listener, sent: bridge.send(new EnvelopeRequest(requestOf(call)), [], timeouts, listener) };
}

/** A text is a member of the result, since a result is an object. */
export function answerTo(id: unknown, result: unknown = {}): Message {
  return { jsonrpc: '2.0', id, result: typeof result === 'string' ? { text: result } : result };
}

export function progressOf(progressToken: unknown, progress: unknown): Message {
  return { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } };
}
