import { describe, expect, it } from 'vitest';
import { AttachSession } from '../../../src/hub/attach/attach-session.js';
import { copyInto } from '../../../src/io/byte-reader.js';
import { notificationMessage } from '../../../src/jsonrpc/message.js';
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
