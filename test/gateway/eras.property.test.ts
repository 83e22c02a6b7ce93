import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { repetitions } from '../support/repetitions.js';
import { type ScriptedClient, type ScriptedServer, scriptGateway } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

/*
 * Two clients and two servers, one of each era, and everything that can come between a call and its answer. The numbers are
 * those of the invariants in the design: 1, 2 one answer under the client's own id; 3 nobody sees what is another's; 4 no id
 * of a client reaches a server; 7 progress grows; 17, 18 a server's question is answered once; 20 nobody is asked for what he
 * did not declare; 21, 22, 23 the members of one era never reach the other; 31 no request stays open.
 */

const CAPABILITIES = { sampling: {}, elicitation: { form: {} } };
const ERA = 'io.modelcontextprotocol/';
const TIMEOUT_MS = 60_000;

type Op =
  | { readonly kind: 'call'; readonly client: 0 | 1; readonly server: 0 | 1 }
  | { readonly kind: 'ask' | 'ask-undeclared' | 'answer' | 'fail' | 'progress' | 'log'; readonly pick: number }
  | { readonly kind: 'input' | 'input-again' | 'cancel'; readonly client: 0 | 1; readonly pick: number }
  | { readonly kind: 'crash' | 'garbage'; readonly server: 0 | 1 }
  | { readonly kind: 'wait'; readonly ms: number };

const side = fc.constantFrom<0 | 1>(0, 1);
const pick = fc.nat({ max: 20 });
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('call' as const), client: side, server: side }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('ask' as const, 'ask-undeclared', 'answer', 'answer', 'fail', 'progress', 'log'),
      pick,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('input' as const, 'input', 'input-again', 'cancel'),
      client: side,
      pick,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('crash' as const, 'garbage'), server: side }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(15, 1_000) }) },
);

/** A client as its user sees it: what it asked for, what it was asked, and what came back. */
class Person {
  readonly client: ScriptedClient;
  readonly isModern: boolean;
  readonly marker: string;
  /** The ids of all requests, and those that were cancelled. */
  readonly sent: (number | string)[] = [];
  readonly cancelled = new Set<number | string>();
  /** By the id of the request: its params, for those that come back. */
  readonly params = new Map<number | string, Message>();
  /** Requests for input that were not answered: by the id of the answered request, or of the server's request. */
  readonly questions: Message[] = [];
  readonly lastRetries: Message[] = [];
  readonly messages: Message[] = [];
  #next = 1;

  constructor(client: ScriptedClient, isModern: boolean) {
    this.client = client;
    this.isModern = isModern;
    this.marker = isModern ? 'MODERN' : 'LEGACY';
  }

  call(server: string): void {
    this.request({ name: `${server}__t`, arguments: { marker: this.marker, n: this.#next } });
  }

  request(params: Message): void {
    // Ids of both types, which no server may see.
    const id = this.#next % 2 === 0 ? `own-${this.marker}-${this.#next}` : 70_000 + this.#next;
    this.#next += 1;
    this.sent.push(id);
    this.params.set(id, params);
    const withToken = { ...params, _meta: { progressToken: `token-${this.marker}-${id}` } };
    if (this.isModern) this.client.modernRequest(id, 'tools/call', withToken, CAPABILITIES);
    else this.client.request(id, 'tools/call', withToken);
  }

  /** Reads what came. */
  read(): void {
    for (const message of this.client.received.take()) {
      this.messages.push(message);
      if (message.result?.resultType === 'input_required') this.questions.push(message);
      else if (message.id !== undefined && message.method !== undefined) this.questions.push(message);
    }
  }

  /** Answers a question. */
  answer(at: number): void {
    const [question] = this.questions.splice(at % Math.max(1, this.questions.length), 1);
    if (question === undefined) return;
    const content = { marker: this.marker };
    if (!this.isModern) {
      const result = question.method === 'elicitation/create' ? { action: 'accept', content } : { role: 'x', content };
      this.client.say({ jsonrpc: '2.0', id: question.id, result });
      return;
    }
    const { inputRequests, requestState } = question.result;
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests ?? {}).map((key) => [key, { action: 'accept', content }]),
    );
    const retry = { ...this.params.get(question.id), inputResponses, requestState };
    this.lastRetries.push(retry);
    this.request(retry);
  }

  again(at: number): void {
    const retry = this.lastRetries[at % Math.max(1, this.lastRetries.length)];
    if (retry !== undefined) this.request(retry);
  }

  cancel(at: number): void {
    const answered = new Set(this.messages.map(({ id }) => id));
    const open = this.sent.filter((id) => !answered.has(id));
    const id = open[at % Math.max(1, open.length)];
    if (id === undefined) return;
    this.cancelled.add(id);
    this.client.cancel(id);
  }
}

/** A server as its author sees it. */
class Side {
  readonly server: ScriptedServer;
  readonly isModern: boolean;
  readonly received: Message[] = [];
  /** Calls that were neither answered nor cancelled, of the present process. */
  open: Message[] = [];
  /** The ids of its own requests, and how often each was answered. */
  readonly asked = new Map<string, number>();
  #next = 1;
  #progress = 0;

  constructor(server: ScriptedServer, isModern: boolean) {
    this.server = server;
    this.isModern = isModern;
  }

  read(): void {
    for (const message of this.server.child.received.take()) {
      this.received.push(message);
      if (message.method === 'tools/call') this.open.push(message);
      if (message.method === 'notifications/cancelled') {
        this.open = this.open.filter(({ id }) => id !== message.params.requestId);
      }
      if (message.method === undefined && this.asked.has(String(message.id))) {
        this.asked.set(String(message.id), (this.asked.get(String(message.id)) ?? 0) + 1);
      }
    }
  }

  ask(at: number, method: string): void {
    const call = this.open[at % Math.max(1, this.open.length)];
    if (call === undefined) return;
    const { marker } = call.params.arguments;
    // What a server tells a client of its own era is passed on as it is, its faults included.
    if (method === 'roots/list' && this.isModern && marker === 'MODERN') return;
    const params = { message: marker, requestedSchema: { type: 'object', properties: {} } };
    if (this.isModern) {
      this.#take(call);
      const result = {
        resultType: 'input_required',
        inputRequests: { k: { method, params } },
        requestState: `${marker}"\\`,
      };
      this.server.child.say({ jsonrpc: '2.0', id: call.id, result });
      return;
    }
    const id = `ask-${this.#next}`;
    this.#next += 1;
    this.asked.set(id, 0);
    this.server.child.say({ jsonrpc: '2.0', id, method, params });
  }

  answer(at: number, isError: boolean): void {
    const call = this.open[at % Math.max(1, this.open.length)];
    if (call === undefined) return;
    this.#take(call);
    const content = [{ type: 'text', text: call.params.arguments.marker }];
    const answer = isError
      ? { error: { code: -32002, message: call.params.arguments.marker } }
      : { result: { content } };
    const { result } = answer;
    this.server.child.say({
      jsonrpc: '2.0',
      id: call.id,
      ...(result && this.isModern ? { result: { resultType: 'complete', ...result } } : answer),
    });
  }

  progress(at: number): void {
    const call = this.open[at % Math.max(1, this.open.length)];
    if (call === undefined) return;
    this.#progress += 1;
    const params = {
      progressToken: call.params._meta.progressToken,
      progress: this.#progress,
      message: call.params.arguments.marker,
    };
    this.server.child.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
  }

  log(): void {
    this.server.child.say({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'log' } });
  }

  #take(call: Message): void {
    this.open = this.open.filter((each) => each !== call);
  }
}

async function play(ops: readonly Op[]): Promise<void> {
  const common = { tools: ['t'], hasBridge: true, sharing: 'profile', clientCapabilities: CAPABILITIES } as const;
  const hello = { capabilities: { tools: {}, logging: {} } };
  const script = scriptGateway({ servers: { old: { ...common, hello }, new: { ...common, hello, isModern: true } } });
  const { clock, server, startAll, connect, ids } = script;
  await startAll();
  const [legacy, modern] = [connect(), connect({ principal: 'another' })];
  legacy.initialize('2025-11-25', CAPABILITIES, 'm');
  modern.modernRequest('first', 'tools/list', {}, CAPABILITIES);
  await flush();
  // Each principal has processes of its own.
  const sides = new Map<string, Side>();
  for (const id of ids()) {
    const each = server(id);
    if (each.generation === 0) await each.start();
    await flush();
    each.child.received.take();
    sides.set(id, new Side(each, each.script.isModern === true));
  }
  modern.received.take();
  const people = [new Person(legacy, false), new Person(modern, true)] as const;
  const all = [...sides.values()];
  const settle = async () => {
    for (let turn = 0; turn < 3; turn += 1) {
      await flush();
      for (const each of all) each.read();
      for (const person of people) person.read();
    }
  };
  for (const step of ops) {
    if (step.kind === 'call') people[step.client].call(step.server === 0 ? 'old' : 'new');
    if (step.kind === 'ask') all[step.pick % all.length]?.ask(step.pick, 'elicitation/create');
    if (step.kind === 'ask-undeclared') all[step.pick % all.length]?.ask(step.pick, 'roots/list');
    if (step.kind === 'answer') all[step.pick % all.length]?.answer(step.pick, false);
    if (step.kind === 'fail') all[step.pick % all.length]?.answer(step.pick, true);
    if (step.kind === 'progress') all[step.pick % all.length]?.progress(step.pick);
    if (step.kind === 'log') all[step.pick % all.length]?.log();
    if (step.kind === 'input') people[step.client].answer(step.pick);
    if (step.kind === 'input-again') people[step.client].again(step.pick);
    if (step.kind === 'cancel') people[step.client].cancel(step.pick);
    if (step.kind === 'garbage') all[step.server]?.server.child.say('{"jsonrpc":"2.0","id":{}}');
    if (step.kind === 'wait') clock.advance(step.ms);
    if (step.kind === 'crash') {
      const crashed = all[step.server];
      crashed?.server.crash();
      if (crashed !== undefined) crashed.open = [];
      await crashed?.server.start();
    }
    await settle();
  }
  // 31: whatever is still open ends with the timeouts, of which a client's absence is the longest.
  clock.advance(TIMEOUT_MS * 11);
  await settle();
  clock.advance(TIMEOUT_MS);
  await settle();
  for (const person of people) check(person);
  for (const each of all) checkServer(each);
  modern.session.close();
  legacy.session.close();
}

function check({ sent, cancelled, messages, isModern, marker }: Person): void {
  const other = isModern ? 'LEGACY' : 'MODERN';
  for (const id of sent) {
    const answers = messages.filter((message) => message.id === id && message.method === undefined);
    // 1, 2: each request has one answer, or was cancelled.
    expect(answers.length, `answers to ${id}`).toBe(cancelled.has(id) ? Math.min(answers.length, 1) : 1);
  }
  const last = new Map<string, number>();
  for (const message of messages) {
    const text = JSON.stringify(message);
    expect(text).not.toContain(other); // 3
    if (message.method === 'roots/list') expect.fail('asked for what it did not declare'); // 20
    if (message.method === 'notifications/progress') {
      const { progressToken, progress } = message.params;
      expect(progressToken).toContain(marker);
      expect(progress).toBeGreaterThan(last.get(progressToken) ?? 0); // 7
      last.set(progressToken, progress);
    }
    if (isModern) {
      expect(message.id !== undefined && message.method !== undefined, text).toBe(false); // 21
      if (message.result !== undefined) expect(message.result.resultType, text).toBeDefined();
      expect([-32002, -32042]).not.toContain(message.error?.code);
      expect(
        Object.keys(message.result?.inputRequests ?? {}).length > 0 || message.result?.resultType !== 'input_required',
      ).toBe(true);
      for (const { method } of Object.values<Message>(message.result?.inputRequests ?? {}))
        expect(method).not.toBe('roots/list');
    } else {
      expect(message.result ?? {}, text).not.toHaveProperty('resultType'); // 22
      expect(text).not.toContain('acknowledged');
    }
  }
}

function checkServer({ received, asked, isModern }: Side): void {
  for (const message of received) {
    const text = JSON.stringify(message);
    expect(text).not.toMatch(/"(?:id|progressToken|requestId)":(?:"(?:own|token)-|70\d\d\d)/); // 4
    if (message.method === undefined || message.id === undefined) continue;
    const reserved = Object.keys(message.params?._meta ?? {}).filter((key) => key.startsWith(ERA));
    if (isModern)
      expect(reserved).toEqual(expect.arrayContaining([`${ERA}protocolVersion`, `${ERA}clientCapabilities`]));
    else expect(reserved).toEqual([]); // 23
    if (!isModern) expect(message.params ?? {}).not.toHaveProperty('requestState');
    if (isModern && message.params?.requestState !== undefined)
      expect(message.params.requestState).toMatch(/^(?:LEGACY|MODERN)"\\$/); // 16
  }
  // 17, 18: at most once each; a process that died needs no answers.
  for (const [id, times] of asked) expect(times, id).toBeLessThanOrEqual(1);
}

describe('clients and servers of both eras', () => {
  it('keep their promises to each other, whatever happens between a call and its answer', async () => {
    await fc.assert(fc.asyncProperty(fc.array(op, { minLength: 5, maxLength: 40 }), play), {
      numRuns: repetitions({ short: 60, full: 1_000 }),
    });
  });
});
