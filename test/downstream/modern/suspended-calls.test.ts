import { describe, expect, it } from 'vitest';
import { createSeals } from '../../../src/state/seal.js';
import { splice } from '../../../src/wire/json/splice.js';
import { Asked, elicitation, ModernPeer, PlayedGateway, resultOf } from '../../support/modern-peer.js';
import type { Message } from '../../support/wire.js';

const GATHER_MS = 15;
const EXPIRES_MS = 600_000;

/** Calls a tool whose server sends these requests. Returns the client's answer. */
function suspend(peer: ModernPeer, ...asked: Asked[]): Message {
  const id = peer.call();
  for (const { input } of asked) peer.gateway.last.requireInput(input);
  peer.clock.advance(GATHER_MS);
  return peer.answerTo(id)?.result;
}

function accept(result: Message, content: Message = { name: 'Ann' }): Message {
  const keys = Object.keys(result.inputRequests);
  return {
    inputResponses: Object.fromEntries(keys.map((key) => [key, { action: 'accept', content }])),
    requestState: result.requestState,
  };
}

describe('a call whose server asks the client', () => {
  it('is answered with all that the server asked at once, and goes on when the client comes back', () => {
    const peer = new ModernPeer();
    const [one, other] = [elicitation('Who?'), new Asked('sampling/createMessage', { messages: [], maxTokens: 5 })];
    const result = suspend(peer, one, other);
    expect(result).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) });
    expect(Object.values(result.inputRequests)).toEqual([
      { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: expect.any(Object) } },
      { method: 'sampling/createMessage', params: { messages: [], maxTokens: 5 } },
    ]);
    const again = peer.call(accept(result));
    expect(one.answers).toEqual([{ action: 'accept', content: { name: 'Ann' } }]);
    expect(other.settled).toBe(1);
    expect(peer.gateway.exchanges).toHaveLength(1);
    expect(peer.answerTo(again)).toBeUndefined();
    peer.gateway.last.answer(resultOf({ content: [], big: 1 }));
    expect(peer.answerTo(again)?.result).toMatchObject({ resultType: 'complete', content: [], big: 1 });
  });

  it('asks again for what the client left out, and for what the server asked since', () => {
    const peer = new ModernPeer();
    const [one, other, later] = [elicitation('1'), elicitation('2'), elicitation('3')];
    const first = suspend(peer, one, other);
    const [key] = Object.keys(first.inputRequests);
    peer.gateway.last.requireInput(later.input);
    const again = peer.call({
      inputResponses: { [key ?? '']: { action: 'decline' }, unknown: {} },
      requestState: first.requestState,
    });
    peer.clock.advance(GATHER_MS);
    expect([one.settled, other.settled, later.settled]).toEqual([1, 0, 0]);
    const second = peer.answerTo(again)?.result;
    expect(Object.values<Message>(second.inputRequests).map(({ params }) => params.message)).toEqual(['2', '3']);
    peer.call(accept(second));
    expect([one.settled, other.settled, later.settled]).toEqual([1, 1, 1]);
  });

  it('keeps the answer that comes while no request is open', () => {
    const peer = new ModernPeer();
    const asked = elicitation();
    const result = suspend(peer, asked);
    peer.gateway.last.answer(resultOf({ content: ['late'] }));
    expect(asked.answers).toEqual([{ action: 'cancel' }]);
    const again = peer.call(accept(result));
    expect(peer.answerTo(again)?.result).toMatchObject({ content: ['late'] });
    expect(asked.settled).toBe(1);
  });

  it('is answered without asking if the server answers first', () => {
    const peer = new ModernPeer();
    const id = peer.call();
    const asked = elicitation();
    peer.gateway.last.requireInput(asked.input);
    peer.gateway.last.answer(resultOf({ content: ['quick'] }));
    peer.clock.advance(GATHER_MS);
    expect(peer.received.messages).toHaveLength(1);
    expect(peer.answerTo(id)?.result).toMatchObject({ content: ['quick'] });
    expect(asked.answers).toEqual([{ action: 'cancel' }]);
  });

  it('F154: invariant 18: answers each of equal requests the same, and the server once', () => {
    const peer = new ModernPeer();
    const asked = elicitation();
    const retry = accept(suspend(peer, asked));
    const during = [peer.call(retry), peer.call(retry)];
    peer.gateway.last.answer(resultOf({ content: ['same'] }));
    const after = peer.call(retry);
    const results = [...during, after].map((id) => peer.answerTo(id)?.result);
    expect(results).toEqual([results[0], results[0], results[0]]);
    expect(results[0]).toMatchObject({ content: ['same'] });
    expect(asked.settled).toBe(1);
    peer.clock.advance(60_000);
    expect(peer.answerTo(peer.call(retry))?.error.code).toBe(-32602);
    expect(peer.clock.pending).toBe(0);
  });

  it('F154: tells a client again what it asks for, if the client lost that', () => {
    const peer = new ModernPeer();
    const retry = accept(suspend(peer, elicitation('1')));
    const again = peer.call(retry);
    peer.gateway.last.requireInput(elicitation('2').input);
    peer.clock.advance(GATHER_MS);
    const lost = peer.answerTo(again)?.result;
    expect(peer.answerTo(peer.call(retry))?.result).toEqual(lost);
  });

  it('asks a client only for what it declared', () => {
    const peer = new ModernPeer({ capabilities: { elicitation: { form: {} } } });
    const [sampling, url] = [new Asked('sampling/createMessage'), new Asked('elicitation/create', { mode: 'url' })];
    peer.call();
    for (const { input } of [sampling, url]) peer.gateway.last.requireInput(input);
    peer.clock.advance(GATHER_MS);
    expect([sampling.errors[0]?.code, url.errors[0]?.code]).toEqual([-32601, -32602]);
    expect(peer.received.messages).toEqual([]);
  });

  it('cannot be asked by requests that carry no input, nor by requests of other kinds', () => {
    const peer = new ModernPeer();
    peer.request('completion/complete');
    const asked = elicitation();
    peer.gateway.last.requireInput(asked.input);
    peer.call();
    const vendor = new Asked('vendor/ask');
    peer.gateway.last.requireInput(vendor.input);
    peer.clock.advance(GATHER_MS);
    expect([asked.errors[0]?.code, vendor.errors[0]?.code]).toEqual([-32603, -32601]);
    expect(peer.received.messages).toEqual([]);
  });

  it('relays progress and log messages to the request that is open, under its token', () => {
    const peer = new ModernPeer();
    const result = suspend(peer, elicitation());
    const { last } = peer.gateway;
    const log = Buffer.from('{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}');
    const message = { bytes: log, span: { start: 0, end: log.length }, edits: [] };
    last.send(message);
    expect(peer.received.take()).toHaveLength(1);
    peer.call(accept(result), { 'io.modelcontextprotocol/logLevel': 'warning' });
    last.send(message);
    expect(peer.received.take()).toMatchObject([{ method: 'notifications/message' }]);
    expect(last.logLevel).toBe('warning');
  });
});

describe('invariant 15: the state of a suspended call', () => {
  function suspended() {
    const peer = new ModernPeer();
    const asked = elicitation();
    return { peer, asked, retry: accept(suspend(peer, asked)) };
  }
  const refusal = (peer: ModernPeer, params: Message) => peer.answerTo(peer.call(params))?.error.code;

  it('F155: is refused with any other character in it', () => {
    const { peer, asked, retry } = suspended();
    const state: string = retry.requestState;
    for (let at = 0; at < state.length; at += 1) {
      const other = state[at] === 'a' ? 'b' : 'a';
      const requestState = state.slice(0, at) + other + state.slice(at + 1);
      expect(refusal(peer, { ...retry, requestState })).toBe(-32602);
    }
    expect([asked.settled, peer.gateway.exchanges.length]).toEqual([0, 1]);
  });

  it('F155: is refused with other params, for another tool, and from another principal', () => {
    const { peer, asked, retry } = suspended();
    expect(refusal(peer, { ...retry, arguments: { n: 2 } })).toBe(-32602);
    expect(refusal(peer, { ...retry, name: 'other' })).toBe(-32602);
    const stranger = new ModernPeer({ ...peer, principal: 'else' });
    expect(refusal(stranger, retry)).toBe(-32602);
    expect(asked.settled).toBe(0);
    // Another transport session of the same principal may come back.
    const friend = new ModernPeer(peer);
    friend.call(retry);
    expect(asked.settled).toBe(1);
  });

  it('is refused if it is no string', () => {
    const { peer, retry } = suspended();
    for (const requestState of [5, {}, '']) expect(refusal(peer, { ...retry, requestState })).toBe(-32602);
    expect(peer.gateway.exchanges).toHaveLength(1);
  });

  it('is accepted with members in another order', () => {
    const { peer, asked, retry } = suspended();
    peer.request('tools/call', { arguments: { n: 1 }, ...retry, name: 'ask' });
    expect(asked.settled).toBe(1);
  });

  it('F155: is refused by another process, with another word', () => {
    const { peer, retry } = suspended();
    const other = new ModernPeer({ gateway: new PlayedGateway({ ...peer.gateway.seals, instance: 'bbbbbbbbbb' }) });
    const answer = other.answerTo(other.call(retry));
    expect(answer?.error).toMatchObject({ code: -32602, message: expect.stringContaining('process') });
    expect(peer.gateway.exchanges).toHaveLength(1);
  });

  it('F156: expires, and then the server has its answers and its call is cancelled', () => {
    const peer = new ModernPeer();
    const [form, sampling] = [elicitation(), new Asked('sampling/createMessage')];
    const retry = accept(suspend(peer, form, sampling));
    let cancelled = 0;
    peer.gateway.last.onCancel(() => {
      cancelled += 1;
    });
    peer.clock.advance(EXPIRES_MS);
    expect([form.answers, sampling.errors[0]?.code, cancelled]).toEqual([[{ action: 'cancel' }], -32603, 1]);
    expect(refusal(peer, retry)).toBe(-32602);
    expect([peer.clock.pending, peer.gateway.last.isSettled]).toEqual([0, true]);
  });
});

describe('a client that cancels', () => {
  const cancel = (peer: ModernPeer, requestId: number) =>
    peer.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });

  it('cancels the call with the request that is open', () => {
    const peer = new ModernPeer();
    const again = peer.call(accept(suspend(peer, elicitation())));
    let cancelled = 0;
    peer.gateway.last.onCancel(() => {
      cancelled += 1;
    });
    cancel(peer, again);
    cancel(peer, again);
    expect([cancelled, peer.answerTo(again)]).toEqual([1, undefined]);
  });

  it('does not cancel a call with a request that was answered', () => {
    const peer = new ModernPeer();
    const result = suspend(peer, elicitation());
    cancel(peer, 1);
    expect(peer.gateway.last.isSettled).toBe(false);
    expect(peer.gateway.exchanges).toHaveLength(1);
    peer.call(accept(result));
    expect(peer.gateway.last.isSettled).toBe(false);
  });

  it('ends all its calls when it leaves', () => {
    const peer = new ModernPeer();
    const asked = elicitation();
    suspend(peer, asked);
    peer.pipe.close();
    expect([peer.gateway.last.isSettled, peer.gateway.closed, peer.clock.pending]).toEqual([true, 1, 0]);
    expect(asked.answers).toEqual([{ action: 'cancel' }]);
  });

  it('F181: invariant 17: leaves no request of the server without an answer', () => {
    const peer = new ModernPeer();
    const [person, model] = [elicitation(), new Asked('sampling/createMessage')];
    const id = peer.call();
    for (const { input } of [person, model]) peer.gateway.last.requireInput(input);
    cancel(peer, id);
    peer.clock.advance(600_000);
    expect(person.answers).toEqual([{ action: 'cancel' }]);
    expect(model.errors.map(({ message }) => message)).toEqual(['The call was cancelled']);
  });
});

describe('invariant 19: the number of suspended calls', () => {
  it('F157: is limited for each principal and in all, and they leave nothing behind', () => {
    const peer = new ModernPeer();
    const more = Array.from({ length: 17 }, (_, at) => new ModernPeer({ ...peer, principal: `p${at}` }));
    const ask = (each: ModernPeer) => {
      const asked = elicitation();
      each.call();
      each.gateway.last.requireInput(asked.input);
      return asked;
    };
    const own = Array.from({ length: 65 }, () => ask(peer));
    expect(own.filter(({ errors }) => errors.length > 0)).toHaveLength(1);
    const others = more.flatMap((each) => Array.from({ length: 64 }, () => ask(each)));
    expect(others.filter(({ errors }) => errors.length === 0)).toHaveLength(1_024 - 64);
    peer.clock.advance(GATHER_MS + EXPIRES_MS);
    expect(peer.clock.pending).toBe(0);
    expect([...own, ...others].every(({ settled }) => settled === 1)).toBe(true);
    expect(ask(peer).errors).toEqual([]);
  });
});

describe('a server that asks without end', () => {
  it('F224: is refused while 256 of its questions wait for the answer of a call', () => {
    const peer = new ModernPeer();
    const asked = Array.from({ length: 257 }, () => elicitation());
    const result = suspend(peer, ...asked);
    expect(asked.map(({ errors }) => errors.length)).toEqual([...Array(256).fill(0), 1]);
    expect(Object.keys(result.inputRequests)).toHaveLength(256);
    peer.call(accept(result));
    const later = elicitation();
    peer.gateway.last.requireInput(later.input);
    expect(later.settled).toBe(0);
  });

  it('is refused while 256 requests for roots wait for a request of the client', () => {
    const peer = new ModernPeer();
    peer.request('tools/list');
    const asked = Array.from({ length: 257 }, () => new Asked('roots/list'));
    for (const { input } of asked) peer.gateway.clients[0]?.requireInput(input);
    expect(asked.map(({ errors }) => errors.length)).toEqual([...Array(256).fill(0), 1]);
    peer.pipe.close();
  });
});

describe('a server that asks for roots without a request of the client', () => {
  it('is answered with the next request that can carry it', () => {
    const peer = new ModernPeer();
    peer.request('tools/list');
    const roots = new Asked('roots/list');
    const [client] = peer.gateway.clients;
    client?.requireInput(roots.input);
    expect(roots.settled).toBe(0);
    const id = peer.call();
    peer.clock.advance(GATHER_MS);
    expect(Object.values(peer.answerTo(id)?.result.inputRequests)).toEqual([{ method: 'roots/list', params: {} }]);
  });

  it('is refused when the client leaves', () => {
    const peer = new ModernPeer();
    peer.request('tools/list');
    const roots = new Asked('roots/list');
    peer.gateway.clients[0]?.requireInput(roots.input);
    peer.pipe.close();
    expect([roots.errors[0]?.code, peer.clock.pending]).toEqual([-32603, 0]);
  });

  it('is refused after a while, and at once for anything else', () => {
    const peer = new ModernPeer();
    peer.request('tools/list');
    const [roots, form] = [new Asked('roots/list'), elicitation()];
    for (const { input } of [roots, form]) peer.gateway.clients[0]?.requireInput(input);
    expect([form.errors[0]?.code, roots.settled]).toEqual([-32603, 0]);
    peer.clock.advance(10_000);
    expect([roots.errors[0]?.code, peer.clock.pending]).toEqual([-32603, 0]);
  });
});

describe('the state of a server without a handshake', () => {
  it('invariant 16: reaches the server byte for byte, and only with the same request', () => {
    const peer = new ModernPeer();
    const own = 'S.looks.like.ours "\\u0041" é';
    const id = peer.call();
    peer.gateway.last.answer(resultOf({ resultType: 'input_required', inputRequests: {}, requestState: own }));
    const result = peer.answerTo(id)?.result;
    expect(result.requestState).not.toBe(own);
    peer.call({ requestState: result.requestState });
    expect(stateFor(peer.gateway)).toBe(own);
    expect(peer.answerTo(peer.call({ requestState: result.requestState, name: 'other' }))?.error.code).toBe(-32602);
    expect(peer.answerTo(peer.call({ requestState: own }))?.error.code).toBe(-32602);
    expect(peer.gateway.exchanges).toHaveLength(2);
  });

  it('F185: is taken by every gateway with the same key, and refused by one with another', () => {
    const peerWith = (sharedKey: string) => {
      return new ModernPeer({ gateway: new PlayedGateway(createSeals({ sharedKeys: [sharedKey] })) });
    };
    const own = 'what the server remembers';
    const [first, second] = [peerWith('one'.repeat(20)), peerWith('one'.repeat(20))];
    const stranger = peerWith('two'.repeat(20));
    const id = first.call();
    first.gateway.last.answer(resultOf({ resultType: 'input_required', inputRequests: {}, requestState: own }));
    const requestState = first.answerTo(id)?.result.requestState;
    second.call({ requestState });
    expect(stateFor(second.gateway)).toBe(own);
    expect(stranger.answerTo(stranger.call({ requestState }))?.error.code).toBe(-32602);
    expect(stranger.gateway.exchanges).toEqual([]);
  });
});

/** The state in the latest request to the server. */
function stateFor({ last }: PlayedGateway): string {
  const id = { text: Buffer.from('5'), part: { start: 0, end: 1 } };
  return JSON.parse(Buffer.from(splice(last.request.message(id, []))).toString()).params.requestState;
}
