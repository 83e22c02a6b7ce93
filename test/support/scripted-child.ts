// One server that the test plays, connected to a real `StdioBridge` in memory.
import { copyInto } from '../../src/io/byte-reader.js';
import type { NotificationEnvelope, RequestEnvelope } from '../../src/mcp/envelope.js';
import type { Clock } from '../../src/timing/clock.js';
import { answerLegacyServer, openLegacyConnection } from '../../src/upstream/legacy/legacy-connection.js';
import type { UpstreamConnection } from '../../src/upstream/port.js';
import { StdioBridge } from '../../src/upstream/stdio/stdio-bridge.js';
import { lineOf, type Message, RecordingSink, scan } from './wire.js';

export interface ScriptedChildOptions {
  readonly clock: Clock;
  /** Members of its answer to `initialize`. */
  readonly hello?: Message;
  /** Results of `tools/list` as raw JSON, one a page; the cursor of page n is "n". */
  readonly pages?: readonly string[];
  /** The answers to other list requests by method: a result, or an error if it has a `code`. */
  readonly lists?: Readonly<Record<string, Message>>;
  readonly notified?: (notification: NotificationEnvelope) => void;
  /** Called with the requests of the server other than ping. */
  readonly asked?: (request: RequestEnvelope) => void;
  /** Called when several requests in a row have timed out. */
  readonly silent?: () => void;
}

/**
 * A server that the test plays, at the other end of a real bridge. It answers `initialize` and list requests by itself;
 * the test answers everything else.
 */
export class ScriptedChild {
  readonly bridge: StdioBridge;
  /** The messages that were written to it. */
  readonly stdin = new RecordingSink();
  /** Whether it answers `tools/list` by itself. */
  listsTools = true;
  readonly #hello: Message;
  readonly #pages: readonly string[];
  readonly #lists: Readonly<Record<string, Message>>;

  constructor({
    clock,
    hello = {},
    pages = ['{"tools":[]}'],
    lists = {},
    notified = () => {},
    asked = () => {},
    silent = () => {},
  }: ScriptedChildOptions) {
    this.#hello = hello;
    this.#pages = pages;
    this.#lists = lists;
    this.stdin.onLine = (line) => this.#read(JSON.parse(line));
    this.bridge = new StdioBridge({
      clock,
      scan,
      output: this.stdin,
      maxFrameBytes: 1024 * 1024,
      maxUnwrittenBytes: 1024 * 1024,
      events: {
        request: (request) => {
          if (!answerLegacyServer(this.bridge, request)) asked(request);
        },
        notification: notified,
        junk: () => {},
        silent,
        offended: () => {},
      },
    });
  }

  async connect(generation = 1): Promise<UpstreamConnection> {
    const profile = { clientInfo: { name: 'trunkline', version: '0' }, capabilities: {} };
    const handshake = await openLegacyConnection(this.bridge, generation, profile, 60_000);
    if (handshake.kind === 'failed') throw new Error(handshake.reason);
    return handshake.connection;
  }

  /** The tool calls that reached it, oldest first. */
  get calls(): Message[] {
    return this.stdin.messages.filter(({ method }) => method === 'tools/call');
  }

  /** All requests of this method that reached it, oldest first. */
  asked(method: string): Message[] {
    return this.stdin.messages.filter((message) => message.method === method);
  }

  /** Answers the last request of this method that reached it: with a result, or an error if it has a `code`. */
  reply(method: string, answer: Message = {}): void {
    const id = this.asked(method).at(-1)?.id;
    this.say({ jsonrpc: '2.0', id, ...('code' in answer ? { error: answer } : { result: answer }) });
  }

  get cancellations(): Message[] {
    return this.stdin.messages.filter(({ method }) => method === 'notifications/cancelled');
  }

  /** Writes lines to its stdout. */
  say(...messages: (Message | string)[]): void {
    for (const message of messages) copyInto(this.bridge, lineOf(message));
  }

  /** Answers the call that reached it as number `index`. */
  answer(index: number, result: unknown = { content: [] }): void {
    this.say({ jsonrpc: '2.0', id: this.calls[index]?.id, result });
  }

  #read({ id, method, params }: Message): void {
    if (method === 'initialize') {
      const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: {}, ...this.#hello };
      this.say({ jsonrpc: '2.0', id, result });
    }
    if (method === 'tools/list' && this.listsTools) {
      const page = this.#pages[Number(params?.cursor ?? 0)] ?? '{}';
      this.say(`{"jsonrpc":"2.0","id":${id},"result":${page}}`);
    }
    const list = this.#lists[method];
    if (list !== undefined) this.reply(method, list);
  }
}
