import { describe, expect, it } from 'vitest';
import { LoginOffer } from '../../../src/gateway/dispatch/login-offer.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { flush, responseOf } from '../../support/wire.js';

const URL = 'https://auth.example.com/authorize?state=s';

/** A login at the server `s`, with the outcomes of the calls that it was offered to. */
function offering(begin?: () => Promise<never>) {
  const outcomes: string[] = [];
  let resolve = () => {};
  let reject: (error: Error) => void = () => {};
  const finished = new Promise<void>((...settle) => {
    [resolve, reject] = settle;
  });
  const login = { resolve: () => resolve(), reject: (error: Error) => reject(error) };
  const offer = new LoginOffer('s', begin ?? (() => Promise.resolve({ url: URL, finished })));
  const call = async (opensUrls = true, method?: string) => {
    const exchange = new InMemoryExchange(method);
    exchange.elicited = opensUrls ? ['url'] : [];
    offer.make(
      exchange,
      () => outcomes.push('served'),
      () => outcomes.push('refused'),
    );
    await flush();
    return exchange;
  };
  return { outcomes, login, call };
}

/** Answers the request for input of an exchange. */
function respond({ inputs: [first] }: InMemoryExchange, result: object): void {
  first?.input.answer(responseOf({ jsonrpc: '2.0', id: 0, result }), () => () => {});
}

describe('the login at a server, offered to a client that calls it', () => {
  it('F270: asks to open the page, and serves the call when the person is logged in', async () => {
    const { outcomes, login, call } = offering();
    const exchange = await call();
    expect(exchange.inputs).toMatchObject([{ method: 'elicitation/create', params: { mode: 'url', url: URL } }]);
    respond(exchange, { action: 'accept' });
    await flush();
    expect(outcomes).toEqual([]);
    login.resolve();
    await flush();
    expect(outcomes).toEqual(['served']);
  });

  it.each(['decline', 'cancel'])('refuses the call when the person answers `%s`', async (action) => {
    const { outcomes, call } = offering();
    const exchange = await call();
    respond(exchange, { action });
    await flush();
    expect(outcomes).toEqual(['refused']);
  });

  it('refuses the call when the login fails', async () => {
    const { outcomes, login, call } = offering();
    const exchange = await call();
    respond(exchange, { action: 'accept' });
    login.reject(new Error('the answer is wrong'));
    await flush();
    expect(outcomes).toEqual(['refused']);
  });

  it('refuses the call when the login cannot begin, and offers it to the next call', async () => {
    let begun = 0;
    const { outcomes, call } = offering(() => {
      begun += 1;
      return Promise.reject(new Error('no metadata'));
    });
    await call();
    await call();
    expect(outcomes).toEqual(['refused', 'refused']);
    expect(begun).toBe(2);
  });

  it('is offered to one call at a time, and again after its end', async () => {
    const { outcomes, call } = offering();
    const first = await call();
    const second = await call();
    expect(second.inputs).toEqual([]);
    expect(outcomes).toEqual(['refused']);
    respond(first, { action: 'decline' });
    await flush();
    expect((await call()).inputs).toHaveLength(1);
  });

  it('is withdrawn when the client cancels the call', async () => {
    const { outcomes, call } = offering();
    const exchange = await call();
    exchange.cancel();
    expect(exchange.inputs[0]?.isWithdrawn).toBe(true);
    expect(outcomes).toEqual([]);
    expect((await call()).inputs).toHaveLength(1);
  });

  it.each([
    ['cannot open a URL', false, 'tools/call'],
    ['calls no tool', true, 'resources/read'],
  ])('is not offered to a client that %s', async (_, opensUrls, method) => {
    const { outcomes, call } = offering();
    expect((await call(opensUrls, method)).inputs).toEqual([]);
    expect(outcomes).toEqual(['refused']);
  });
});
