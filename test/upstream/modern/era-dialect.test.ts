import { describe, expect, it } from 'vitest';
import { legacyDialect } from '../../../src/upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../../../src/upstream/modern/era-dialect.js';
import { type EraName, type EraVerdict, ServerEra } from '../../../src/upstream/server-era.js';
import { flush, type Message } from '../../support/wire.js';
import { bridging } from '../stdio/bridging.js';

const PROFILE = { clientInfo: { name: 'c', version: '1' }, capabilities: {} };
const DISCOVERED = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } };
const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  serverInfo: { name: 's', version: '3' },
};
const NOT_FOUND = { code: -32601, message: 'Method not found' };

/** Verdicts in memory, as the cache keeps them from run to run. */
function keeping(verdict?: EraVerdict) {
  const kept = { verdict };
  return {
    kept,
    verdicts: {
      find: () => kept.verdict,
      put: (next: EraVerdict) => {
        kept.verdict = next;
      },
      forget: () => {
        kept.verdict = undefined;
      },
    },
  };
}

function opening({ setting = 'auto', verdict }: { setting?: EraName | 'auto'; verdict?: EraVerdict } = {}) {
  const child = bridging({ maxUnwrittenBytes: 100_000 });
  const { kept, verdicts } = keeping(verdict);
  const era = new ServerEra(setting, verdicts);
  const dialect = new EraDialect({ legacy: legacyDialect, clock: child.clock, mintId: () => 'minted' });
  const listener = { request: () => {}, notification: () => {}, unfit: () => {} };
  const opened = dialect.open(child.bridge, { generation: 1, profile: PROFILE, timeoutMs: 60_000, era, listener });
  /** The server answers the request of this method that it got last. */
  const answer = async (method: string, reply: Message) => {
    await flush();
    const id = child.output.messages.findLast((message) => message.method === method)?.id;
    child.say({ jsonrpc: '2.0', id, ...('code' in reply ? { error: reply } : { result: reply }) });
    await flush();
  };
  const methods = () => child.output.messages.map(({ method }) => method);
  const advance = async (ms: number) => {
    child.clock.advance(ms);
    await flush();
  };
  return { ...child, era, kept, opened, answer, methods, advance };
}

const HANDSHAKE = ['initialize', 'notifications/initialized'];

describe('the name of a modern server', () => {
  it.each<[string, unknown, string | undefined]>([
    ['is as the server wrote it', { name: 's', version: '1', n: 1 }, '{"name":"s","version":"1","n":1}'],
    ['is unknown if the server keeps it to itself', undefined, undefined],
    ['is unknown if the server has no version', { name: 's' }, undefined],
    ['is unknown if it is no object', 's', undefined],
    ['is unknown if it is too long to be added to results', { name: 's', version: '1'.repeat(5_000) }, undefined],
  ])('%s', async (_, serverInfo, name) => {
    const { opened, answer } = opening();
    const _meta = { 'io.modelcontextprotocol/serverInfo': serverInfo };
    await answer('server/discover', { ...DISCOVERED, _meta });
    const outcome = await opened;
    if (outcome.kind !== 'open') throw new Error(outcome.reason);
    const { nameInResults } = outcome.connection;
    expect(nameInResults && Buffer.from(nameInResults).toString()).toBe(name);
  });
});

describe('a server of which nothing is known', () => {
  it('is asked with server/discover, in the envelope of the modern era', async () => {
    const { output } = opening();
    expect(output.messages).toEqual([
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'server/discover',
        params: {
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': PROFILE.clientInfo,
            'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
          },
        },
      },
    ]);
  });

  it('is modern if it answers, and gets no handshake', async () => {
    const { opened, answer, methods, kept, clock } = opening();
    const serverInfo = { name: 's', title: 'S', version: '7' };
    const _meta = { 'io.modelcontextprotocol/serverInfo': serverInfo };
    await answer('server/discover', { ...DISCOVERED, instructions: 'Read.', _meta });
    const outcome = await opened;
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    const { connection } = outcome;
    expect(connection).toMatchObject({ revision: '2026-07-28', instructions: 'Read.', serverInfo: { title: 'S' } });
    expect(JSON.parse(Buffer.from(connection.initializeResult).toString())).toEqual({
      protocolVersion: '2026-07-28',
      capabilities: { tools: {} },
      serverInfo,
      instructions: 'Read.',
    });
    expect(methods()).toEqual(['server/discover']);
    expect(kept.verdict).toEqual({ era: 'modern', version: '7' });
    expect(clock.pending).toBe(1);
  });

  it('does not announce tasks of the other era, whatever it says', async () => {
    const { opened, answer } = opening();
    await answer('server/discover', { ...DISCOVERED, capabilities: { tasks: { list: {} }, tools: {} } });
    const outcome = await opened;
    expect(outcome.kind === 'open' && outcome.connection.offers('tasks.list')).toBe(false);
  });

  it.each([
    ['that there is no such method', NOT_FOUND],
    ['an error of its own', { code: -32602, message: 'before initialize' }],
    ['a result of another form', {}],
    ['revisions that are unknown here', { ...DISCOVERED, supportedVersions: ['2031-01-01'] }],
    [
      'that it supports only revisions with a handshake',
      { code: -32022, message: 'no', data: { supported: ['2025-11-25'] } },
    ],
  ])('gets initialize on the same pipe when it answers %s', async (_, reply) => {
    const { opened, answer, methods, kept } = opening();
    await answer('server/discover', reply);
    await answer('initialize', INITIALIZED);
    expect(await opened).toMatchObject({ kind: 'open', connection: { revision: '2025-06-18' } });
    expect(methods()).toEqual(['server/discover', ...HANDSHAKE]);
    expect(kept.verdict).toEqual({ era: 'legacy', version: '3' });
  });

  it.each([
    ['unreachable', 'network'],
    ['login_required', 'blocked'],
  ] as const)('decides nothing if the question ends as %s', async (reason, fault) => {
    const { opened, bridge, methods, kept } = opening();
    await flush();
    bridge.fail(1, reason, false, 'it is away');
    expect(await opened).toEqual({ kind: 'failed', reason: 'server/discover: it is away', fault });
    expect([methods(), kept.verdict]).toEqual([['server/discover'], undefined]);
  });

  it.each(['connection_lost', 'unavailable'] as const)(
    'gets initialize if the question ends as %s, and is asked again at the next start, whatever comes of it',
    async (reason) => {
      for (const isLegacy of [true, false]) {
        const { opened, answer, bridge, methods, kept } = opening();
        await flush();
        bridge.fail(1, reason, true, 'it is in trouble');
        await flush();
        if (isLegacy) await answer('initialize', INITIALIZED);
        else bridge.fail(2, reason, true, 'it is in trouble');
        expect(await opened).toMatchObject(isLegacy ? { kind: 'open' } : { kind: 'failed', fault: 'trouble' });
        expect(methods().slice(0, 2)).toEqual(['server/discover', 'initialize']);
        expect(kept.verdict).toBeUndefined();
      }
    },
  );

  it('gets initialize if it does not answer as an MCP server', async () => {
    const { opened, answer, bridge, methods } = opening();
    await flush();
    bridge.fail(1, 'refused', true, 'it answered HTTP 404');
    await flush();
    await answer('initialize', INITIALIZED);
    expect((await opened).kind).toBe('open');
    expect(methods()).toEqual(['server/discover', ...HANDSHAKE]);
  });

  it('gets initialize when it answers with an error without an id', async () => {
    const { opened, answer, methods, say, bridge } = opening();
    say({ jsonrpc: '2.0', id: null, error: NOT_FOUND });
    await answer('initialize', INITIALIZED);
    expect((await opened).kind).toBe('open');
    expect(methods()).toEqual(['server/discover', ...HANDSHAKE]);
    expect(bridge.inFlight).toBe(0);
  });

  it('is asked again in the revision that it offers instead', async () => {
    const { opened, answer, methods } = opening();
    await answer('server/discover', { code: -32022, message: 'no', data: { supported: ['2026-07-28'] } });
    await answer('server/discover', DISCOVERED);
    expect(await opened).toMatchObject({ kind: 'open', connection: { revision: '2026-07-28' } });
    expect(methods()).toEqual(['server/discover', 'server/discover']);
  });

  describe('and that is silent', () => {
    it('F149: gets initialize behind the question after 3 s, and its answer decides', async () => {
      const { opened, answer, methods, kept, advance, bridge } = opening();
      await advance(2_999);
      expect(methods()).toEqual(['server/discover']);
      await advance(1);
      await answer('initialize', INITIALIZED);
      expect(await opened).toMatchObject({ kind: 'open', connection: { revision: '2025-06-18' } });
      // Nothing comes between the result and `initialized`; then the question is withdrawn.
      expect(methods()).toEqual(['server/discover', ...HANDSHAKE, 'notifications/cancelled']);
      expect(kept.verdict?.era).toBe('legacy');
      expect(bridge.inFlight).toBe(0);
    });

    it('is modern if it refuses initialize and answers the question late', async () => {
      const { opened, answer, advance, kept } = opening();
      await advance(3_000);
      await answer('initialize', NOT_FOUND);
      await answer('server/discover', DISCOVERED);
      expect(await opened).toMatchObject({ kind: 'open', connection: { revision: '2026-07-28' } });
      expect(kept.verdict?.era).toBe('modern');
    });

    it('fails with what it answered to initialize if it never answers the question', async () => {
      const { opened, answer, advance } = opening();
      await advance(3_000);
      await answer('initialize', { code: -32000, message: 'no key' });
      await advance(3_000);
      expect(await opened).toMatchObject({ kind: 'failed', reason: expect.stringContaining('no key') });
    });

    it('keeps to the handshake if it answers both, and the next start begins with the other era', async () => {
      const { opened, answer, advance, kept } = opening();
      await advance(3_000);
      await answer('server/discover', DISCOVERED);
      await answer('initialize', INITIALIZED);
      expect(await opened).toMatchObject({ kind: 'open', connection: { revision: '2025-06-18' } });
      expect(kept.verdict?.era).toBe('modern');
    });
  });

  it('invariant 32: is not asked at the next start if the question ended it, and nothing is kept of that', async () => {
    const { opened, bridge, era, kept } = opening();
    bridge.close('exited');
    expect(await opened).toMatchObject({ kind: 'failed', reason: 'server/discover: exited' });
    expect(era.ended()).toBe(true);
    expect(era.begin()).toBe('legacy');
    expect(kept.verdict).toBeUndefined();
    // The next end is the server's own.
    expect(era.ended()).toBe(false);
  });

  it('was ended by the question as well if it exits between that and the answer to initialize', async () => {
    const { answer, bridge, era, opened } = opening();
    await answer('server/discover', NOT_FOUND);
    bridge.close('exited');
    expect((await opened).kind).toBe('failed');
    expect(era.ended()).toBe(true);
  });
});

describe('a server with a verdict', () => {
  it('begins with initialize at once if it is legacy, and its end is no fault of a question', async () => {
    const { methods, era } = opening({ verdict: { era: 'legacy', version: '3' } });
    expect(methods()).toEqual(['initialize']);
    expect(era.ended()).toBe(false);
  });

  it('is asked at the next start if its version has changed', async () => {
    const { answer, opened, kept } = opening({ verdict: { era: 'legacy', version: '2' } });
    await answer('initialize', INITIALIZED);
    await opened;
    expect(kept.verdict).toBeUndefined();
  });

  it('is asked on the same pipe if it is legacy and refuses initialize', async () => {
    const { answer, opened, kept } = opening({ verdict: { era: 'legacy', version: '3' } });
    await answer('initialize', NOT_FOUND);
    await answer('server/discover', DISCOVERED);
    expect(await opened).toMatchObject({ kind: 'open', connection: { revision: '2026-07-28' } });
    expect(kept.verdict?.era).toBe('modern');
  });

  it('fails with its own reason if it is legacy, refuses initialize and says nothing more', async () => {
    const { answer, opened, advance, kept } = opening({ verdict: { era: 'legacy', version: '3' } });
    await answer('initialize', { code: -32000, message: 'no key' });
    await advance(3_000);
    expect(await opened).toMatchObject({ kind: 'failed', reason: expect.stringContaining('no key') });
    expect(kept.verdict?.era).toBe('legacy');
  });

  it('stays modern if the network fails', async () => {
    const { opened, bridge, kept } = opening({ verdict: { era: 'modern', version: '1' } });
    await flush();
    bridge.fail(1, 'unreachable', false, 'it is away');
    expect(await opened).toMatchObject({ kind: 'failed', fault: 'network' });
    expect(kept.verdict?.era).toBe('modern');
  });

  it('F150: fails if it is modern and is not, and the next start asks', async () => {
    const { answer, opened, methods, kept, era } = opening({ verdict: { era: 'modern', version: '1' } });
    await answer('server/discover', NOT_FOUND);
    expect(await opened).toMatchObject({ kind: 'failed', reason: expect.stringContaining('server/discover') });
    expect(methods()).toEqual(['server/discover']);
    expect(kept.verdict).toBeUndefined();
    expect(era.begin()).toBeUndefined();
  });
});

describe('a server whose era the configuration says', () => {
  it('is not asked if it is legacy, and nothing else is tried', async () => {
    const { answer, opened, methods, kept } = opening({ setting: 'legacy' });
    await answer('initialize', NOT_FOUND);
    expect((await opened).kind).toBe('failed');
    expect(methods()).toEqual(['initialize']);
    expect(kept.verdict).toBeUndefined();
  });

  it('gets no initialize if it is modern', async () => {
    const { answer, opened, methods, advance } = opening({ setting: 'modern' });
    await advance(3_000);
    await answer('server/discover', NOT_FOUND);
    expect((await opened).kind).toBe('failed');
    expect(methods()).toEqual(['server/discover']);
  });
});
