import { describe, expect, it } from 'vitest';
import { backendLauncher, type LaunchTarget } from '../../src/app/server-processes.js';
import type { LaunchEvents } from '../../src/spec/launch.js';
import { ServerEra } from '../../src/upstream/server-era.js';
import type { Dialed, UpstreamConnection, UpstreamListener } from '../../src/upstream/upstream-connection.js';
import { sampleSpec } from '../servers/supervision/sample-spec.js';
import { FakeClock } from '../support/fake-clock.js';
import { InMemoryUpstream } from '../support/in-memory-upstream.js';
import { flush, notificationOf } from '../support/wire.js';

const KEY = 'files';
const PROFILE = { clientInfo: { name: 'c' }, capabilities: {} };

/** A launch whose events, backend and log are written down. */
function launching({
  dial,
  loadLists = async () => {},
  listFailures = [],
  profile = Promise.resolve(PROFILE),
  era = new ServerEra('auto'),
}: {
  readonly dial?: (listener: UpstreamListener) => Dialed;
  readonly loadLists?: (connection: UpstreamConnection) => Promise<void>;
  readonly listFailures?: LaunchTarget['backend']['listFailures'];
  readonly profile?: LaunchTarget['profile'];
  readonly era?: ServerEra;
} = {}) {
  const server = new InMemoryUpstream({ clock: new FakeClock() });
  const told: string[] = [];
  const log: string[] = [];
  const events: LaunchEvents = {
    began: () => told.push('began'),
    answered: () => told.push('answered'),
    ready: () => told.push('ready'),
    failed: ({ reason, fault = 'server' }) => told.push(`failed: ${reason}${fault === 'server' ? '' : ` (${fault})`}`),
    suspected: () => told.push('suspected'),
    cleared: () => told.push('cleared'),
    unfit: (reason) => told.push(`unfit: ${reason}`),
    exited: ({ code }) => told.push(`exited: ${code}`),
    endedByProbe: () => told.push('endedByProbe'),
    lost: (fault, reason) => told.push(`lost: ${reason} (${fault})`),
  };
  const target: LaunchTarget = {
    backend: {
      serverRequest: ({ request }) => told.push(`request: ${request.method}`),
      notification: ({ method }) => told.push(`notification: ${method}`),
      opened: ({ generation }) => told.push(`opened: ${generation}`),
      loadLists,
      listFailures,
      attach: ({ generation }) => told.push(`attached: ${generation}`),
      mirroredParams: () => [],
      rereadTools: () => Promise.resolve(),
    },
    profile,
    log: {
      add: (line) => log.push(line),
      addJunk: () => {},
      stderr: { freeSpace: new Uint8Array(1), filled: () => {} },
      end: () => {},
      beginAttempt: () => {},
    },
    era,
    maxFrameBytes: 1_000,
    maxUnwrittenBytes: 1_000,
  };
  let listener: UpstreamListener | undefined;
  const faults: unknown[] = [];
  const warnings: unknown[] = [];
  const launcher = backendLauncher({
    dialer: {
      dial: (dialTarget, itsListener) => {
        listener = itsListener;
        return dial?.(itsListener) ?? server.dial(dialTarget, itsListener);
      },
    },
    targets: new Map([[KEY, target]]),
    logger: { warn: (facts: object, text: string) => warnings.push({ ...facts, text }) },
    onInternalError: (fault) => faults.push(fault),
  });
  const launched = launcher.launch(sampleSpec(KEY), 3, events);
  return { server, told, log, faults, warnings, launched, listener: () => listener ?? expect.fail('nobody dialed') };
}

/** A dialer that knows how it went at once. */
function outcome(connection: Dialed['connection']): () => Dialed {
  return () => ({ pid: undefined, connection, end: async () => {} });
}

describe('launching a server that has no process', () => {
  it('is ready once its lists are read and its backend has the connection', async () => {
    let list = () => {};
    const { told, launched } = launching({
      loadLists: () =>
        new Promise((resolve) => {
          list = resolve;
        }),
    });
    await flush();
    expect(told).toEqual(['began', 'answered', 'opened: 3']);
    list();
    await flush();
    expect(told).toEqual(['began', 'answered', 'opened: 3', 'attached: 3', 'ready']);
    expect(launched.pid).toBeUndefined();
  });

  it('waits for its client before it begins', async () => {
    let know: (profile: typeof PROFILE) => void = () => {};
    const { told } = launching({
      profile: new Promise((resolve) => {
        know = resolve;
      }),
    });
    await flush();
    expect(told).toEqual([]);
    know(PROFILE);
    await flush();
    expect(told).toEqual(['began', 'answered', 'opened: 3', 'attached: 3', 'ready']);
  });

  it('hands on what the server says, and how it is', async () => {
    const { server, told, log, listener } = launching();
    await flush();
    told.length = 0;
    server.say({ jsonrpc: '2.0', id: 1, method: 'roots/list' }, { jsonrpc: '2.0', method: 'notifications/x' });
    listener().suspected();
    listener().cleared();
    listener().unfit('it is mute');
    server.exit(4);
    expect(told).toEqual([
      'request: roots/list',
      'notification: notifications/x',
      'suspected',
      'cleared',
      'unfit: it is mute',
      'exited: 4',
    ]);
    expect(log).toEqual(['Trunkline restarts this server: it is mute']);
  });

  it('F148: begins otherwise if the question about its era ended it before', async () => {
    const era = new ServerEra('auto');
    const { told, server } = launching({ era });
    await flush();
    told.length = 0;
    era.probing();
    server.exit(1);
    server.exit(1);
    expect(told).toEqual(['endedByProbe', 'exited: 1']);
    expect(era.begin()).toBe('legacy');
  });

  it('keeps the reason for which Trunkline ends it in its log, even if the question about its era is blamed', async () => {
    const era = new ServerEra('auto');
    const { told, log, listener } = launching({ era });
    await flush();
    told.length = 0;
    era.probing();
    listener().unfit('it floods');
    expect(told).toEqual(['endedByProbe']);
    expect(log).toEqual(['Trunkline restarts this server: it floods']);
  });

  it.each([
    ['failed: no route', { kind: 'failed', reason: 'no route' }],
    ['failed: no descriptors (host)', { kind: 'failed', reason: 'no descriptors', fault: 'host' }],
  ] as const)('%s', async (expected, failure) => {
    const { told } = launching({ dial: outcome(Promise.resolve(failure)) });
    await flush();
    expect(told).toEqual([expected]);
  });

  it('is ready though its lists cannot be read, and the log says which and why', async () => {
    const reason = 'tools/list: timeout';
    const failure = { kind: 'tools', method: 'tools/list', reason, isExcessive: false } as const;
    const { told, warnings } = launching({ listFailures: [failure] });
    await flush();
    expect(told).toEqual(['began', 'answered', 'opened: 3', 'attached: 3', 'ready']);
    const text = 'server runs, but tools/list fails; Trunkline asks again';
    expect(warnings).toEqual([{ server: KEY, reason, text }]);
  });

  it('fails if the connection is closed by the time its lists are read', async () => {
    const { told } = launching({ loadLists: async (connection) => connection.close('exited') });
    await flush();
    expect(told).toEqual(['began', 'answered', 'opened: 3', 'failed: exited']);
  });

  it('fails, and tells of the error, when the dialer has one of its own', async () => {
    const bug = new Error('a bug');
    const { told, faults } = launching({ dial: outcome(Promise.reject(bug)) });
    await flush();
    expect(told).toEqual(['failed: a bug in Trunkline']);
    expect(faults).toEqual([bug]);
  });

  it('ends with its connection', async () => {
    const { server, launched } = launching();
    await flush();
    const { connection } = server;
    await launched.end({ termAfterMs: 1, killAfterMs: 2 });
    expect(connection.isClosed).toBe(true);
    connection.notify(notificationOf({ jsonrpc: '2.0', method: 'notifications/x' }));
    expect(server.received.lines).toEqual([]);
  });
});
