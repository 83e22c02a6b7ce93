import { describe, expect, it } from 'vitest';
import { reportStatus, type ServerReport, type StatusReport } from '../../../src/gateway/status/status.js';
import { RefusedNames } from '../../../src/gateway/status/status-facts.js';
import { overviewOf } from '../../../src/gateway/status/status-overview.js';
import { renderOneServer, renderStatus } from '../../../src/gateway/status/status-text.js';
import { toolOf } from '../../support/scripted-gateway.js';
import { FAULT, given, manyReady, SOUND } from './reporting.js';

const FAILED = {
  state: 'backoff',
  pid: undefined,
  readySince: undefined,
  retryAt: 101_500,
  consecutiveFailures: 1,
  lastExit: { code: 1, signal: null, at: 35_000 },
  lastFailure: { reason: 'exited', at: 35_000 },
} as const;

/** The text about all servers, when the first server is changed like this. */
async function textWith(change: Partial<ServerReport>, render: (report: StatusReport) => string = renderStatus) {
  const { report } = await given();
  const [first, ...others] = report().servers;
  if (first === undefined) throw new Error('No server');
  return render({ ...report(), servers: [{ ...first, ...change }, ...others] });
}

describe('the text about all servers', () => {
  it('names healthy servers in one line, with the numbers of their tools', async () => {
    const report = await manyReady(['a', 'b', 'c']);
    expect(renderStatus(report)).toBe(
      'Trunkline 1.2.3, up 1 min 40 s, 3 tools. 3 servers, all up.\nUp: a (1 tool), b (1), c (1)',
    );
  });

  it('says after the head which hub serves the client, or why the client has servers of its own', async () => {
    const report = await manyReady(['a']);
    const hub = { pid: 4711, uptimeSeconds: 61, clients: 3 };
    expect(renderStatus({ ...report, hub }).split('\n')[1]).toBe(
      'Served by the hub: pid 4711, up 1 min 1 s, 3 clients.',
    );
    expect(renderOneServer({ ...report, hub }).split('\n')[1]).toMatch(/^Served by the hub: pid 4711/);
    expect(renderStatus({ ...report, aloneBecause: 'the disk is full' }).split('\n')[1]).toBe(
      'Not shared: this client has servers of its own, because the disk is full.',
    );
  });

  it('tells how many HTTP requests were refused for their names, and which option allows the name', async () => {
    const names = new RefusedNames();
    names.count({ header: 'Host', name: 'first.example' }, 10_000);
    names.count({ header: 'Host', name: 'gateway.example' }, 88_000);
    names.count({ header: 'Origin', name: 'null' }, 99_000);
    const { make } = await given({ facts: { refusedNames: names.all } });
    const report = reportStatus(make());
    const [host, origin] = renderStatus(report)
      .split('\n')
      .filter((line) => line.startsWith('HTTP'));
    expect(host).toMatch(
      /^HTTP requests refused for their Host: 2, the last 12 s ago with gateway\.example\. If .*`--allowed-host NAME`/,
    );
    expect(origin).toMatch(
      /^HTTP requests refused for their Origin: 1, the last 1 s ago with null\. If .*`--allowed-origin/,
    );
    expect(overviewOf(report).refusedNames).toMatchObject([
      { header: 'Host', count: 2, last: 'gateway.example', secondsAgo: 12, code: 'TL-HTTP-HOST-REFUSED' },
      { header: 'Origin', code: 'TL-HTTP-ORIGIN-REFUSED' },
    ]);
  });

  it('of 30 healthy servers with long names has no more than 1.5 kB', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `some-long-server-key-${index}`);
    const hub = { pid: 4_194_304, uptimeSeconds: 100_000, clients: 100 };
    const report = { ...(await manyReady(keys, ['one', 'two', 'three', 'four', 'five'])), hub };
    expect(report.advice).toContain('150 tools are listed');
    const text = renderStatus(report);
    expect(text.length).toBeLessThanOrEqual(1_500);
    for (const key of keys) expect(text).toContain(`${key} (5`);
    const era = { name: 'modern', foundBy: 'asked', cachedUntil: null } as const;
    const modern = renderStatus({ ...report, servers: report.servers.map((server) => ({ ...server, era })) });
    expect(modern.length).toBeLessThanOrEqual(1_500);
    expect(modern).toContain(
      '\nModern era: some-long-server-key-0, some-long-server-key-1, some-long-server-key-2 and 27 more',
    );
  });

  it('says nothing of the era of servers with a handshake', async () => {
    const era = { name: 'legacy', foundBy: 'cached', cachedUntil: '2026-11-24T08:10:30.000Z' } as const;
    expect(await textWith({ era })).not.toContain('era');
  });

  it('begins with the servers that have a problem: what happened, why, and what to do', async () => {
    const { report } = await given({ lifecycle: FAILED, logLines: ['Error: no key'] });
    const [b, a] = report().servers.toReversed();
    if (a === undefined || b === undefined) throw new Error('No servers');
    expect(renderStatus({ ...report(), servers: [b, a] }).split('\n')).toEqual([
      'Trunkline 1.2.3, up 1 min 40 s, 1 tool. 2 servers: 1 with a problem, 1 not running.',
      '- a: It failed. Its tool stays listed, and calls wait until it is ready.',
      '    why: it ended with exit code 1, 1 min 5 s ago',
      '    log: Error: no key',
      '    what to do: Trunkline restarts it automatically, in 2 s. If it keeps failing, its log lines show why.',
      'Not running: b',
    ]);
  });

  it.each([
    ['initialize: exited', 'it ended with exit code 1, 1 min 5 s ago'],
    ['start-timeout', 'it was not ready in time (setting `startTimeout`)'],
    ['initialize: timeout', 'it was not ready in time (setting `startTimeout`)'],
    ['Cannot start "x": not found (ENOENT)', 'Cannot start "x": not found (ENOENT)'],
  ])('says of the failure "%s": %s', async (reason, why) => {
    const { report } = await given({ lifecycle: { ...FAILED, lastFailure: { reason, at: 0 } } });
    expect(renderStatus(report())).toContain(`\n    why: ${why}\n`);
  });

  it('does not repeat the failure as a line of the log', async () => {
    const reason = 'Cannot start "x": not found (ENOENT)';
    const { report } = await given({
      lifecycle: { ...FAILED, lastFailure: { reason, at: 0 } },
      logLines: [reason, reason],
    });
    expect(renderStatus(report()).split(reason)).toHaveLength(2);
  });

  it('has its flood, too, which may be why its calls fail', async () => {
    const text = await textWith({ problem: 'It hangs.', pausedSeconds: 90 });
    expect(text).toContain('\n    flood: its output was not read for 1 min 30 s in all; it answers no call');
  });

  it('names the signal that ended a process, long ago', async () => {
    const lastExit = { code: null, signal: 'SIGKILL', at: 0 };
    const { report } = await given({ lifecycle: { ...FAILED, lastExit }, facts: { now: 7_290_000 } });
    expect(renderStatus(report())).toContain('why: it ended with signal SIGKILL, 2 h 1 min ago');
  });

  it('names up to five entries that are not listed, and the text about the server names all', async () => {
    const tools = [toolOf('ok'), ...Array.from({ length: 7 }, (_, index) => `{"name":"bad${index}"}`)];
    const { report, make } = await given({ script: { tools } });
    const [head, , ...rows] = renderStatus(report()).split('\n');
    expect(head).toContain('1 with a problem');
    expect(rows[0]).toMatch(/^ {4}not listed: bad0 \(.*bad4 \([^)]*\), and 2 more$/);
    expect(renderOneServer(reportStatus(make(), 'a'))).toMatch(/bad0.*bad6 \([^)]*\)\n/);
  });

  it('shows a list that was cut short, and approvals that cannot be read, as problems', async () => {
    const { tools } = (await given()).report().servers[0] as ServerReport;
    expect(await textWith({ tools: { ...tools, truncated: 'more than 3 pages' } })).toContain(
      '1 with a problem, 1 not running.\n- a: up, 1 tool\n    list cut short: more than 3 pages\n',
    );
    expect(await textWith({ approval: { approved: 0, firstUse: false, fault: 'a.json is no JSON' } })).toContain(
      '- a: up, 1 tool\n    approval: a.json is no JSON\n',
    );
  });

  it('groups servers that are on their way, and says what to expect', async () => {
    const installing = { package: 'p@1', forSeconds: 75 };
    expect(await textWith({ state: 'installing', installing })).toContain(
      '1 starting, 1 not running.\nPackages are being installed, which may take a minute or more. Then the tools appear: a (p@1, for 1 min 15 s',
    );
    const { tools } = (await given()).report().servers[0] as ServerReport;
    const none = { ...tools, exposed: [] };
    expect(await textWith({ state: 'starting', tools: none })).toContain(
      '\nStarting. The tools appear when the server is ready: a\n',
    );
    expect(await textWith({ state: 'starting', fromLastRun: true })).toContain(
      '\nStarting, with the tools of the last run. Calls wait until the server is ready: a (1 tool)\n',
    );
    expect(await textWith({ state: 'idle' })).toContain('\nNot running until a call needs them: a (1 tool)');
  });

  it('tells of a server that is up what went wrong earlier and what waits, and nothing that is zero', async () => {
    const lastExit = { code: 1, signal: null, secondsAgo: 5 };
    const failures = { calls: 9, failures: 2, failureReasons: { timeout: 1, child_exited: 1 } };
    const text = await textWith({ restarts: 2, lastExit, ...failures, queued: 3, inFlight: 1, dropped: { junk: 4 } });
    expect(text.split('\n').slice(1)).toEqual([
      'Not running: b',
      'Up: a (1 tool)',
      '- a: up, 1 tool',
      '    restarted: 2 times; the last process ended with exit code 1, 5 s ago',
      '    failed calls: 2 of 9 (timeout 1, child exited 1)',
      '    waiting calls: 3, behind 1 in flight',
    ]);
  });

  it('tells of a server that is up again why it was restarted, as long as that is known', async () => {
    const facts = { restarts: 1, lastExit: { code: 0, signal: null, secondsAgo: 5 } };
    const lastFailure = 'it closed its stdout and ran on, so it could not answer';
    const ended = 'the last process ended with exit code 0, 5 s ago';
    const restartRow = async (change: Partial<ServerReport>) =>
      (await textWith({ ...facts, ...change })).split('\n').find((line) => line.includes('restarted:'));
    expect(await restartRow({ lastFailure })).toBe(`    restarted: once; last failure: ${lastFailure}; ${ended}`);
    expect(await restartRow({ lastFailure: 'start-timeout' })).toContain('it was not ready in time');
    for (const known of [null, 'exited'])
      expect(await restartRow({ lastFailure: known })).toBe(`    restarted: once; ${ended}`);
  });

  it('does not take an earlier failure for the reason why a running server has a problem', async () => {
    const lifecycle = { ...FAILED, pid: 7, restarts: 1, lastFailure: { reason: 'it went mad', at: 0 } };
    for (const state of ['suspect', 'backoff'] as const) {
      const { make, report } = await given({ lifecycle: { ...lifecycle, state } });
      for (const text of [renderStatus(report()), renderOneServer(reportStatus(make(), 'a'))]) {
        expect(text.includes('why: it went mad')).toBe(state === 'backoff');
        expect(text.includes('restarted: once; last failure: it went mad')).toBe(state === 'suspect');
      }
    }
  });

  it('tells of a server that uses most of what it may use, and of no other', async () => {
    const MIB = 1024 ** 2;
    const usage = { memoryBytes: 850 * MIB, processes: 3, cpuSeconds: 75, cpuPercent: 12 };
    const near = { memoryBytes: 1024 * MIB, processes: null };
    const far = { memoryBytes: 1100 * MIB, processes: 4 };
    expect(await textWith({ usage, resourceLimits: near })).toContain(
      '    uses: 850 MiB of memory (limit 1 GiB), 12 % of a processor, 1 min 15 s of processor time in all, 3 processes',
    );
    expect(await textWith({ usage, resourceLimits: far })).not.toContain('uses:');
    expect(await textWith({ usage: null, resourceLimits: near })).not.toContain('uses:');
    expect(await textWith({ usage, resourceLimits: { memoryBytes: null, processes: null } })).not.toContain('uses:');
  });

  it('tells when the event loop was held for more than 500 ms', async () => {
    const { report } = await given();
    const held = (maxMs: number) => renderStatus({ ...report(), eventLoop: { p99Ms: 2, maxMs } });
    expect(held(812)).toContain(
      'Trunkline was held up for 812 ms at a time; all servers and clients waited meanwhile.',
    );
    expect(held(500)).not.toContain('held up');
  });

  it('counts the tools that the configuration denies, and the tools that were approved automatically', async () => {
    const { report } = await given({ script: { tools: ['read', 'secret'], filter: { deny: ['secret'] } } });
    expect(renderStatus(report())).toContain('Up: a (1 tool, 1 denied)');
    const approval = { approved: 2, firstUse: true, fault: null };
    expect(await textWith({ approval })).toContain(
      '\nTools that were approved automatically, because they were the first of the server: a (2)',
    );
  });

  it('counts prompts and resources of a server that has no tools', async () => {
    const { tools, prompts } = (await given()).report().servers[0] as ServerReport;
    const lists = { tools: { ...tools, exposed: [] }, prompts: { ...prompts, exposed: ['a__p', 'a__q'] } };
    expect(await textWith(lists)).toContain('Up: a (2 prompts)');
    expect(await textWith({ tools: { ...tools, exposed: [] } })).toContain('Up: a (no tools)');
  });

  it('begins with what is wrong with the configuration as a whole', async () => {
    const { report } = await given({ facts: { config: { ...SOUND, fault: FAULT } } });
    expect(renderStatus(report()).split('\n')[1]).toBe(
      'The configuration cannot be used, so no server runs: trunkline.yaml:3:1: no servers',
    );
  });

  it('tells since when the file cannot be used, and that what it said before is in force', async () => {
    const { report } = await given({ facts: { config: { ...SOUND, fault: { ...FAULT, isPreviousInForce: true } } } });
    expect(report()).toMatchObject({
      configFault: FAULT.report,
      configFaultSeconds: 12,
      configInForce: 'previous',
    });
    expect(renderStatus(report()).split('\n')[1]).toBe(
      `The configuration file has been unusable for 12 s, so the previous configuration stays in force: ${FAULT.report}`,
    );
  });

  it('tells which settings wait for the next start', async () => {
    const { report } = await given({ facts: { config: { ...SOUND, reloads: 2, needsRestart: ['gateway.http'] } } });
    expect(report()).toMatchObject({ configInForce: 'current', configReloads: 2 });
    expect(renderStatus(report()).split('\n')[1]).toBe(
      'Restart Trunkline to apply these changed settings: gateway.http.',
    );
  });

  it('has as many lines as it should, whatever a server says', async () => {
    const { report } = await given({
      logLines: ['a\nb\r\u2028c'],
      lifecycle: { state: 'parked', lastFailure: { reason: 'x\ny', at: 0 } },
    });
    for (const text of [renderStatus(report()), renderOneServer(report())]) {
      const known = /^(Trunkline|Not running: b$|- [ab]:| {4}[a-z ]+:)/;
      expect(text.split('\n').filter((line) => !known.test(line))).toEqual([]);
    }
  });

  it('says that there is no server', async () => {
    const { report } = await given();
    expect(renderStatus({ ...report(), servers: [] })).toBe(
      'Trunkline 1.2.3, up 1 min 40 s, 1 tool. No server is configured.',
    );
  });
});

describe('the text about one server', () => {
  it.each([
    ['configured', null, '`era` of its entry says so'],
    ['asked', null, 'it was asked when it started'],
    ['cached', '2026-11-24T08:10:30.000Z', 'cached until 2026-11-24 08:10 UTC'],
    ['cached', null, 'cached until it proves wrong'],
    ['exited', null, 'it exits when it is asked'],
  ] as const)('tells the era that was found by %s (%s)', async (foundBy, cachedUntil, says) => {
    const era = { name: 'legacy', foundBy, cachedUntil } as const;
    expect(await textWith({ era }, renderOneServer)).toContain(`\n    era: legacy, ${says}\n`);
  });

  it('has its process, and no line that says nothing', async () => {
    const { make } = await given();
    expect(renderOneServer(reportStatus(make(), 'a'))).toBe(
      [
        'Trunkline 1.2.3, up 1 min 40 s, 1 tool.',
        '- a: up, 1 tool',
        '    process: pid 4711, up 1 min 0 s, protocol 2025-11-25',
      ].join('\n'),
    );
  });

  it('has all that is known of it', async () => {
    const instance = {
      id: 'a',
      state: 'ready',
      pid: 4711,
      clients: 1,
      inFlight: 2,
      restarts: 1,
      isYours: true,
    } as const;
    const text = await textWith(
      {
        ...{ restarts: 1, generation: 2, lastExit: { code: 1, signal: null, secondsAgo: 5 } },
        ...{ calls: 9, errors: 1, cancelled: 1, repeated: 1, inFlight: 2, failures: 1, failureReasons: { timeout: 1 } },
        ...{
          latencyMs: { p50: 3, p95: 40 },
          dropped: { late: 0, junk: 4 },
          log: ['hello'],
          droppedLogBytes: 7,
          pausedSeconds: 90,
        },
        instances: [instance, { ...instance, id: 'a#2', pid: null, state: 'starting', clients: 2, isYours: false }],
        approval: { approved: 1, firstUse: true, fault: null },
      },
      renderOneServer,
    );
    expect(text.split('\n').slice(1, -1)).toEqual([
      '- a: up, 1 tool',
      '    approval: its first 1 tool was approved automatically',
      '    process: pid 4711, up 1 min 0 s, protocol 2025-11-25, start 2',
      '    restarted: once; the last process ended with exit code 1, 5 s ago',
      '    processes: a ready (pid 4711), 1 client, including you; a#2 starting, 2 clients',
      '    calls: 9, 2 in flight, 1 answered with an error, 1 cancelled, 1 repeated, half took up to 3 ms, 95 % up to 40 ms',
      '    failed calls: 1 of 9 (timeout 1)',
      '    dropped messages: junk 4',
      '    flood: its output was not read for 1 min 30 s in all; it answers no call',
      '    output dropped from the log: 7 bytes (too much at once)',
      '    log: hello',
    ]);
  });
});

describe('a server that failed', () => {
  it('has the lines that name the cause instead of its last ones, and both if it is asked for', async () => {
    const logLines = ['Error: no key', '    at main (server.js:1:1)', 'Node.js v20.20.2'];
    const { report, make } = await given({ lifecycle: FAILED, logLines, cause: ['Error: no \u001bkey', 'canary'] });
    const about = (text: string) => text.split('\n').filter((line) => /^ {4}(?:cause|log):/.test(line));
    const causes = ['    cause: Error: no \\u{1b}key', '    cause: [redacted]'];
    expect(about(renderStatus(report()))).toEqual(causes);
    const one = reportStatus(make(), 'a');
    expect(about(renderOneServer(one))).toEqual([...causes, ...logLines.map((line) => `    log: ${line}`)]);
  });
});
