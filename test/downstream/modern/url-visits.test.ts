import { describe, expect, it } from 'vitest';
import { ModernPeer, resultOf } from '../../support/modern-peer.js';
import { type Message, responseOf } from '../../support/wire.js';

const MAX_WAIT_MS = 30_000;

function visit(url = 'https://a.test/login?n=1', members: Message = {}): Message {
  return { mode: 'url', elicitationId: 'e1', url, message: 'Log in', ...members };
}

/** Lets the server refuse its latest request. */
function refuse(peer: ModernPeer, elicitations: unknown = [visit()]): void {
  const error = { code: -32042, message: 'visit', data: { elicitations } };
  peer.gateway.last.answer(responseOf({ jsonrpc: '2.0', id: 99, error }));
}

/** Calls a tool whose server refuses. Returns the client's answer. */
function refused(peer: ModernPeer, ...visits: Message[]): Message {
  const id = peer.call();
  refuse(peer, visits.length === 0 ? undefined : visits);
  return peer.answerTo(id)?.result;
}

function answering(result: Message, ...actions: string[]): Message {
  const responses = Object.keys(result.inputRequests).map((key, at) => [key, { action: actions[at] ?? 'accept' }]);
  return { inputResponses: Object.fromEntries(responses), requestState: result.requestState };
}

describe('a request whose server wants a URL to be visited first', () => {
  it('is answered with the visits as required input, without the ids that only earlier revisions have', () => {
    const peer = new ModernPeer();
    const result = refused(peer, visit(), visit('https://b.test', { elicitationId: 'e2', vendor: 1 }));
    const { elicitationId: _, ...first } = visit();
    expect(result).toMatchObject({ resultType: 'input_required', _meta: expect.any(Object) });
    expect(result.inputRequests).toEqual({
      'url-1': { method: 'elicitation/create', params: first },
      'url-2': { method: 'elicitation/create', params: { ...first, url: 'https://b.test', vendor: 1 } },
    });
    expect(peer.clock.pending).toBe(0);
  });

  it('goes to the server again when the user has agreed, as it was first', () => {
    const peer = new ModernPeer();
    const id = peer.call(answering(refused(peer)));
    expect(peer.gateway.exchanges).toHaveLength(2);
    const { bytes, params } = peer.gateway.last.request;
    const sent = JSON.parse(Buffer.from(bytes.slice(params?.start, params?.end)).toString());
    expect(sent).toEqual({ name: 'ask', arguments: { n: 1 }, _meta: peer.meta });
    peer.gateway.last.answer(resultOf({ content: ['done'] }));
    expect(peer.answerTo(id)?.result).toMatchObject({ resultType: 'complete', content: ['done'] });
    expect(peer.clock.pending).toBe(0);
  });

  it('is sent again and again while the visit lasts, though each refusal names the page with another query', () => {
    const peer = new ModernPeer();
    const id = peer.call(answering(refused(peer)));
    const times: number[] = [];
    for (let n = 2; n < 7; n += 1) {
      const before = peer.gateway.exchanges.length;
      refuse(peer, [visit(`https://a.test/login?n=${n}`)]);
      while (peer.gateway.exchanges.length === before) peer.clock.advance(1_000);
      times.push(peer.clock.now());
    }
    expect(times).toEqual([1_000, 3_000, 7_000, 12_000, 17_000]);
    expect(new Set(peer.gateway.exchanges.slice(1)).size).toBe(1);
    peer.gateway.last.answer(resultOf({ content: [] }));
    expect([peer.answerTo(id)?.result.resultType, peer.clock.pending]).toEqual(['complete', 0]);
  });

  it('asks the client to come back if the visit takes long, and does not show the page again', () => {
    const peer = new ModernPeer();
    let params = answering(refused(peer));
    for (let round = 2; round <= 3; round += 1) {
      const id = peer.call(params);
      for (let at = 0; at < MAX_WAIT_MS && peer.answerTo(id) === undefined; at += 1_000) {
        if (peer.clock.pending === 0) refuse(peer);
        peer.clock.advance(1_000);
      }
      const { resultType, inputRequests, requestState } = peer.answerTo(id)?.result ?? {};
      expect([resultType, inputRequests, typeof requestState]).toEqual(['input_required', undefined, 'string']);
      params = { requestState };
    }
    expect(peer.clock.pending).toBe(0);
  });

  it('shows another page at once', () => {
    const peer = new ModernPeer();
    const id = peer.call(answering(refused(peer)));
    refuse(peer, [visit('https://a.test/pay')]);
    expect(peer.answerTo(id)?.result.inputRequests['url-1'].params.url).toBe('https://a.test/pay');
  });

  it('shows all pages again as long as an answer is left out', () => {
    const peer = new ModernPeer();
    const visits = [visit(), visit('https://b.test')];
    const { inputRequests, requestState } = refused(peer, ...visits);
    const id = peer.call({ inputResponses: { 'url-1': { action: 'accept' } }, requestState });
    refuse(peer, visits);
    expect(peer.answerTo(id)?.result.inputRequests).toEqual(inputRequests);
  });

  it.each([
    ['decline', 'declined'],
    ['cancel', 'canceled'],
    ['whatever', 'canceled'],
  ])('fails if its user answers %s, and the server learns of nothing', (action, did) => {
    const peer = new ModernPeer();
    const id = peer.call(answering(refused(peer, visit(), visit('https://b.test')), 'accept', action));
    expect(peer.answerTo(id)?.error).toEqual({ code: -32603, message: expect.stringContaining(did) });
    expect(peer.gateway.exchanges).toHaveLength(1);
  });

  it('F175: fails after ten rounds', () => {
    const peer = new ModernPeer();
    let result = refused(peer);
    for (let round = 2; round <= 10; round += 1) {
      const id = peer.call(answering(result));
      refuse(peer, [visit(`https://a.test/${round}`)]);
      result = peer.answerTo(id)?.result;
    }
    const id = peer.call(answering(result));
    refuse(peer, [visit('https://a.test/last')]);
    expect(peer.answerTo(id)?.error).toMatchObject({ code: -32603, message: 'visit' });
  });

  it('is cancelled while it waits', () => {
    const peer = new ModernPeer();
    const id = peer.call(answering(refused(peer)));
    refuse(peer);
    expect(peer.clock.pending).toBe(1);
    peer.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
    expect([peer.clock.pending, peer.answerTo(id), peer.gateway.last.isSettled]).toEqual([0, undefined, true]);
  });

  it.each([
    ['whose server names no page', []],
    ['whose server names something else than pages', [visit(), { mode: 'form', message: 'Who?' }]],
    ['whose server names no URL', [{ mode: 'url', message: 'Log in' }]],
    ['whose server sends no list', { a: visit() }],
    ['whose server sends no objects', ['https://a.test']],
  ])('%s fails with what the server said', (_, elicitations) => {
    const peer = new ModernPeer();
    const id = peer.call();
    refuse(peer, elicitations);
    expect(peer.answerTo(id)?.error).toEqual({ code: -32603, message: 'visit', data: { elicitations } });
  });

  it.each([[{ elicitation: { form: {} } }], [{ elicitation: {} }], [{}]])(
    'F186: names the missing capability to a client that declares %j, and the page to its user',
    (capabilities) => {
      const peer = new ModernPeer({ capabilities });
      const id = peer.call();
      refuse(peer);
      expect(peer.answerTo(id)?.error).toEqual({
        code: -32021,
        message: expect.stringMatching(/visit https:\/\/a\.test\/login\?n=1 .* The server said: visit$/),
        data: { requiredCapabilities: { elicitation: { url: {} } }, elicitations: [visit()] },
      });
      expect([peer.gateway.exchanges.length, peer.clock.pending]).toEqual([1, 0]);
    },
  );

  it.each([
    ['file:///etc/passwd'],
    ['https://bank.test@a.test/'],
    ['not a URL'],
    [`https://a.test/${'x'.repeat(2_000)}`],
    ['javascript:alert(1)'],
  ])('does not name a page in words that a person should not open: %s', (url) => {
    const peer = new ModernPeer({ capabilities: {} });
    const id = peer.call();
    refuse(peer, [visit(url)]);
    const { message, data } = peer.answerTo(id)?.error ?? {};
    expect(message).toContain('visit a web page before');
    expect(data.elicitations).toEqual([visit(url)]);
  });

  it('fails if requests of its kind cannot require input', () => {
    const peer = new ModernPeer();
    const id = peer.request('completion/complete');
    refuse(peer);
    expect(peer.answerTo(id)?.error.code).toBe(-32603);
  });
});

describe('the state of a request whose user visits a page', () => {
  it('F176: is refused with any other character, with other params, and from another principal', () => {
    const peer = new ModernPeer();
    const retry = answering(refused(peer));
    const state: string = retry.requestState;
    const refusal = (who: ModernPeer, params: Message) => who.answerTo(who.call(params))?.error.code;
    for (let at = 0; at < state.length; at += 1) {
      const requestState = state.slice(0, at) + (state[at] === 'a' ? 'b' : 'a') + state.slice(at + 1);
      expect(refusal(peer, { ...retry, requestState })).toBe(-32602);
    }
    expect(refusal(peer, { ...retry, arguments: { n: 2 } })).toBe(-32602);
    expect(refusal(new ModernPeer({ ...peer, principal: 'else' }), retry)).toBe(-32602);
    expect(peer.gateway.exchanges).toHaveLength(1);
  });
});
