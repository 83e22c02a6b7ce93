import { describe, expect, it } from 'vitest';
import { legacyDialect } from '../../../src/upstream/legacy/legacy-dialect.js';
import type { DialOutcome } from '../../../src/upstream/upstream-connection.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { bytesOf, flush, type Message, requestOf } from '../../support/wire.js';
import { answerTo, bridging, Listener, sendCall, TIMEOUTS } from '../stdio/bridging.js';

const PROFILE = { clientInfo: { name: 'trunkline', version: '1.2.3' }, capabilities: {} };

function opening(timeoutMs = 60_000) {
  const child = bridging();
  const handshake = legacyDialect.open(child.bridge, { generation: 3, profile: PROFILE, timeoutMs });
  return { ...child, handshake };
}

function resultOf(members: Message): Message {
  return answerTo(1, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: {}, ...members });
}

async function reasonOf(handshake: Promise<DialOutcome>): Promise<string> {
  const outcome = await handshake;
  return outcome.kind === 'failed' ? outcome.reason : 'open';
}

describe('a request of a client without a handshake', () => {
  const META = 'io.modelcontextprotocol';
  const own = `"${META}/protocolVersion":"2026-07-28","${META}/clientInfo":{},"${META}/clientCapabilities":{}`;

  it.each([
    [`{"_meta":{${own}},"name":"x"}`, '{"_meta":{},"name":"x"}'],
    [
      `{"name":"x","_meta":{"a":1.0,${own},"${META}/logLevel":"info","progressToken":"mine"}}`,
      '{"name":"x","_meta":{"a":1.0,"progressToken":2}}',
    ],
    [
      `{"inputResponses":{"a":{}},"name":"x","_meta":{${own},"b":2},"requestState":"s"}`,
      '{"name":"x","_meta":{"b":2}}',
    ],
  ])('loses what only modern servers know: %s', async (params, expected) => {
    const { output, handshake, say } = opening();
    say(resultOf({}));
    const outcome = await handshake;
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    const call = requestOf(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":${params}}`);
    outcome.connection.send(new EnvelopeRequest(call), [], TIMEOUTS, new Listener());
    expect(output.lines.at(-1)).toBe(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":${expected}}`);
  });
});

describe('opening a child', () => {
  it('invariant 24: sends initialize and, once that is answered, initialized with nothing in between', async () => {
    const { output, handshake, say } = opening();
    expect(output.messages).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', clientInfo: PROFILE.clientInfo, capabilities: {} },
      },
    ]);
    await flush();
    expect(output.lines).toHaveLength(1);
    say(resultOf({}));
    await handshake;
    expect(output.lines.slice(1)).toEqual(['{"jsonrpc":"2.0","method":"notifications/initialized"}']);
  });

  it('tells it about the client in the client’s own text', () => {
    const child = bridging();
    const raw = {
      capabilities: bytesOf('{ "x":1.0,"n":9007199254740993,"x":2}'),
      clientInfo: bytesOf('{"name":"\\u0061"}'),
    };
    const profile = { ...PROFILE, protocolVersion: '2025-06-18', raw };
    void legacyDialect.open(child.bridge, { generation: 3, profile, timeoutMs: 60_000 });
    expect(child.output.lines).toEqual([
      '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",' +
        '"capabilities":{ "x":1.0,"n":9007199254740993,"x":2},"clientInfo":{"name":"\\u0061"}}}',
    ]);
  });

  it('gives a connection that says what was agreed', async () => {
    const { bridge, handshake, say } = opening();
    say(resultOf({ instructions: 'Read\nfirst.' }));
    const outcome = await handshake;
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    expect(outcome.connection).toMatchObject({
      generation: 3,
      revision: '2025-06-18',
      instructions: 'Read\nfirst.',
      inFlight: 0,
    });
    expect(outcome.connection.offers('tools')).toBe(true);
    sendCall(bridge);
    expect(outcome.connection.inFlight).toBe(1);
    say(answerTo(77));
    expect(outcome.connection.counters.unknown).toBe(1);
  });

  it.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])(
    'takes a child that chooses %s',
    async (revision) => {
      const { handshake, say } = opening();
      say(resultOf({ protocolVersion: revision }));
      expect(await handshake).toMatchObject({ kind: 'open', connection: { revision } });
    },
  );

  it.each([
    ['other capabilities', { capabilities: { prompts: {} } }, false],
    ['no capabilities', { capabilities: undefined }, true],
    ['empty capabilities', { capabilities: {} }, true],
    ['capabilities of a wrong shape', { capabilities: [] }, true],
    ['capabilities that are null', { capabilities: { tools: null } }, true],
  ])('decides by %s whether a child may have tools', async (_, members, mayHave) => {
    const { handshake, say } = opening();
    say(resultOf(members));
    const outcome = await handshake;
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    expect([outcome.connection.offers('tools'), outcome.connection.offers('logging')]).toEqual([mayHave, false]);
  });

  it.each([
    ['resources', true],
    ['resources.subscribe', true],
    ['resources.listChanged', false],
    ['resources.subscribe.deeper', false],
    ['logging', true],
    ['logging.level', false],
    ['prompts', false],
    ['completions', false],
    ['', false],
  ])('says whether the child offers %j: %s', async (capability, isOffered) => {
    const { handshake, say } = opening();
    say(resultOf({ capabilities: { resources: { subscribe: true, listChanged: false }, logging: {}, prompts: null } }));
    const outcome = await handshake;
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    expect(outcome.connection.offers(capability)).toBe(isOffered);
  });

  it.each([
    [
      { title: 'Title', description: 'Does it.' },
      { title: 'Title', description: 'Does it.' },
    ],
    [{ title: 7, description: null }, {}],
    ['server', {}],
    [undefined, {}],
  ])('reads what a server says about itself from %j', async (serverInfo, described) => {
    const { handshake, say } = opening();
    say(resultOf({ serverInfo }));
    expect(await handshake).toMatchObject({
      connection: { serverInfo: { title: undefined, description: undefined, ...described } },
    });
  });

  it.each([7, null, {}])('leaves out instructions that are %j', async (instructions) => {
    const { handshake, say } = opening();
    say(resultOf({ instructions }));
    expect(await handshake).toMatchObject({ kind: 'open', connection: { instructions: undefined } });
  });

  it.each([
    [
      'an unknown revision',
      resultOf({ protocolVersion: '2099-01-01' }),
      'protocol version "2099-01-01", which is unknown',
    ],
    ['the next era', resultOf({ protocolVersion: '2026-07-28' }), 'protocol version "2026-07-28", which is unknown'],
    ['no revision', resultOf({ protocolVersion: undefined }), 'names no protocol version'],
    ['a number for a revision', resultOf({ protocolVersion: 2025 }), 'names no protocol version'],
    ['a result that is no object', answerTo(1, []), 'initialize: result_malformed'],
    ['an error', { jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'nope' } }, 'answered error -32602: nope'],
  ])('fails on %s, and says no more to the child', async (_, answer, reason) => {
    const { output, handshake, say } = opening();
    say(answer);
    expect(await reasonOf(handshake)).toContain(reason);
    expect(output.lines).toHaveLength(1);
  });

  it.each([
    ['an error without a message', {}],
    ['a message that is an object', { code: 1, message: { a: 1 } }],
    ['a message that cannot be made a text', { code: 1, message: { toString: null } }],
    ['a code that cannot be made a text', { code: { toString: 1, valueOf: 1 }, message: 'x' }],
  ])('fails, and does not throw, on %s', async (_, error) => {
    const { handshake, say } = opening();
    say({ jsonrpc: '2.0', id: 1, error });
    expect(await reasonOf(handshake)).toContain('initialize: result_malformed');
  });

  it('fails when no answer comes in time, and does not cancel', async () => {
    const { output, clock, handshake } = opening(5_000);
    clock.advance(5_000);
    expect(await reasonOf(handshake)).toBe('initialize: timeout');
    expect(output.lines).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it('fails when the process ends', async () => {
    const { bridge, handshake } = opening();
    bridge.close('exited');
    expect(await reasonOf(handshake)).toBe('initialize: exited');
  });

  it('takes no other answer for that of initialize', async () => {
    const { handshake, say } = opening();
    say('Starting up...', answerTo('one', {}), answerTo(2, {}), resultOf({}));
    expect((await handshake).kind).toBe('open');
  });
});
