import { describe, expect, it } from 'vitest';
import type { ServerReport } from '../../src/status/status.js';
import { overviewOf } from '../../src/status/status-text.js';
import { SharedLimit } from '../../src/wire/io/shared-limit.js';
import { toolOf } from '../support/scripted-gateway.js';
import { FAULT, given, manyReady, SOUND } from './reporting.js';

describe('the overview', () => {
  it('has of a healthy gateway only which servers there are', async () => {
    expect(overviewOf(await manyReady(['a', 'b']))).toEqual({
      version: '1.2.3',
      uptimeSeconds: 100,
      tools: 2,
      listTokens: 26,
      servers: [
        { server: 'a', state: 'ready' },
        { server: 'b', state: 'ready' },
      ],
    });
  });

  it('of 30 healthy servers has no more than 1.5 kB', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `server-${index}`);
    const hub = { pid: 4_194_304, uptimeSeconds: 100_000, clients: 100 };
    const overview = overviewOf({ ...(await manyReady(keys)), hub });
    expect(JSON.stringify(overview).length).toBeLessThanOrEqual(1_500);
    expect(overview.hub).toEqual(hub);
    expect(overview.servers.map(({ server }) => server)).toEqual(keys);
  });

  it('has first the servers with a problem, with what differs from a healthy server', async () => {
    const lifecycle = {
      ...{ state: 'backoff' as const, pid: undefined, retryAt: 101_500, consecutiveFailures: 1, restarts: 3 },
      ...{
        lastExit: { code: 0, signal: null, at: 99_000 },
        lastFailure: { code: null, signal: null, reason: 'exited', at: 99_000 },
      },
    };
    const { report } = await given({ lifecycle, logLines: ['Error: no key'], isStarted: false });
    const overview = overviewOf({ ...report(), servers: report().servers.toReversed() });
    expect(overview.servers).toEqual([
      {
        ...{ server: 'a', state: 'backoff', restarts: 3, lastFailure: 'exited', retryInSeconds: 2 },
        ...{ lastExit: { code: 0, signal: null, secondsAgo: 1 }, log: ['Error: no key'] },
        problem: 'It failed. Its tools appear when it is ready.',
        code: 'TL-SERVER-RESTARTING',
        advice: 'Trunkline restarts it automatically, in 2 s. If it keeps failing, its log lines show why.',
      },
      { server: 'b', state: 'stopped' },
    ]);
  });

  it('counts what it does not name: entries that are withheld, denied, or hide characters', async () => {
    const hiding = toolOf('ok').replace('{', '{"description":"\\u200b",');
    const tools = [hiding, toolOf('secret'), '{"name":"bad"}', '{"name":"worse"}'];
    const { report } = await given({ script: { tools, filter: { deny: ['secret'] } } });
    expect(overviewOf(report()).servers[0]?.tools).toEqual({ quarantined: 2, denied: 1, hiding: 1 });
  });

  it('has no log of a server that is up, and no exit of a server that did not fail', async () => {
    const { report } = await given({ lifecycle: { lastExit: { code: 0, signal: null, at: 0 } }, logLines: ['hello'] });
    expect(overviewOf(report()).servers[0]).toEqual({ server: 'a', state: 'ready' });
  });

  it('has figures of a server that is up if they are not zero', async () => {
    const { report } = await given();
    const [a, ...others] = report().servers;
    const figures = {
      ...{ breaker: 'half-open' as const, fromLastRun: true, queued: 2, failures: 1, failureReasons: { timeout: 1 } },
      ...{ droppedLogBytes: 7, approval: { approved: 2, firstUse: true, fault: null } },
    };
    const change = { ...figures, dropped: { junk: 1, late: 0 }, calls: 5, inFlight: 1, latencyMs: { p50: 1, p95: 2 } };
    const overview = overviewOf({ ...report(), servers: [{ ...(a as ServerReport), ...change }, ...others] });
    expect(overview.servers[0]).toEqual({ server: 'a', state: 'ready', ...figures, dropped: { junk: 1 } });
  });

  it('has what is wrong with the configuration, and each limit that refused something', async () => {
    const waiting = new SharedLimit(0);
    waiting.tryAcquire(1);
    const { report } = await given({ facts: { config: { ...SOUND, fault: FAULT, reloads: 1 }, waiting } });
    expect(overviewOf(report())).toMatchObject({
      ...{ configFile: '/etc/trunkline.yaml', configFault: FAULT.report, configFaultSeconds: 12 },
      ...{ configInForce: 'none', configReloads: 1 },
      limits: { waitingCalls: { now: 0, max: 0, refused: 1 } },
    });
    expect(overviewOf(report()).limits).not.toHaveProperty('partialFrameBytes');
  });
});
