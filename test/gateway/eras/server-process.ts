import { expect } from 'vitest';
import type { ScriptedServer } from '../../support/scripted-gateway.js';
import type { ScriptedPeer } from '../../support/scripted-peer.js';
import { flush, type Message } from '../../support/wire.js';
import { ODD, oddText } from './odd-payload.js';
import { type Received, SERVED } from './person.js';

/** A request of the gateway, with the facts that the process knows. */
interface Call {
  readonly message: Message;
  readonly marker: string;
  state: 'open' | 'answered' | 'cancelled' | 'answered late';
}

/** One process of a server, as its author wrote it. */
export class ServerProcess {
  readonly server: ScriptedServer;
  readonly child: ScriptedPeer;
  readonly isModern: boolean;
  readonly received: Received[] = [];
  readonly calls: Call[] = [];
  /** The ids of its own requests, and the number of answers to each. */
  readonly asked = new Map<string, number>();
  /** The marker of the call, by the id of the server's own request. */
  readonly #causes = new Map<string, string>();
  /** Whether it reads and answers nothing. */
  isHung = false;
  /** Whether a fault of the network may have lost messages to it. */
  hasLostMessages = false;
  #isCrashed = false;
  #next = 1;
  #progress = 0;
  #cancelled = new Set<unknown>();

  constructor(server: ScriptedServer) {
    this.server = server;
    this.child = server.child;
    this.isModern = server.script.isModern === true;
  }

  get isDead(): boolean {
    return this.#isCrashed || this.server.isEnded || this.child.connection.isClosed;
  }

  crash(): void {
    this.#isCrashed = true;
    this.server.crash();
  }

  /** Ends together with the gateway, which does not learn about the end. */
  die(): void {
    this.#isCrashed = true;
  }

  /** Stops answering, or continues. When it continues, it answers the requests for lists that came meanwhile. */
  hang(): void {
    this.isHung = !this.isHung;
    this.child.listsTools = !this.isHung;
    if (!this.isHung) this.child.reply('tools/list', { tools: [] });
  }

  read(): Received[] {
    return this.child.received.lines.splice(0).map((line) => {
      const each = { line, message: JSON.parse(line) };
      this.received.push(each);
      this.#take(each);
      return each;
    });
  }

  /** Sends a request to the client of a call, for a declared or an undeclared capability. */
  ask(which: number, isDeclared: boolean): void {
    const call = this.#open(which);
    if (call === undefined) return;
    const { marker } = call;
    // A message to a client of the server's own era is relayed unchanged, with its faults.
    if (!isDeclared && this.isModern) return;
    const method = isDeclared || which % 2 === 0 ? 'elicitation/create' : 'roots/list';
    const mode = isDeclared ? {} : { mode: 'url', url: 'https://x.y/', elicitationId: 'e' };
    const params = { ...mode, message: marker, odd: ODD, requestedSchema: { type: 'object', properties: {} } };
    if (this.isModern) {
      call.state = 'answered';
      const requestState = `${marker}"\\`;
      const result = { resultType: 'input_required', inputRequests: { k: { method, params } }, requestState };
      this.child.say(oddText({ jsonrpc: '2.0', id: call.message.id, result }, `${marker}ask.`));
      return;
    }
    // While a call of another client is in flight, the gateway takes a request for a waiting call as that client's. It
    // cannot know which call of one client waits, and takes the latest.
    // Behind a URL, the answer to the call carries the request, so that there is nothing to guess.
    const isShown = this.server.script.network !== undefined;
    if (!isShown && this.server.backend.clients.size > 1 && this.#awaits(clientOf(marker))) return;
    if (!this.child.canSpeak(isShown ? call.message.id : undefined)) return;
    const id = `ask-${this.#next}`;
    this.#next += 1;
    this.#causes.set(id, marker);
    this.asked.set(id, 0);
    this.child.sayDuring(call.message.id, oddText({ jsonrpc: '2.0', id, method, params }, `${marker}ask.`));
  }

  /** Answers an open call. */
  answer(which: number, isError: boolean): void {
    const call = this.#open(which);
    if (call === undefined) return;
    call.state = 'answered';
    this.#reply(call, isError);
  }

  /** Answers a cancelled call, or an answered one once more. */
  async answerLate(which: number): Promise<void> {
    const over = this.calls.filter(({ state }) => state === 'cancelled' || state === 'answered');
    const call = over[which % Math.max(1, over.length)];
    if (call === undefined || this.isDead) return;
    const { counters } = this.child.connection;
    const before = counters.late;
    const isLate = call.state === 'cancelled' && this.child.canSpeak();
    call.state = 'answered late';
    this.#reply(call, which % 2 === 0);
    await flush();
    expect(counters.late, 'invariant 5').toBe(before + (isLate ? 1 : 0));
  }

  /** Reports progress of any call, sometimes without an increase. */
  progress(which: number): void {
    const call = this.calls[which % Math.max(1, this.calls.length)];
    if (call === undefined || this.isHung) return;
    this.#progress += which % 3;
    const { progressToken } = call.message.params._meta;
    const params = { progressToken, progress: this.#progress, message: call.marker, odd: ODD };
    this.child.say(oddText({ jsonrpc: '2.0', method: 'notifications/progress', params }, call.marker));
  }

  log(): void {
    if (this.isHung) return;
    const params = { level: 'info', data: { odd: ODD } };
    this.child.say(oddText({ jsonrpc: '2.0', method: 'notifications/message', params }, 'log'));
  }

  /** Whether a request to this client is unanswered. */
  #awaits(client: string): boolean {
    return [...this.#causes].some(([id, cause]) => clientOf(cause) === client && this.asked.get(id) === 0);
  }

  #open(which: number): Call | undefined {
    const open = this.isHung ? [] : this.calls.filter(({ state }) => state === 'open');
    return open[which % Math.max(1, open.length)];
  }

  #reply({ message, marker }: Call, isError: boolean): void {
    const isCall = message.method === 'tools/call';
    const type = {
      ...(this.isModern && { resultType: 'complete' }),
      ...(this.isModern && !isCall && { ttlMs: 1, cacheScope: 'public' }),
    };
    const contents = isCall
      ? { content: [{ type: 'text', text: marker, odd: ODD }] }
      : { contents: [{ uri: message.params.uri, text: marker, odd: ODD }] };
    const answer = isError
      ? { error: { code: -32002, message: marker, data: { uri: 'x://', odd: ODD } } }
      : { result: { ...type, odd: ODD, ...contents, _meta: { odd: ODD } } };
    this.child.say(oddText({ jsonrpc: '2.0', id: message.id, ...answer }, marker));
  }

  #take({ line, message }: Received): void {
    const { id, method, params } = message;
    if (method === undefined) {
      const key = String(id);
      if (this.asked.has(key)) this.asked.set(key, (this.asked.get(key) ?? 0) + 1);
    } else if (SERVED.has(method)) {
      const isNew = this.calls.every((call) => call.message.id !== id);
      expect(isNew, `invariant 4: ${line}`).toBe(true);
      this.calls.push({ message, marker: params.marker, state: 'open' });
    } else if (method === 'notifications/cancelled') {
      const { requestId } = params;
      expect(this.#cancelled.has(requestId), `invariant 8: ${line}`).toBe(false);
      this.#cancelled.add(requestId);
      const call = this.calls.find((each) => each.message.id === requestId);
      const isKnown = this.received.some(
        ({ message: { id: sent, method: of } }) => of !== undefined && sent === requestId,
      );
      expect([isKnown, call?.state ?? 'open'], `invariant 8: ${line}`).toEqual([true, 'open']);
      if (call !== undefined) call.state = 'cancelled';
    }
  }
}

/** The client of the call with this marker. */
function clientOf(marker: string): string {
  return marker.slice(0, marker.indexOf('-'));
}
