import { describe, expect, it } from 'vitest';
import { RefusedNames } from '../../src/status/refused-names.js';
import { reportStatus, type ServerReport, type StatusReport } from '../../src/status/status.js';
import { overviewOf, renderOneServer, renderStatus } from '../../src/status/status-text.js';
import { InMemoryExchange } from '../support/in-memory-client.js';
import { toolOf } from '../support/scripted-gateway.js';
import { FAULT, given, manyReady, NOTHING } from './reporting.js';

const FAILED = {
  state: 'backoff',
  pid: undefined,
  readySince: undefined,
  retryAt: 101_500,
  consecutiveFailures: 1,
  lastExit: { code: 1, signal: null, at: 35_000 },
  lastFailure: { code: null, signal: null, reason: 'exited', at: 35_000 },
} as const;

/** The list of tools of the first server. */
const LISTED = { ...NOTHING, exposed: ['a__read'] };

/** The text about all servers, with these changes to the first server. */
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
      'Trunkline 1.2.3, up 1 min 40 s, 3 tools, about 39 tokens. 3 servers, all up.\nUp: a (1 tool), b (1), c (1)',
    );
    expect(renderStatus({ ...report, servers: [] })).toBe(
      'Trunkline 1.2.3, up 1 min 40 s, 3 tools, about 39 tokens. No server is configured.',
    );
  });

  it.each<[string, Partial<StatusReport>, string]>([
    [
      'which hub serves the client',
      { hub: { pid: 4711, uptimeSeconds: 61, clients: 3 } },
      'Served by the hub: pid 4711, up 1 min 1 s, 3 clients.',
    ],
    [
      'why the client has servers of its own',
      { aloneBecause: 'the disk is full' },
      'Not shared: this client has servers of its own, because the disk is full.',
    ],
    [
      'a delay of more than 500 ms',
      { eventLoop: { p99Ms: 2, maxMs: 812 } },
      'Trunkline was held up for 812 ms at a time; all servers and clients waited meanwhile.',
    ],
    ['no shorter delay', { eventLoop: { p99Ms: 2, maxMs: 500 } }, 'Up: a (1 tool)'],
    [
      'that no configuration can be used',
      { configFault: FAULT.report, configInForce: 'none' },
      `The configuration cannot be used, so no server runs: ${FAULT.report}`,
    ],
    [
      'since when the file cannot be used, and that the previous one is in force',
      { configFault: FAULT.report, configFaultSeconds: 12, configInForce: 'previous' },
      `The configuration file has been unusable for 12 s, so the previous configuration stays in force: ${FAULT.report}`,
    ],
    [
      'the large results that are kept',
      { keptResults: { count: 2, bytes: 1_500_000 } },
      '2 large results in memory for the clients to read: 1.5 MiB.',
    ],
    [
      'which settings wait for the next start',
      { configNeedsRestart: ['gateway.http'] },
      'Restart Trunkline to apply these changed settings: gateway.http.',
    ],
  ])('tells after the head: %s', async (_, change, line) => {
    expect(renderStatus({ ...(await manyReady(['a'])), ...change }).split('\n')[1]).toBe(line);
  });

  it('tells which settings wait for the next hub', async () => {
    const change = { hub: { pid: 1, uptimeSeconds: 2, clients: 1 }, configNeedsRestart: ['gateway.sealKeyFile'] };
    expect(renderStatus({ ...(await manyReady(['a'])), ...change })).toContain(
      '\nRun `trunkline hub restart` to apply these changed settings: gateway.sealKeyFile.\n',
    );
  });

  it('tells how the client sees the tools, and why, if that is not the default', async () => {
    const report = await manyReady(['a']);
    const clientList = {
      mode: 'search',
      because: 'Cursor shows 40 tools, and there are 41',
      tools: 4,
      tokens: 700,
    } as const;
    expect(renderStatus({ ...report, clientList })).toContain(
      '\nThis client is in search mode, because Cursor shows 40 tools, and there are 41. Its list has 4 tools, about 700 tokens; trunkline__find_tools finds the others.\n',
    );
    expect(renderStatus({ ...report, clientList: { ...clientList, mode: 'direct' } })).toContain(
      '\nThis client is in direct mode, because Cursor shows 40 tools, and there are 41. Its list has 4 tools, about 700 tokens.\n',
    );
    expect(renderStatus(report)).not.toContain('mode');
  });

  it('tells how many HTTP requests were refused for their names, and which option allows the name', async () => {
    const names = new RefusedNames();
    names.count({ header: 'Host', name: 'first.example' }, 10_000);
    names.count({ header: 'Host', name: 'gateway.example' }, 88_000);
    names.count({ header: 'Origin', name: 'null' }, 99_000);
    const { report } = await given({ facts: { service: { kind: 'http', refusedNames: names.all } } });
    expect(renderStatus(report())).toMatch(
      /\nHTTP requests refused for their Host: 2, the last 12 s ago with gateway\.example\. If .*`--allowed-host NAME`.*\nHTTP requests refused for their Origin: 1, the last 1 s ago with null\. If .*`--allowed-origin/,
    );
    expect(overviewOf(report()).refusedNames).toMatchObject([
      { header: 'Host', count: 2, last: 'gateway.example', secondsAgo: 12, code: 'TL-HTTP-HOST-REFUSED' },
      { header: 'Origin', code: 'TL-HTTP-ORIGIN-REFUSED' },
    ]);
  });

  it('of 30 healthy servers with long names has no more than 1.5 kB', async () => {
    const keys = Array.from({ length: 30 }, (_, index) => `some-long-server-key-${index}`);
    const hub = { pid: 4_194_304, uptimeSeconds: 100_000, clients: 100 };
    const report = { ...(await manyReady(keys, ['one', 'two', 'three', 'four', 'five'])), hub };
    expect(report.advice).toContain('150 tools are listed');
    const era = { name: 'modern', foundBy: 'asked', cachedUntil: null } as const;
    const text = renderStatus({ ...report, servers: report.servers.map((server) => ({ ...server, era })) });
    expect(text.length).toBeLessThanOrEqual(1_500);
    expect(text).toContain(
      '\nModern era: some-long-server-key-0, some-long-server-key-1, some-long-server-key-2 and 27 more',
    );
  });

  it('tells which unknown servers run several processes, what one would save, and what to write', async () => {
    const { report } = await given();
    const [first] = report().servers;
    const sharing = { mode: 'isolated', rule: 'unknown', because: 'it is not known whether it keeps state' } as const;
    const instance = { state: 'ready', clients: 1, inFlight: 0, restarts: 0, isYours: false } as const;
    const instances = [30, 20, null].map((mib, at) => {
      return { ...instance, id: `a${at}`, pid: mib === null ? null : at, memoryBytes: (mib ?? 0) * 1024 ** 2 };
    });
    const withServers = (change: Partial<ServerReport>, keys = ['a']) => {
      const servers = keys.map((server) => ({ ...(first as ServerReport), sharing, instances, ...change, server }));
      return renderStatus({ ...report(), servers });
    };
    const advice = 'If a server keeps none, write `sharing: profile` in its entry.';
    const told = 'A process for each session, because it is not known whether the server keeps state:';
    expect(withServers({})).toContain(`\n${told} a (2 processes; one would save about 20 MiB). ${advice}`);
    const many = withServers({}, ['a', 'b', 'c', 'd', 'e']);
    expect(many).toContain('c (2 processes; one would save about 20 MiB) and 2 more. ');
    for (const change of [
      { instances: instances.slice(1) },
      { sharing: { ...sharing, rule: 'known' as const } },
      { sharing: { ...sharing, mode: 'profile' as const } },
      { sharing: null },
    ])
      expect(withServers(change)).not.toContain('A process for each session');
  });

  it('begins with the servers that have a problem: what happened, why, and what to do', async () => {
    const reason = 'Cannot start "x": not found (ENOENT)';
    const { report } = await given({
      lifecycle: { ...FAILED, lastFailure: { code: null, signal: null, reason, at: 0 } },
      logLines: ['Error: no key', reason],
    });
    expect(renderStatus({ ...report(), servers: report().servers.toReversed() }).split('\n')).toEqual([
      'Trunkline 1.2.3, up 1 min 40 s, 1 tool, about 13 tokens. 2 servers: 1 with a problem, 1 not running.',
      '- a: It failed. Its tool stays listed, and calls wait until it is ready.',
      `    why: ${reason}`,
      '    log: Error: no key',
      '    what to do: Trunkline restarts it automatically, in 2 s. If it keeps failing, its log lines show why.',
      'Not running: b',
    ]);
  });

  it.each([
    ['exited', { code: 1, signal: null, secondsAgo: 65 }, 'it ended with exit code 1, 1 min 5 s ago'],
    [
      'initialize: exited',
      { code: null, signal: 'SIGKILL', secondsAgo: 7_290 },
      'it ended with signal SIGKILL, 2 h 1 min ago',
    ],
    ['start-timeout', null, 'it was not ready in time (setting `startTimeout`)'],
    ['initialize: timeout', null, 'it was not ready in time (setting `startTimeout`)'],
  ])('says of the failure "%s" (%j): %s', async (lastFailure, lastExit, why) => {
    const text = await textWith({ state: 'backoff', problem: 'It failed.', lastFailure, lastExit });
    expect(text).toContain(`\n    why: ${why}\n`);
  });

  it('names up to five entries that are not listed, and the text about the server names all', async () => {
    const tools = [toolOf('ok'), ...Array.from({ length: 7 }, (_, index) => `{"name":"bad${index}"}`)];
    const { report, make } = await given({ script: { tools } });
    const [head, , ...rows] = renderStatus(report()).split('\n');
    expect(head).toContain('1 with a problem');
    expect(rows[0]).toMatch(/^ {4}not listed: bad0 \(.*bad4 \([^)]*\), and 2 more$/);
    expect(renderOneServer(reportStatus(make(), 'a'))).toMatch(/bad0.*bad6 \([^)]*\)\n/);
  });

  it.each<[string, Partial<ServerReport>, string]>([
    [
      'a list that was cut short',
      { tools: { ...LISTED, truncated: 'more than 3 pages' } },
      'list cut short: more than 3 pages',
    ],
    [
      'approvals that cannot be read',
      { approval: { approved: 0, firstUse: false, fault: 'a.json is no JSON' } },
      'approval: a.json is no JSON',
    ],
    [
      'a flood, which may be why its calls fail',
      { problem: 'up, 1 tool', pausedSeconds: 90 },
      'flood: its output was not read for 1 min 30 s in all; it answers no call',
    ],
  ])('shows as a problem: %s', async (_, change, row) => {
    expect(await textWith(change)).toContain(`1 with a problem, 1 not running.\n- a: up, 1 tool\n    ${row}\n`);
  });

  it.each<[Partial<ServerReport>, string]>([
    [
      { state: 'installing', installing: { package: 'p@1', forSeconds: 75 } },
      'Packages are being installed, which may take a minute or more. Then the tools appear: a (p@1, for 1 min 15 s, 1 tool)\n',
    ],
    [{ state: 'starting', tools: NOTHING }, 'Starting. The tools appear when the server is ready: a\n'],
    [
      { state: 'starting', fromLastRun: true },
      'Starting, with the tools of the last run. Calls wait until the server is ready: a (1 tool)\n',
    ],
    [{ state: 'idle' }, 'Not running until a call needs them: a (1 tool)'],
    [{ tools: { ...LISTED, denied: ['secret'] } }, 'Up: a (1 tool, 1 denied)'],
    [{ tools: NOTHING, prompts: { ...NOTHING, exposed: ['a__p', 'a__q'] } }, 'Up: a (2 prompts)'],
    [{ tools: NOTHING }, 'Up: a (no tools)'],
    [
      { approval: { approved: 2, firstUse: true, fault: null } },
      'Tools that were approved automatically, because they were the first of the server: a (2)',
    ],
  ])('groups servers without a problem, and says what to expect: %j', async (change, line) => {
    expect(await textWith(change)).toContain(`\n${line}`);
  });

  it('tells of a server that is up what went wrong earlier and what waits, and nothing that is zero', async () => {
    const lastExit = { code: 1, signal: null, secondsAgo: 5 };
    const failures = { calls: 9, failures: 2, failureReasons: { timeout: 1, child_exited: 1 } };
    const era = { name: 'legacy', foundBy: 'cached', cachedUntil: null } as const;
    const text = await textWith({
      restarts: 2,
      lastExit,
      ...failures,
      queued: 3,
      inFlight: 1,
      dropped: { junk: 4 },
      era,
    });
    expect(text.split('\n').slice(1)).toEqual([
      'Not running: b',
      'Up: a (1 tool)',
      '- a: up, 1 tool',
      '    restarted: 2 times; the last process ended with exit code 1, 5 s ago',
      '    failed calls: 2 of 9 (timeout 1, child exited 1)',
      '    waiting calls: 3, behind 1 in flight',
    ]);
  });

  it.each([
    ['it ran on', '; last failure: it ran on'],
    ['start-timeout', '; last failure: it was not ready in time (setting `startTimeout`)'],
    ['exited', ''],
    [null, ''],
  ])('tells of a server that is up again why it was restarted: %s', async (lastFailure, why) => {
    const lastExit = { code: 0, signal: null, secondsAgo: 5 };
    const text = await textWith({ restarts: 1, lastExit, lastFailure });
    expect(text).toContain(`\n    restarted: once${why}; the last process ended with exit code 0, 5 s ago`);
  });

  it('does not take an earlier failure for the reason why a running server has a problem', async () => {
    const lifecycle = {
      ...FAILED,
      pid: 7,
      restarts: 1,
      lastFailure: { code: null, signal: null, reason: 'it went mad', at: 0 },
    };
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
    for (const change of [
      { usage, resourceLimits: far },
      { usage: null, resourceLimits: near },
      { usage, resourceLimits: { memoryBytes: null, processes: null } },
    ])
      expect(await textWith(change)).not.toContain('uses:');
  });

  it('has as many lines as it should, whatever a server says', async () => {
    const { report } = await given({
      logLines: ['a\nb\r\u2028c'],
      lifecycle: { state: 'parked', lastFailure: { code: null, signal: null, reason: 'x\ny', at: 0 } },
    });
    for (const text of [renderStatus(report()), renderOneServer(report())]) {
      const known = /^(Trunkline|Not running: b$|- [ab]:| {4}[a-z ]+:)/;
      expect(text.split('\n').filter((line) => !known.test(line))).toEqual([]);
    }
  });

  it('has the lines that name the cause of a failure instead of the last ones, and for one server both', async () => {
    const logLines = ['Error: no key', '    at main (server.js:1:1)', 'Node.js v20.20.2'];
    const { report, make } = await given({ lifecycle: FAILED, logLines, cause: ['Error: no \u001bkey', 'canary'] });
    const about = (text: string) => text.split('\n').filter((line) => /^ {4}(?:cause|log):/.test(line));
    const causes = ['    cause: Error: no \\u{1b}key', '    cause: [redacted]'];
    expect(about(renderStatus(report()))).toEqual(causes);
    const one = reportStatus(make(), 'a');
    expect(about(renderOneServer(one))).toEqual([...causes, ...logLines.map((line) => `    log: ${line}`)]);
  });
});

describe('the text about one server', () => {
  it.each([
    ['configured', null, '`era` of its entry says so'],
    ['transport', null, '`transport: sse` of its entry has no other'],
    ['asked', null, 'it was asked when it started'],
    ['cached', '2026-11-24T08:10:30.000Z', 'cached until 2026-11-24 08:10 UTC'],
    ['cached', null, 'cached until it proves wrong'],
    ['exited', null, 'it exits when it is asked'],
  ] as const)('tells the era that was found by %s (%s)', async (foundBy, cachedUntil, says) => {
    const era = { name: 'legacy', foundBy, cachedUntil } as const;
    expect(await textWith({ era }, renderOneServer)).toContain(`\n    era: legacy, ${says}\n`);
  });

  it('tells which clients share a process, and why', async () => {
    const sharing = { mode: 'all', rule: 'known', because: 'two processes lose data' } as const;
    expect(await textWith({ sharing }, renderOneServer)).toContain(
      '\n    sharing: all (known), because two processes lose data',
    );
  });

  it('has its process, and no line that says nothing', async () => {
    const { make } = await given();
    expect(renderOneServer(reportStatus(make(), 'a'))).toBe(
      [
        'Trunkline 1.2.3, up 1 min 40 s, 1 tool, about 13 tokens.',
        '- a: up, 1 tool',
        '    list of its tools: about 13 tokens',
        '    process: pid 4711, up 1 min 0 s, protocol 2025-11-25',
      ].join('\n'),
    );
  });

  it('has its connection, if it is behind a URL', async () => {
    const { make } = await given({ lifecycle: { pid: undefined, restarts: 2 }, isRemote: true });
    expect(renderOneServer(reportStatus(make(), 'a')).split('\n').slice(2)).toEqual([
      '    list of its tools: about 13 tokens',
      '    connection: up 1 min 0 s, protocol 2025-11-25',
      '    connected again: 2 times',
    ]);
  });

  it('has all that is known of it', async () => {
    const own = {
      id: 'a',
      state: 'ready',
      pid: 4711,
      clients: 1,
      inFlight: 2,
      restarts: 1,
      memoryBytes: null,
      isYours: true,
    } as const;
    const text = await textWith(
      {
        ...{ restarts: 1, generation: 2, lastExit: { code: 1, signal: null, secondsAgo: 5 } },
        ...{ calls: 9, errors: 1, cancelled: 1, repeated: 1, inFlight: 2, failures: 1, failureReasons: { timeout: 1 } },
        ...{ latencyMs: { p50: 3, p95: 40 }, dropped: { late: 0, junk: 4 } },
        ...{ log: ['hello'], droppedLogBytes: 7, pausedSeconds: 90 },
        instances: [own, { ...own, id: 'a#2', pid: null, state: 'starting', clients: 2, isYours: false }],
        approval: { approved: 1, firstUse: true, fault: null },
      },
      renderOneServer,
    );
    expect(text.split('\n').slice(1, -1)).toEqual([
      '- a: up, 1 tool',
      '    list of its tools: about 13 tokens',
      '    approval: its first 1 tool was approved automatically',
      '    process: pid 4711, up 1 min 0 s, protocol 2025-11-25, start 2',
      '    restarted: once; the last process ended with exit code 1, 5 s ago',
      '    processes: a ready (pid 4711), 1 client, including you; a#2 starting, 2 clients',
      '    calls: 9, 2 in flight, 1 answered with an error, 1 cancelled, 1 repeated, half took up to 3 ms, 95 % up to 40 ms',
      '    failed calls: 1 of 9 (timeout 1)',
      '    flood: its output was not read for 1 min 30 s in all; it answers no call',
      '    dropped messages: junk 4',
      '    output dropped from the log: 7 bytes (too much at once)',
      '    log: hello',
    ]);
  });
});

describe('the interceptors in a status', () => {
  const interceptors = [
    { server: 'guard', guards: ['a', 'secret'], views: ['work', 'other'], failsOpen: false, fault: 'it is stopped' },
    { server: 'second', guards: ['secret'], views: [], failsOpen: true, fault: undefined },
  ];

  it('are for a client those of its servers and its view, and a failed one is in the first line', async () => {
    const { report } = await given({ facts: { interceptors, named: { name: 'work' } } });
    expect(report().interceptors).toEqual([
      { server: 'guard', guards: ['a', 'clients of the view work'], failsOpen: false, fault: 'it is stopped' },
    ]);
    expect(renderStatus(report()).split('\n')[0]).toBe(
      'Interceptor "guard" has failed: it is stopped. What it has to look at (a, clients of the view work) is refused.',
    );
  });

  it('are for the operator all', async () => {
    const { report } = await given({ facts: { interceptors, withoutInstance: [] } });
    expect(report().interceptors.map(({ server, guards }) => [server, ...guards])).toEqual([
      ['guard', 'a', 'secret', 'clients of the view work', 'clients of the view other'],
      ['second', 'secret'],
    ]);
  });
});

describe('the calls that wait for the yes of a person, in a status', () => {
  const { client: own } = new InMemoryExchange();
  const { client: other } = new InMemoryExchange();
  const asked = {
    principal: 'me',
    name: 'delete',
    kind: 'tool' as const,
    client: 'c',
    user: undefined,
    rule: 'r',
    say: undefined,
    until: 160_000,
  };
  const questions = [
    { ...asked, id: 'k7wq2m9x', caller: own, server: 'a', arguments: '{"path":"/own"}' },
    { ...asked, id: 'h4zr8n2p', caller: other, server: 'secret', arguments: '{"path":"/other"}' },
  ];

  it('are for a client those of its own, without their ids and arguments', async () => {
    const { report } = await given({ facts: { questions, reader: own } });
    expect(report().questions).toMatchObject([{ id: null, server: 'a', name: 'delete', arguments: '' }]);
    expect(renderStatus(report())).toContain('It is the tool delete, called by c.');
    expect(JSON.stringify(report())).not.toMatch(/k7wq2m9x|h4zr8n2p|secret|\/own|\/other/);
  });

  it('are for the operator all, with what a person needs to answer', async () => {
    const { report } = await given({ facts: { questions, withoutInstance: [] } });
    expect(report().questions.map(({ id, arguments: args }) => [id, args])).toEqual([
      ['k7wq2m9x', '{"path":"/own"}'],
      ['h4zr8n2p', '{"path":"/other"}'],
    ]);
    expect(renderStatus(report())).toContain('`trunkline allow h4zr8n2p`');
  });
});
