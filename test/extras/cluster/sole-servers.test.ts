// Servers that one gateway of a cluster runs, with a store and gateways that the test plays.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { SoleServers } from '../../../src/extras/cluster/sole-servers.js';
import { ServerEra } from '../../../src/upstream/server-era.js';
import type { Dialed, UpstreamListener } from '../../../src/upstream/upstream-connection.js';
import { sampleSpec } from '../../servers/supervision/sample-spec.js';
import { FakeClock } from '../../support/fake-clock.js';
import { dialerOptions } from '../../support/http-peer.js';
import { SILENT_LISTENER } from '../../support/in-memory-upstream.js';
import { flush, type Message } from '../../support/wire.js';

const END = { termAfterMs: 0, killAfterMs: 0 };

type Options = ConstructorParameters<typeof SoleServers>[0];

/** Dials a server that another gateway runs. */
function dialElsewhere(options: Pick<Options, 'clock' | 'addressOf' | 'known' | 'sign'> & { holder: () => string }) {
  const { holder, ...given } = options;
  const sole = new SoleServers({
    ...{ self: 'aaaaaaaaaa', address: '127.0.0.1:1', hasOthers: () => true, ...given },
    store: {
      claim: async () => holder(),
      holderOf: async () => holder(),
      read: async () => Buffer.from('complete'),
      ...{ renew: async () => [], release: async () => {}, replace: async () => true },
    },
    onInternalError: (error) => {
      throw error;
    },
  });
  const remote = { ...dialerOptions(given.clock), onInternalError: () => {} };
  const target = {
    ...{ generation: 1, maxFrameBytes: 1_000, maxUnwrittenBytes: 1_000 },
    ...{ paramsOf: () => [], rereadTools: async () => {}, era: new ServerEra('legacy') },
    ...{ spec: sampleSpec(), profile: Promise.resolve({ clientInfo: {}, capabilities: {} }) },
    log: {
      ...{ add: () => {}, addJunk: () => {}, end: () => {} },
      stderr: { freeSpace: new Uint8Array(1), filled: () => {} },
    },
  };
  const processes = { dial: () => expect.fail('The server runs elsewhere') };
  return (listener: UpstreamListener): Dialed => sole.dial('lab', target, listener, { processes, remote });
}

it('a gateway that has just joined asks the one that runs the server whether it answers, before it gives the server up', async () => {
  const asked: string[] = [];
  const dial = dialElsewhere({
    clock: new FakeClock(),
    holder: () => 'bbbbbbbbbb',
    addressOf: (name) => (asked.includes(name) ? '127.0.0.1:2' : undefined),
    known: async (name) => void asked.push(name),
    sign: () => {
      throw new Error('connected');
    },
  });
  const dialed = dial(SILENT_LISTENER);
  expect(await dialed.connection).toMatchObject({ kind: 'failed', reason: expect.stringContaining('connected') });
  expect(asked).toEqual(['bbbbbbbbbb']);
  await dialed.end(END);
});

it.each([
  ['waits for the answers of the gateway that has its calls', true, []],
  ['waits no longer when that gateway is gone', false, ['moved']],
])('a gateway that finds the server elsewhere %s', async (_, isThere, lostMeanwhile) => {
  /** Answers the call that waits. */
  let answerCall: (() => void) | undefined;
  const server = createServer(async (request, response) => {
    const { id, method, params } = request.method === 'POST' ? ((await json(request)) as Message) : {};
    if (method === 'tools/call') answerCall = () => answer(response, { id, result: { content: [] } });
    else if (id === undefined) response.writeHead(request.method === 'POST' ? 202 : 405).end();
    else {
      const { protocolVersion } = params;
      const result = { protocolVersion, capabilities: {}, serverInfo: { name: 's', version: '1' } };
      answer(response, { id, result });
    }
  });
  const answer = (response: ServerResponse, message: Message) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', ...message }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clock = new FakeClock();
  let [holder, isReachable] = ['bbbbbbbbbb', true];
  const lost: string[] = [];
  const dialed = dialElsewhere({
    clock,
    holder: () => holder,
    addressOf: () => (isReachable ? address : undefined),
    known: async () => {},
    sign: ({ headers }) => headers,
  })({ ...SILENT_LISTENER, lost: (fault) => void lost.push(fault) });
  const look = async () => {
    clock.advance(2_000);
    await flush();
  };

  const outcome = await dialed.connection;
  if (outcome.kind !== 'open') expect.fail(outcome.reason);
  await look();
  const called = outcome.connection.request('tools/call', {}, { idleMs: 60_000, maxMs: 60_000 });
  await expect.poll(() => answerCall).toBeDefined();
  [holder, isReachable] = ['cccccccccc', isThere];
  await look();
  expect(lost).toEqual(lostMeanwhile);
  answerCall?.();
  expect(await called).toMatchObject({ kind: 'answered' });
  await look();
  expect(lost).toEqual(['moved']);
  await dialed.end(END);
});
