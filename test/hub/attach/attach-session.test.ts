import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttachSession, ClientLines, fateOf } from '../../../src/hub/attach/attach-session.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { LineDecoder } from '../../../src/wire/io/line-decoder.js';
import { notificationMessage } from '../../../src/wire/jsonrpc/message.js';
import { repetitions } from '../../support/repetitions.js';
import { bytesOf, type Message } from '../../support/wire.js';
import { ModelHub } from '../model-hub.js';

/** A session with a client and one hub after another. */
class Served {
  readonly session: AttachSession;
  hub = new ModelHub(0);
  moves = 0;
  readonly closings: string[] = [];
  #resumed = 0;
  #text = '';

  constructor() {
    this.session = new AttachSession({
      toClient: (bytes) => {
        this.#text += Buffer.from(bytes).toString();
        return false;
      },
      toHub: (bytes) => this.hub.read(bytes),
      onMoved: () => {
        this.moves += 1;
      },
      onClosed: (because) => this.closings.push(because),
    });
    this.session.attached();
  }

  say(...messages: Message[]): void {
    for (const message of messages)
      this.session.fromClient(bytesOf(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`));
  }

  /** The client reads what the hub has written, or so many bytes of it. */
  read(maxBytes = Number.MAX_SAFE_INTEGER): void {
    copyInto(this.session, this.hub.take(maxBytes));
  }

  next(): void {
    this.session.detached();
    this.#resumed += 1;
    this.hub = new ModelHub(this.#resumed);
    this.session.attached();
  }

  /** Messages that the client got since the last time. */
  take(): Message[] {
    const lines = this.#text.split('\n').filter((line) => line !== '');
    this.#text = '';
    return lines.map((line) => JSON.parse(line));
  }

  get text(): string {
    return this.#text;
  }

  /** The handshake, and both subscriptions. */
  begin(): void {
    this.say({ id: 0, method: 'initialize', params: {} }, { method: 'notifications/initialized' });
    this.say({ id: 1, method: 'resources/subscribe', params: { uri: 'u:1' } });
    while (this.hub.pending.length > 0) this.hub.answer(0);
    this.read();
    this.take();
  }
}

const methods = (hub: ModelHub) => hub.lines.map((line) => JSON.parse(line).method);
const STATE = ['initialize', 'notifications/initialized', 'resources/subscribe'];
const call = (id: number) => ({ id, method: 'tools/call', params: { name: 'x' } });

describe('the state of a session', () => {
  it('F108: reaches the next hub in its order, although the hub before it died after a part of it', () => {
    const served = new Served();
    served.begin();
    served.next();
    // One frame: the slot of `initialize`.
    served.read(8 + 'initialize\n'.length);
    served.next();
    expect(methods(served.hub)).toEqual(STATE);
    served.hub.answer(0);
    served.hub.answer(0);
    served.read();
    expect(served.take().filter(({ id }) => id !== undefined)).toEqual([]);
    expect(served.session.inFlight).toBe(0);
  });

  it('has the first handshake only, since a hub refuses another one', () => {
    const served = new Served();
    served.begin();
    served.say({ id: 2, method: 'initialize', params: { second: true } });
    served.hub.answer(0);
    served.read();
    served.next();
    expect(methods(served.hub)).toEqual(STATE);
    expect(JSON.parse(served.hub.lines[0] ?? '').params).toEqual({});
  });

  it('has a subscription with a URI of any length, until the client ends it', () => {
    const served = new Served();
    served.begin();
    const params = { uri: `u:${'x'.repeat(200_000)}` };
    served.say({ id: 2, method: 'resources/subscribe', params });
    served.hub.answer(0);
    served.read();
    expect(served.take()).toMatchObject([{ id: 2, result: {} }]);
    served.next();
    expect(methods(served.hub)).toEqual([...STATE, 'resources/subscribe']);
    while (served.hub.pending.length > 0) served.hub.answer(0);
    served.say({ id: 3, method: 'resources/unsubscribe', params });
    served.hub.answer(0);
    served.read();
    served.next();
    expect(methods(served.hub)).toEqual(STATE);
  });
});

describe('an open subscription of revision 2026-07-28', () => {
  const METHOD = 'subscriptions/listen';
  const listen = (id: number) => ({ id, method: METHOD, params: { notifications: {} } });
  const acknowledge = ({ hub }: Served) => hub.pending[0]?.reply.send(notificationMessage('acknowledged'));
  const opened = () => {
    const served = new Served();
    served.say(listen(1));
    acknowledge(served);
    served.read();
    expect(served.take()).toEqual([{ jsonrpc: '2.0', method: 'acknowledged' }]);
    return served;
  };

  it('does not keep its client at a hub, and goes on at the next one without a second acknowledgment', () => {
    const served = opened();
    expect(served.session.inFlight).toBe(0);
    served.hub.move();
    served.read();
    expect(served.moves).toBe(1);
    served.next();
    expect(methods(served.hub)).toEqual([METHOD]);
    acknowledge(served);
    acknowledge(served);
    served.read();
    expect(served.take()).toEqual([{ jsonrpc: '2.0', method: 'acknowledged' }]);
  });

  it('F165: goes on when its hub ends, and not when it has ended itself', () => {
    const served = opened();
    served.hub.end();
    served.read();
    served.next();
    expect(methods(served.hub)).toEqual([METHOD]);
    acknowledge(served);
    served.hub.answer(0);
    served.read();
    expect(served.take()).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
    served.next();
    expect(served.hub.lines).toEqual([]);
  });

  it('is asked for again if its hub died before the acknowledgment', () => {
    const served = new Served();
    served.say(listen(1));
    served.next();
    acknowledge(served);
    served.read();
    expect(served.take()).toEqual([{ jsonrpc: '2.0', method: 'acknowledged' }]);
  });
});

describe('a session that moves to another hub', () => {
  it('waits until the last answer is read to its end', () => {
    const served = new Served();
    served.begin();
    served.say(call(2));
    served.hub.move();
    served.hub.answer(0, { text: 'x'.repeat(300_000) });
    served.read(200_000);
    expect([served.moves, served.session.inFlight]).toEqual([0, 0]);
    served.read();
    expect(served.moves).toBe(1);
    expect(served.take()).toMatchObject([{ id: 2, result: {} }]);
  });

  it('waits until a frame has come whole that answers nothing', () => {
    const served = new Served();
    served.begin();
    served.hub.move();
    served.hub.notify();
    served.read(8 + '\n'.length + 10);
    expect(served.moves).toBe(0);
    served.read();
    expect([served.moves, served.take().length]).toEqual([1, 1]);
  });

  it('leaves at once when nothing is in flight', () => {
    const served = new Served();
    served.begin();
    served.hub.move();
    served.read();
    expect(served.moves).toBe(1);
  });
});

describe('a hub that ends a session in order', () => {
  it('leaves what it has not answered to the attach process, which answers it', () => {
    const served = new Served();
    served.begin();
    served.say(call(2), { id: 3, method: 'tools/list' });
    served.hub.end('stopped');
    served.read();
    expect([served.closings, served.session.inFlight]).toEqual([['stopped'], 2]);
    served.next();
    expect(served.take()).toMatchObject([{ id: 2, result: { isError: true } }]);
    expect(methods(served.hub)).toEqual([...STATE, 'tools/list']);
  });
});

describe('a hub that dies within a large answer', () => {
  it('leaves a broken line to the client, and an answer to the same request', () => {
    const served = new Served();
    served.begin();
    served.say(call(2));
    served.hub.answer(0, { text: 'x'.repeat(300_000) });
    served.read(200_000);
    served.next();
    const [broken = '', answer = '', rest] = served.text.split('\n');
    expect(() => JSON.parse(broken)).toThrow();
    expect(JSON.parse(answer)).toMatchObject({ id: 2, result: { isError: true } });
    expect(rest).toBe('');
  });

  it('leaves nothing of an answer that would have come whole', () => {
    const served = new Served();
    served.begin();
    served.say(call(2));
    served.hub.answer(0, { text: 'x'.repeat(10_000) });
    served.read(9_000);
    served.next();
    expect(served.take()).toMatchObject([{ id: 2, result: { isError: true } }]);
  });
});

describe('a line of the client', () => {
  it('that it has begun goes on at the next hub', () => {
    const served = new Served();
    served.begin();
    served.session.fromClient(bytesOf('{"jsonrpc":"2.0","id":2,'));
    served.next();
    served.session.fromClient(bytesOf('"method":"tools/list"}\n'));
    expect(methods(served.hub)).toEqual([...STATE, 'tools/list']);
  });
});

const MIB = 1024 * 1024;

function cutting() {
  const lines: string[] = [];
  const cut: number[] = [];
  const reader = new ClientLines((pieces, isCut) => {
    if (isCut) cut.push(lines.length);
    lines.push(Buffer.concat(pieces).toString('latin1'));
  });
  return { reader, lines, cut };
}

describe('the lines of a client', () => {
  it('are those that the hub counts, however the stream is cut', () => {
    const bytes = fc.array(fc.constantFrom(0x0a, 0x0a, 0x0d, 0x20, 0x09, 0x61, 0xc3, 0x00), { maxLength: 80 });
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(80), { maxLength: 8 }), fc.array(fc.nat(80)), (content, cuts, otherCuts) => {
        const all = Buffer.from(content);
        const { reader, lines } = cutting();
        for (const piece of piecesOf(all, cuts)) reader.add(piece);
        const counted: string[] = [];
        const decoder = new LineDecoder({
          maxLineBytes: 1024,
          sink: { line: (from, start, end) => counted.push(Buffer.from(from.subarray(start, end)).toString('latin1')) },
        });
        for (const piece of piecesOf(all, otherCuts)) copyInto(decoder, piece);
        // The hub skips white space before a line, which belongs to the line all the same.
        expect(lines.map((line) => line.replaceAll('\r', ' ').replace(/^[ \t]+/, ''))).toEqual(counted);
        const rest = all.subarray(all.lastIndexOf(0x0a) + 1);
        expect(Buffer.concat(reader.unfinished)).toEqual(rest);
      }),
      { numRuns: repetitions({ full: 3_000, short: 100 }) },
    );
  });

  it('that are longer than any hub takes are kept by their beginning, and counted', () => {
    const { reader, lines, cut } = cutting();
    reader.add(Buffer.from('{"id":1}\n{"id":2,'));
    const piece = Buffer.alloc(MIB, 'x');
    for (let count = 0; count < 65; count += 1) reader.add(piece);
    expect(Buffer.concat(reader.unfinished).length).toBeLessThanOrEqual(1024);
    reader.add(Buffer.from('\n{"id":3}\n'));
    expect(lines).toEqual(['{"id":1}', '{"id":2,', '{"id":3}']);
    expect(cut).toEqual([1]);
  });
});

function piecesOf(all: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.filter((cut) => cut <= all.length).sort((one, other) => one - other), all.length];
  return at.slice(1).map((end, index) => all.subarray(at[index], end));
}

function fate(message: unknown, isCut = false) {
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  const half = Math.floor(text.length / 2);
  const pieces = [Buffer.from(text.slice(0, half)), Buffer.from(text.slice(half))];
  const found = fateOf({ pieces, isCut, isReplay: false });
  return found.kind === 'answered' ? JSON.parse(found.answer) : found.kind;
}

const FAILURE = { reason: 'hub_exited', code: 'TL-CALL-HUB-EXITED', sent: true, outcome: 'unknown' };
const lostCall = (id: unknown, params: object = { name: 'x' }) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params,
});

describe('a line whose hub has died', () => {
  it.each([
    'initialize',
    'ping',
    'tools/list',
    'prompts/get',
    'resources/read',
    'logging/setLevel',
    'tasks/get',
    'subscriptions/listen',
  ])('is sent again if it is a request that may be served twice: %s', (method) => {
    expect(fate({ jsonrpc: '2.0', id: 1, method })).toBe('again');
  });

  it('is answered with a tool result if it is a call, under the id as the client wrote it', () => {
    const _meta = { 'trunkline/failure': FAILURE };
    expect(fate(lostCall('a'))).toMatchObject({ jsonrpc: '2.0', id: 'a', result: { isError: true, _meta } });
    const large = fateOf({
      pieces: [Buffer.from('{"method":"tools/call","id":9007199254740993,"params":{}}')],
      isCut: false,
      isReplay: false,
    });
    expect(large).toMatchObject({ kind: 'answered', answer: expect.stringContaining('"id":9007199254740993,') });
  });

  it('is answered as its revision requires if it is a call without a handshake', () => {
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    expect(fate(lostCall(1, { name: 'x', _meta })).result).toMatchObject({ resultType: 'complete', isError: true });
    expect(fate(lostCall(1)).result).not.toHaveProperty('resultType');
  });

  it('is answered with an error if it was to become a task, or is any other request', () => {
    const error = { code: -32603, data: FAILURE };
    expect(fate(lostCall(1, { name: 'x', task: {} }))).toMatchObject({ id: 1, error });
    expect(fate({ jsonrpc: '2.0', id: 2, method: 'tasks/cancel' })).toMatchObject({ id: 2, error });
    expect(fate('{"jsonrpc":"2.0","id":3,', true)).toMatchObject({ id: null, error });
  });

  it('is dropped if it is an answer or a notification, except for the end of the handshake', () => {
    expect(fate({ jsonrpc: '2.0', id: 1, result: {} })).toBe('dropped');
    expect(fate({ jsonrpc: '2.0', method: 'notifications/cancelled' })).toBe('dropped');
    expect(fate({ jsonrpc: '2.0', method: 'notifications/initialized' })).toBe('again');
  });

  it('is a batch as a whole: sent again if all of it may be, else answered in one array', () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const note = { jsonrpc: '2.0', method: 'notifications/x' };
    expect(fate([list, note])).toBe('again');
    expect(fate([note])).toBe('dropped');
    expect(fate([list, lostCall(2), note])).toMatchObject([
      { id: 1, error: {} },
      { id: 2, result: { isError: true } },
    ]);
  });

  it('is sent again if it is no JSON, since the next hub says what is wrong with it', () => {
    expect(fate('{"half')).toBe('again');
  });
});
