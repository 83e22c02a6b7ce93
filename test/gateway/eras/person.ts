import { expect } from 'vitest';
import type { Message } from '../../support/wire.js';
import type { ClientWire } from './client-wire.js';
import { ODD, oddText } from './odd-payload.js';

/** Capabilities without roots and without URLs to visit. */
export const CAPABILITIES = { sampling: {}, elicitation: { form: {} } };
export const ERA = 'io.modelcontextprotocol/';

export const VENDOR_NOTIFICATION = 'notifications/vendor/noted';

/** One request, with the facts that the client knows. */
export interface Asked {
  readonly id: number | string;
  readonly method: string;
  readonly params: Message;
  /** Text in the params of the request and in all messages of the server about it. */
  readonly marker: string;
  readonly wantsLog: boolean;
  state: 'open' | 'answered' | 'cancelled';
}

/** A repeated request with input. */
interface Retry {
  readonly method: string;
  readonly params: Message;
}

/** The requests that a single server answers, after some time. */
export const SERVED = new Set(['tools/call', 'resources/read']);

/** Whether the server with this key can list its tools. */
type HasLists = (key: string) => boolean;

/** A message that a client received, also as text. */
export interface Received {
  readonly line: string;
  readonly message: Message;
}

/** A client with its user: its requests, the server requests to it, and the answers. */
export class Person {
  readonly wire: ClientWire;
  readonly isModern: boolean;
  readonly name: string;
  /** Whether the client calls every tool through `trunkline__call_tool`. */
  readonly isSearch: boolean;
  readonly asked = new Map<number | string, Asked>();
  /** Unanswered requests for input: results of its own requests, or server requests. */
  readonly questions: Message[] = [];
  readonly retries: Retry[] = [];
  readonly received: Received[] = [];
  /** Methods of the notifications of each subscription, by the id of its `subscriptions/listen` request. */
  readonly listens = new Map<number | string, string[]>();
  /** Server and original name by exposed name, as in the last list. */
  tools = new Map<string, string>();
  /** The last progress, by token. */
  readonly #progress = new Map<string, number>();
  #next = 1;

  constructor(wire: ClientWire, isModern: boolean, name: string, isSearch: boolean) {
    this.wire = wire;
    this.isModern = isModern;
    this.name = name;
    this.isSearch = isSearch;
  }

  /** Begins the session, if the era has one. */
  initialize(): void {
    if (this.isModern) return;
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: CAPABILITIES,
      clientInfo: { name: 'm', version: '0' },
    };
    this.wire.say(JSON.stringify({ jsonrpc: '2.0', id: 'hello', method: 'initialize', params }));
    this.wire.say(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
    this.wire.read();
  }

  call(which: number, hasLists: HasLists): Asked {
    const [name, wanted] = [...this.tools][which % Math.max(1, this.tools.size)] ?? ['old__t', 'old t'];
    const known = expectable({ wanted }, hasLists);
    const own = { name, arguments: { odd: ODD } };
    const called = this.isSearch ? { name: 'trunkline__call_tool', arguments: own } : own;
    return this.request('tools/call', { ...called, ...known, odd: ODD, ...this.#marked() });
  }

  readResource(key: string): Asked {
    return this.request('resources/read', { uri: `x://${key}/1`, odd: ODD, ...this.#marked() });
  }

  /** Asks for announcements of changed tools, in the way of its era. */
  listen(): void {
    if (!this.isModern) return;
    const { id } = this.request('subscriptions/listen', { notifications: { toolsListChanged: true } });
    this.listens.set(id, []);
  }

  /** Sends a request. A marker in the params is used again, because such a request is a repeated one. */
  request(method: string, { marker = this.#marked().marker, ...params }: Message = {}): Asked {
    // Ids of both types. No server may see either of them.
    const id = this.#next % 2 === 0 ? `own-${this.name}-${this.#next}` : 70_000 + this.#next;
    const wantsLog = this.isModern && this.#next % 3 === 0;
    this.#next += 1;
    const asked: Asked = { id, method, params: { ...params, marker }, marker, wantsLog, state: 'open' };
    this.asked.set(id, asked);
    const _meta = {
      ...(SERVED.has(method) && { progressToken: tokenOf(this.name, id) }),
      odd: ODD,
      ...this.#era,
      ...(wantsLog && { [`${ERA}logLevel`]: 'info' }),
    };
    this.wire.say(oddText({ jsonrpc: '2.0', id, method, params: { ...asked.params, _meta } }, marker));
    return asked;
  }

  /** Sends the servers a notification that MCP does not define. */
  notify(): void {
    const { marker } = this.#marked();
    const params = { marker, _meta: { odd: ODD, ...this.#era } };
    this.wire.say(oddText({ jsonrpc: '2.0', method: VENDOR_NOTIFICATION, params }, marker));
  }

  /** Continues at the next hub, which repeats requests that only read. Their progress starts again. */
  movedToNextHub(): void {
    this.#progress.clear();
  }

  /** Reads the new messages, and checks what depends on their order. */
  read(): Received[] {
    return this.wire.read().map((line) => {
      const each = { line, message: JSON.parse(line) };
      this.received.push(each);
      this.#take(each);
      return each;
    });
  }

  get open(): Asked[] {
    return [...this.asked.values()].filter(({ state }) => state === 'open');
  }

  isOpen(id: number | string): boolean {
    return this.asked.get(id)?.state === 'open';
  }

  cancel(which: number): Asked | undefined {
    const asked = this.open[which % Math.max(1, this.open.length)];
    if (asked === undefined) return undefined;
    asked.state = 'cancelled';
    const params = { requestId: asked.id };
    this.wire.say(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params }));
    return asked;
  }

  /** Answers a server request. */
  answer(which: number, hasLists: HasLists): void {
    const [question] = this.questions.splice(which % Math.max(1, this.questions.length), 1);
    if (question === undefined) return;
    const label = `${this.name}-input.`;
    const content = { odd: ODD };
    if (!this.isModern) {
      const result = question.method === 'elicitation/create' ? { action: 'accept', content } : { roots: [] };
      this.wire.say(oddText({ jsonrpc: '2.0', id: question.id, result }, label));
      return;
    }
    const { inputRequests, requestState } = question.result;
    const asked = this.asked.get(question.id);
    if (asked === undefined) return;
    const response = { action: 'accept', content: { name: label } };
    const inputResponses = Object.fromEntries(Object.keys(inputRequests ?? {}).map((key) => [key, response]));
    const params = expectable(asked.params, hasLists);
    const retry = { method: asked.method, params: { ...params, inputResponses, requestState } };
    this.retries.push(retry);
    this.request(retry.method, retry.params);
  }

  /** Sends a repeated request once more. */
  again(which: number, hasLists: HasLists): void {
    const retry = this.retries[which % Math.max(1, this.retries.length)];
    if (retry !== undefined) this.request(retry.method, expectable(retry.params, hasLists));
  }

  /** Repeats a request with one character of its state changed, if possible of a state that was not used yet. */
  forge(which: number): Asked | undefined {
    const fresh: Retry[] = this.questions.flatMap(({ id, result }) => {
      const asked = this.asked.get(id);
      if (asked === undefined || result?.requestState === undefined) return [];
      return [{ method: asked.method, params: { ...asked.params, requestState: result.requestState } }];
    });
    const known = fresh.length > 0 ? fresh : this.retries;
    const retry = known[which % Math.max(1, known.length)];
    if (retry === undefined) return undefined;
    const state: string = retry.params.requestState;
    const at = (which * 7) % state.length;
    const requestState = `${state.slice(0, at)}${state[at] === 'A' ? 'B' : 'A'}${state.slice(at + 1)}`;
    return this.request(retry.method, { ...retry.params, requestState });
  }

  /** Facts that a modern client states in each of its messages. */
  get #era(): Message {
    if (!this.isModern) return {};
    return {
      [`${ERA}protocolVersion`]: '2026-07-28',
      [`${ERA}clientCapabilities`]: CAPABILITIES,
      [`${ERA}clientInfo`]: { name: 'm', version: '0' },
    };
  }

  #marked(): { readonly marker: string } {
    return { marker: `${this.name}-${this.#next}.` };
  }

  #take({ line, message }: Received): void {
    const { id, method, result } = message;
    if (method === undefined) {
      const asked = this.asked.get(id);
      expect(asked?.state, `invariants 1 and 2: ${line}`).toBe('open');
      if (asked !== undefined) asked.state = 'answered';
      if (result?.resultType === 'input_required') this.questions.push(message);
      if (asked?.method === 'tools/list') this.#learn(message);
      return;
    }
    if (id !== undefined) this.questions.push(message);
    const listen = message.params?._meta?.[`${ERA}subscriptionId`];
    if (listen !== undefined) this.#listened(listen, method, line);
    if (method === 'notifications/progress') {
      const { progressToken, progress } = message.params;
      const open = this.open.map((asked) => tokenOf(this.name, asked.id));
      expect(open, `invariant 6: ${line}`).toContain(progressToken);
      const last = this.#progress.get(progressToken) ?? Number.NEGATIVE_INFINITY;
      expect(progress, `invariant 7: ${line}`).toBeGreaterThan(last);
      this.#progress.set(progressToken, progress);
    }
    if (method === 'notifications/message' && this.isModern) {
      expect(
        this.open.some(({ wantsLog }) => wantsLog),
        `invariant 6: ${line}`,
      ).toBe(true);
    }
  }

  /** Checks that the acknowledgment comes first and once, and that nothing unwanted follows, and nothing after the end. */
  #listened(id: number | string, method: string, line: string): void {
    const methods = this.listens.get(id);
    const wanted =
      methods?.length === 0 ? 'notifications/subscriptions/acknowledged' : 'notifications/tools/list_changed';
    expect([this.asked.get(id)?.state, method], `invariant 25: ${line}`).toEqual(['open', wanted]);
    methods?.push(method);
  }

  #learn({ result }: Message): void {
    const tools: Message[] = ofServers(result?.tools);
    this.tools = new Map(tools.map(({ name, description }) => [name, description]));
  }
}

/** The entries of servers in a list of tools. */
export function ofServers(tools: readonly Message[] = []): Message[] {
  return tools.filter(({ name }) => !name.startsWith('trunkline__'));
}

/** Returns the params with the expected tool. A shortened name may be unknown if its server cannot list the tool. */
function expectable(params: Message, hasLists: HasLists): Message {
  const { wanted, ...others } = params;
  return wanted === undefined || hasLists(wanted.split(' ')[0]) ? params : others;
}

function tokenOf(name: string, id: number | string): string {
  return `token-${name}-${id}`;
}
