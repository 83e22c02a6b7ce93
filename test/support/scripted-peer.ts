import type { UpstreamConnection, UpstreamListener } from '../../src/upstream/upstream-connection.js';
import { type Message, RecordingSink } from './wire.js';

/** More bytes than a connection of a test may have unwritten. */
const MANY_BYTES = 1024 * 1024 + 1;

/** Answers that a scripted server gives by itself. */
export interface PeerScript {
  /** Members of its result of `initialize`. */
  readonly hello?: Message;
  /** Whether it speaks the revision without a handshake, and no other. Only behind a real bridge. */
  readonly isModern?: boolean;
  /** Results of `tools/list` as raw JSON, one for each page. The cursor of page n is "n". */
  readonly pages?: readonly string[];
  /** The answers to other lists, by method: a result, or an error if it has a `code`. In place of `pages`, too. */
  readonly lists?: Readonly<Record<string, Message>>;
}

/**
 * An MCP server that the test plays. It performs the handshake and answers for its lists by itself; the test answers
 * everything else. A subclass carries the messages.
 */
export abstract class ScriptedPeer {
  /** The lines that reached the server. */
  readonly received = new RecordingSink();
  /** Whether `tools/list` is answered. */
  listsTools = true;
  readonly #pages: readonly string[];
  readonly #lists: Readonly<Record<string, Message>>;
  readonly #hello: Message;
  readonly #isModern: boolean;

  constructor({ hello = {}, pages = ['{"tools":[]}'], lists = {}, isModern = false }: PeerScript) {
    this.#hello = hello;
    this.#isModern = isModern;
    this.#pages = pages;
    this.#lists = lists;
    this.received.onLine = (line) => this.#read(JSON.parse(line));
  }

  /** Opens the connection of one generation. */
  abstract connect(generation?: number, listener?: Partial<UpstreamListener>): Promise<UpstreamConnection>;

  /** The connection that was opened last. */
  abstract get connection(): UpstreamConnection;

  /** Sends lines to the gateway. */
  abstract say(...messages: (Message | string)[]): void;

  /** Sends a message because of a request. A subclass shows the request if its transport does. */
  sayDuring(_request: unknown, message: Message | string): void {
    this.say(message);
  }

  /** Whether a message about this request, or about none, can be sent at the moment. */
  canSpeak(_request?: unknown): boolean {
    return true;
  }

  /** Pretends that the server reads nothing, and holds more bytes than a bridge sends, or that it reads again. */
  setReading(isReading: boolean): void {
    this.received.unwrittenBytes = isReading ? 0 : MANY_BYTES;
  }

  get initializeResult(): Message {
    return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: {}, ...this.#hello };
  }

  /** The tool calls that reached the server, oldest first. */
  get calls(): Message[] {
    return this.asked('tools/call');
  }

  /** All requests of this method that reached the server, oldest first. */
  asked(method: string): Message[] {
    return this.received.messages.filter((message) => message.method === method);
  }

  get cancellations(): Message[] {
    return this.asked('notifications/cancelled');
  }

  /** Answers the last request of this method: with a result, or an error if there is a `code`. */
  reply(method: string, answer: Message = {}): void {
    const id = this.asked(method).at(-1)?.id;
    this.say({ jsonrpc: '2.0', id, ...('code' in answer ? { error: answer } : { result: answer }) });
  }

  /** Answers the tool call number `index`. */
  answer(index: number, result: unknown = { content: [] }): void {
    this.say({ jsonrpc: '2.0', id: this.calls[index]?.id, result });
  }

  #read({ id, method, params }: Message): void {
    if (this.#isModern) this.#readModern({ id, method, params });
    else if (method === 'initialize') this.say({ jsonrpc: '2.0', id, result: this.initializeResult });
    const list = this.#lists[method];
    if (method === 'tools/list' && this.listsTools && list === undefined) {
      const page = this.#pages[Number(params?.cursor ?? 0)] ?? '{}';
      this.say(`{"jsonrpc":"2.0","id":${id},"result":${page}}`);
    }
    if (list !== undefined) this.reply(method, list);
  }

  /** Answers for discovery and for subscriptions, which never end. */
  #readModern({ id, method, params }: Message): void {
    const { capabilities } = this.initializeResult;
    const { serverInfo, instructions } = this.#hello;
    if (method === 'server/discover') {
      const result = {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities,
        ttlMs: 0,
        cacheScope: 'private',
        ...(instructions && { instructions }),
        ...(serverInfo && { _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo } }),
      };
      this.say({ jsonrpc: '2.0', id, result });
    } else if (method === 'subscriptions/listen') {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
      const acknowledged = 'notifications/subscriptions/acknowledged';
      this.say({ jsonrpc: '2.0', method: acknowledged, params: { _meta, notifications: params.notifications } });
    }
  }
}
