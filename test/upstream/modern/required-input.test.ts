import { describe, expect, it } from 'vitest';
import type { RequestHandler } from '../../../src/upstream/upstream-connection.js';
import { splice } from '../../../src/wire/json/splice.js';
import { RpcError } from '../../../src/wire/jsonrpc/message.js';
import type { InputRequest } from '../../../src/wire/mcp/relayed-request.js';
import { type Message, responseOf } from '../../support/wire.js';
import { CALL, Listener, progressOf } from '../stdio/bridging.js';
import { openModern } from './opening.js';

const ELICIT = { method: 'elicitation/create', params: { mode: 'form', message: 'Who?', requestedSchema: {} } };
const SAMPLE = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
const ROOTS = { method: 'roots/list' };
const URL_ELICIT = {
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Log in', url: 'https://a.example' },
};
const LONG = { idleMs: 1_000, maxMs: 60_000 };
const GET = '{"jsonrpc":"2.0","id":"g","method":"prompts/get","params":{"name":"p"}}';

/** The client of a call: it is asked for input, and the test answers. */
class AskedClient extends Listener implements RequestHandler {
  readonly asked: InputRequest[] = [];
  readonly withdrawn: InputRequest[] = [];
  readonly received: Message[] = [];
  /** Refuses each request of this method at once. */
  refuses = '';

  requireInput(input: InputRequest): () => void {
    if (input.request.method === this.refuses) {
      input.fail(new RpcError(-32601, `The client does not support ${this.refuses}`));
      return () => {};
    }
    this.asked.push(input);
    return () => this.withdrawn.push(input);
  }

  send(message: Parameters<NonNullable<RequestHandler['send']>>[0]): void {
    this.received.push(JSON.parse(Buffer.from(splice(message)).toString()));
  }

  /** The requests for input, as the client would get them. */
  get questions(): Message[] {
    return this.asked.map(({ request, edits }) => {
      const id = { text: Buffer.from('7'), part: { start: 0, end: 1 } };
      return JSON.parse(Buffer.from(splice(request.message(id, edits))).toString());
    });
  }

  /** Answers the request for input number `index`, with JSON. */
  give(index: number, member: 'result' | 'error', json: string): void {
    this.asked[index]?.answer(responseOf(`{"jsonrpc":"2.0","id":7,"${member}":${json}}`), () => () => {});
  }
}

async function calling(call = CALL, timeouts = LONG) {
  const server = await openModern();
  const client = new AskedClient();
  const sent = server.send(call, client, timeouts);
  const require = (inputRequests?: Message, requestState?: string) =>
    server.answer({ resultType: 'input_required', ...(inputRequests && { inputRequests }), requestState });
  return { ...server, client, sent, require };
}

describe('a result that requires input', () => {
  it('becomes requests to the client, all at once, and the request is sent again with the answers as they are', async () => {
    const { client, require, output, answer } = await calling();
    await require({ 'wh"o': ELICIT, how: SAMPLE, where: ROOTS }, 'st\u00e4te');
    expect(client.questions).toEqual([
      { jsonrpc: '2.0', id: 7, ...ELICIT },
      { jsonrpc: '2.0', id: 7, ...SAMPLE },
      { jsonrpc: '2.0', id: 7, ...ROOTS },
    ]);
    client.give(1, 'result', '{"n":1.0}');
    client.give(0, 'result', '{ "action":"accept","content":{"x":9007199254740993}}');
    expect(output.lines).toHaveLength(1);
    client.give(2, 'result', '{"roots":[]}');
    expect(output.lines).toHaveLength(2);
    expect(output.lines[1]).toContain('"id":3');
    expect(output.lines[1]).toContain(
      ',"inputResponses":{"wh\\"o":{ "action":"accept","content":{"x":9007199254740993}},"how":{"n":1.0},"where":{"roots":[]}},"requestState":"st\u00e4te"}',
    );
    expect(output.last.params).toMatchObject({ name: 'k__read', _meta: expect.anything() });
    await answer({ content: [] });
    expect(client.told).toEqual(['{"content":[]}']);
  });

  it('sends back the state byte for byte, and only that of the latest round', async () => {
    const { client, output, say, require } = await calling();
    await say(
      '{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"\\u0061\\/b"}}',
    );
    client.give(0, 'result', '{}');
    expect(output.lines[1]).toContain('"requestState":"\\u0061\\/b"}');
    await require({ b: ROOTS });
    client.give(1, 'result', '{"c":1}');
    expect(output.last.params.inputResponses).toEqual({ b: { c: 1 } });
    expect(output.last.params).not.toHaveProperty('requestState');
  });

  it('that has only a state is answered after a pause, which doubles up to 5 s', async () => {
    const { output, require, advance, client } = await calling();
    for (const pauseMs of [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]) {
      const before = output.lines.length;
      await require(undefined, 's');
      await advance(pauseMs - 1);
      expect(output.lines).toHaveLength(before);
      await advance(1);
      expect(output.lines).toHaveLength(before + 1);
      expect(output.last.params).toMatchObject({ requestState: 's' });
      expect(output.last.params).not.toHaveProperty('inputResponses');
    }
    expect(client.asked).toEqual([]);
  });

  it('F153: asks ten times at most', async () => {
    const { client, require, connection } = await calling();
    for (let round = 0; round < 10; round += 1) {
      await require({ r: ROOTS });
      client.give(round, 'result', '{}');
    }
    await require({ r: ROOTS });
    expect(client.told).toEqual([expect.stringContaining('"isError":true')]);
    expect(client.asked).toHaveLength(10);
    expect(connection.inFlight).toBe(0);
  });

  it.each([
    ['no request and no state', {}],
    ['a request that these revisions do not have', { inputRequests: { a: { method: 'tools/call' } } }],
    ['a request that is no object', { inputRequests: { a: 7 } }],
  ])('fails the call if it has %s', async (_, result) => {
    const { client, answer } = await calling();
    await answer({ resultType: 'input_required', ...result });
    expect(client.told).toEqual([expect.stringContaining('"isError":true')]);
  });
});

describe('a page that a person has to visit', () => {
  it('gets an id, and the client learns at the end that it is over', async () => {
    const { client, require, answer } = await calling();
    await require({ page: URL_ELICIT });
    expect(client.questions[0]?.params).toEqual({ ...URL_ELICIT.params, elicitationId: 'minted-1' });
    client.give(0, 'result', '{"action":"accept"}');
    await answer({ content: [] });
    expect(client.received).toEqual([
      { jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId: 'minted-1' } },
    ]);
    expect(client.told).toHaveLength(1);
  });

  it('is not shown again once it was accepted', async () => {
    const { client, require, output, advance } = await calling();
    await require({ page: URL_ELICIT });
    client.give(0, 'result', '{"action":"accept"}');
    await require({ page: URL_ELICIT });
    expect(client.asked).toHaveLength(1);
    expect(output.lines).toHaveLength(2);
    await advance(250);
    expect(output.last.params.inputResponses).toEqual({ page: { action: 'accept' } });
  });
});

describe('a client that gives no input', () => {
  it('has cancelled an elicitation, and the call goes on', async () => {
    const { client, require, output } = await calling();
    await require({ who: ELICIT });
    client.give(0, 'error', '{"code":-1,"message":"no"}');
    expect(output.last.params.inputResponses).toEqual({ who: { action: 'cancel' } });
  });

  it('ends a tool call that needs it, with its reason, and is asked nothing more', async () => {
    const { client, require, output } = await calling();
    await require({ how: SAMPLE, who: ELICIT });
    client.give(0, 'error', '{"code":-1,"message":"no model"}');
    expect(client.told).toEqual([expect.stringContaining('no model')]);
    expect(client.told).toEqual([expect.stringContaining('"isError":true')]);
    expect(client.withdrawn).toContain(client.asked[1]);
    expect(output.lines).toHaveLength(1);
  });

  it('gets its own error for any other request', async () => {
    const { client, require } = await calling(GET);
    await require({ how: SAMPLE });
    client.give(0, 'error', '{"code":-1,"message":"no model","data":1.0}');
    expect(client.told).toEqual(['{"code":-1,"message":"no model","data":1.0}']);
  });

  it('is not asked for more after it has refused at once', async () => {
    const { client, require } = await calling();
    client.refuses = 'sampling/createMessage';
    await require({ how: SAMPLE, who: ELICIT });
    expect(client.asked).toEqual([]);
    expect(client.told).toEqual([expect.stringContaining('does not support sampling')]);
  });
});

describe('while a person is asked', () => {
  it('the idle timeout rests, and the maximum ends the call and the questions', async () => {
    const { client, require, advance, clock, connection } = await calling(CALL, { idleMs: 1_000, maxMs: 5_000 });
    await advance(500);
    await require({ who: ELICIT });
    await advance(4_499);
    expect(client.told).toEqual([]);
    await advance(1);
    expect(client.told).toEqual(['timeout sent']);
    expect(client.withdrawn).toEqual(client.asked);
    expect(connection.inFlight).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('the time counts when the request is sent again', async () => {
    const { client, require, advance } = await calling(CALL, { idleMs: 4_000, maxMs: 5_000 });
    await require({ who: ELICIT });
    await advance(3_000);
    client.give(0, 'result', '{}');
    await advance(1_999);
    expect(client.told).toEqual([]);
    await advance(1);
    expect(client.told).toEqual(['timeout sent']);
  });

  it('a cancellation withdraws the questions, and the server hears nothing', async () => {
    const { client, require, sent, output, connection } = await calling();
    await require({ who: ELICIT });
    expect(connection.inFlight).toBe(1);
    sent?.cancel();
    expect(client.told).toEqual(['cancelled sent']);
    expect(client.withdrawn).toEqual(client.asked);
    expect(output.lines).toHaveLength(1);
    expect(connection.inFlight).toBe(0);
  });

  it('F152: the end of the server ends the call', async () => {
    const { client, require, bridge } = await calling();
    await require({ who: ELICIT });
    bridge.close('exited');
    expect(client.told).toEqual(['exited sent']);
    expect(client.withdrawn).toEqual(client.asked);
  });
});

describe('a request that is sent again', () => {
  it('is cancelled under its own id', async () => {
    const { client, require, sent, output } = await calling();
    await require({ who: ROOTS });
    client.give(0, 'result', '{}');
    sent?.cancel();
    expect(output.last).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 3 } });
    expect(client.told).toEqual(['cancelled sent']);
  });

  it('reports no progress that an earlier one has reported', async () => {
    const { client, require, say } = await calling();
    await say(progressOf(2, 5));
    await require({ who: ROOTS });
    client.give(0, 'result', '{}');
    await say(progressOf(3, 4), progressOf(3, 6));
    expect(client.reports.map((report) => JSON.parse(report).params.progress)).toEqual([5, 6]);
  });

  it('counts as sent, since the server has seen the call', async () => {
    const { client, require, output, bridge } = await calling();
    await require({ who: ROOTS });
    output.lostBytes = output.sentBytes;
    client.give(0, 'result', '{}');
    output.lostBytes = output.sentBytes;
    bridge.close('exited');
    expect(client.told).toEqual(['exited sent']);
  });
});
