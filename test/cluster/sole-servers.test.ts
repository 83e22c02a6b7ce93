// Servers that one gateway of a cluster runs, with a store and gateways that the test plays.
import { expect, it } from 'vitest';
import { SoleServers } from '../../src/cluster/sole-servers.js';
import { ServerEra } from '../../src/upstream/server-era.js';
import { sampleSpec } from '../supervision/sample-spec.js';
import { FakeClock } from '../support/fake-clock.js';
import { dialerOptions } from '../support/http-peer.js';
import { SILENT_LISTENER } from '../support/in-memory-upstream.js';

it('a gateway that has just joined asks the one that runs the server whether it answers, before it gives the server up', async () => {
  const clock = new FakeClock();
  const asked: string[] = [];
  const sole = new SoleServers({
    ...{ self: 'aaaaaaaaaa', address: '127.0.0.1:1', clock, hasOthers: () => true },
    store: {
      claim: async () => 'bbbbbbbbbb',
      holderOf: async () => 'bbbbbbbbbb',
      read: async () => Buffer.from('complete'),
      ...{ renew: async () => [], release: async () => {}, replace: async () => true },
    },
    addressOf: (name) => (asked.includes(name) ? '127.0.0.1:2' : undefined),
    known: async (name) => void asked.push(name),
    sign: () => {
      throw new Error('connected');
    },
    onInternalError: (error) => {
      throw error;
    },
  });
  const remote = { ...dialerOptions(clock), onInternalError: () => {} };
  const target = {
    ...{ generation: 1, maxFrameBytes: 1, maxUnwrittenBytes: 1, paramsOf: () => [], rereadTools: async () => {} },
    ...{
      spec: sampleSpec(),
      profile: Promise.resolve({ clientInfo: {}, capabilities: {} }),
      era: new ServerEra('auto'),
    },
    log: {
      ...{ add: () => {}, addJunk: () => {}, end: () => {} },
      stderr: { freeSpace: new Uint8Array(1), filled: () => {} },
    },
  };
  const processes = { dial: () => expect.fail('The server runs elsewhere') };
  const dialed = sole.dial('lab', target, SILENT_LISTENER, { processes, remote });
  expect(await dialed.connection).toMatchObject({ kind: 'failed', reason: expect.stringContaining('connected') });
  expect(asked).toEqual(['bbbbbbbbbb']);
  await dialed.end({ termAfterMs: 0, killAfterMs: 0 });
});
