import { describe, expect, it } from 'vitest';
import { createRestartTool } from '../../../src/gateway/status/own-tool.js';
import { adviseOnToolCount, createToolCountWarning, reportStatus } from '../../../src/gateway/status/status.js';
import type { ProcessFacts, ServerFacts, StatusFacts } from '../../../src/gateway/status/status-facts.js';
import { renderStatus } from '../../../src/gateway/status/status-text.js';
import { createStatusTool } from '../../../src/gateway/status/status-tool.js';
import { SharedLimit } from '../../../src/io/shared-limit.js';
import { offering, type ServerScript, scriptGateway, toolOf } from '../../support/scripted-gateway.js';

const READY: ProcessFacts = {
  state: 'ready',
  pid: 4711,
  generation: 1,
  restarts: 0,
  consecutiveFailures: 0,
  readySince: 40_000,
  retryAt: undefined,
  missing: undefined,
  installingSince: undefined,
  lastExit: undefined,
  lastFailure: undefined,
};

const NOTHING = { exposed: [], quarantined: [], denied: [], truncated: null, hiding: [] };

const SOUND = { file: '/etc/trunkline.yaml', fault: undefined, reloads: 0, needsRestart: [] };

const FAULT = { report: 'trunkline.yaml:3:1: no servers', since: 88_000, isPreviousInForce: false };

const NOTHING_SEEN = { backends: new Map(), catalogs: scriptGateway({ servers: {} }).gateway.catalogs };

interface Given {
  readonly script?: ServerScript;
  readonly lifecycle?: Partial<ProcessFacts> | undefined;
  readonly problem?: ServerFacts['problem'];
  readonly logLines?: readonly string[];
  readonly cause?: readonly string[];
  readonly facts?: Partial<StatusFacts>;
  readonly isStarted?: boolean;
}

/** One server `a`, started unless told otherwise, and what there is to know of it 100 s after the start. */
async function given({
  script = { tools: ['read'] },
  lifecycle,
  problem,
  logLines = [],
  cause = [],
  facts,
  isStarted = true,
}: Given = {}) {
  const world = scriptGateway({ servers: { a: script, b: {} } });
  if (isStarted) await world.server('a').start();
  const make = (): StatusFacts => ({
    now: 100_000,
    startedAt: 0,
    version: '1.2.3',
    config: SOUND,
    catalogs: world.gateway.catalogs,
    canRestart: false,
    redact: (text) => text.replaceAll('canary', '[redacted]'),
    waiting: new SharedLimit(1_024),
    partialFrames: new SharedLimit(1_000),
    internalErrorCount: 0,
    servers: [
      {
        backend: world.server('a').backend,
        lifecycle: { ...READY, ...lifecycle },
        problem,
        logLines,
        cause,
        droppedLogLines: 0,
        instances: [],
      },
      {
        backend: world.server('b').backend,
        lifecycle: undefined,
        problem: undefined,
        logLines: [],
        cause: [],
        droppedLogLines: 0,
        instances: [],
      },
    ],
    ...facts,
  });
  const report = () => reportStatus(make());
  return { ...world, make, report, one: () => report().servers[0] };
}

describe('the report', () => {
  it('of a server that is well has every member and nothing to advise', async () => {
    const { report } = await given();
    expect(report()).toMatchObject({
      version: '1.2.3',
      uptimeSeconds: 100,
      configFile: '/etc/trunkline.yaml',
      configFault: null,
      tools: 1,
    });
    expect(report().servers[0]).toEqual({
      server: 'a',
      state: 'ready',
      pid: 4711,
      uptimeSeconds: 60,
      generation: 1,
      restarts: 0,
      protocolVersion: '2025-11-25',
      fromLastRun: false,
      breaker: 'closed',
      inFlight: 0,
      queued: 0,
      calls: 0,
      errors: 0,
      failures: 0,
      failureReasons: {},
      cancelled: 0,
      repeated: 0,
      latencyMs: null,
      tools: { ...NOTHING, exposed: ['a__read'] },
      approval: null,
      prompts: NOTHING,
      resources: NOTHING,
      resourceTemplates: NOTHING,
      dropped: { late: 0, duplicate: 0, unknown: 0, junk: 0, oversized: 0, staleProgress: 0, unsentReplies: 0 },
      lastExit: null,
      lastFailure: null,
      retryInSeconds: null,
      installing: null,
      cause: [],
      log: [],
      droppedLogLines: 0,
      advice: '',
      instructions: null,
      instances: [],
    });
  });

  it('counts calls and how long they took', async () => {
    const { server, connect, clock, one } = await given();
    const client = connect();
    client.initialize();
    for (const id of [1, 2, 3]) client.call(id, 'a__read');
    clock.advance(12.34);
    server('a').child.answer(0);
    server('a').child.answer(1, { isError: true });
    expect(one()).toMatchObject({ calls: 3, errors: 1, inFlight: 1, latencyMs: { p50: 12.3, p95: 12.3 } });
    server('a').child.say('junk');
    expect(one()?.dropped).toMatchObject({ junk: 1 });
  });

  it('tells which tools are not shown, and why', async () => {
    const script = {
      tools: [toolOf('ok'), '{"name":"bad\\u001b[31m"}', toolOf('secret'), toolOf('ok')],
      filter: { deny: ['secret'] },
    };
    const { one } = await given({ script });
    expect(one()?.tools).toEqual({
      exposed: ['a__ok'],
      quarantined: [
        { name: 'bad\\u{1b}[31m', reason: 'its name hides characters' },
        { name: 'ok', reason: 'the server lists this name twice; only the first entry is used' },
      ],
      denied: ['secret'],
      truncated: null,
      hiding: [],
    });
  });

  it('names the server that took a name', async () => {
    const world = scriptGateway({ servers: { a: { tools: ['x'], prefix: '' }, b: { tools: ['x'], prefix: '' } } });
    await world.startAll();
    const { make } = await given();
    const servers = ['a', 'b'].map((key) => {
      return {
        backend: world.server(key).backend,
        lifecycle: READY,
        problem: undefined,
        logLines: [],
        cause: [],
        droppedLogLines: 0,
        instances: [],
      };
    });
    const report = reportStatus({ ...make(), catalogs: world.gateway.catalogs, servers });
    expect(report.servers[1]?.tools.quarantined).toEqual([{ name: 'x', reason: 'taken by "a"' }]);
  });

  it('of one server alone has more of its log', async () => {
    const logLines = Array.from({ length: 30 }, (_, index) => `line ${index}`);
    const { make } = await given({ logLines });
    expect(reportStatus(make()).servers[0]?.log).toEqual(['line 27', 'line 28', 'line 29']);
    const alone = reportStatus(make(), 'a');
    expect(alone.servers.map(({ server }) => server)).toEqual(['a']);
    expect(alone.servers[0]?.log).toHaveLength(20);
  });

  it('escapes whatever a server could have put in', async () => {
    const evil = 'x\u001b]0;owned\u0007\u202e\n- b: ready';
    const safe = 'x\\u{1b}]0;owned\\u{7}\\u{202e}\\u{a}- b: ready';
    const { one } = await given({ logLines: [evil], lifecycle: { lastFailure: { reason: evil, at: 0 } } });
    expect(one()).toMatchObject({ log: [safe], lastFailure: safe });
  });

  it('has no secret in it, wherever a server told one', async () => {
    const script = { tools: [toolOf('ok'), '{"name":"canary"}'], filter: { deny: ['x_canary'] } };
    const { report } = await given({
      script,
      logLines: ['canary'],
      lifecycle: { lastFailure: { reason: 'canary', at: 0 } },
    });
    expect(JSON.stringify(report())).not.toContain('canary');
    expect(report().servers[0]).toMatchObject({ log: ['[redacted]'], lastFailure: '[redacted]' });
  });

  it("says of a failure that is not the server's whose it is", async () => {
    const lastFailure = { reason: 'Cannot start "x": too many files are open (EMFILE)', at: 0, isHostFault: true };
    const { one } = await given({ lifecycle: { state: 'backoff', lastFailure } });
    expect(one()?.advice).toMatch(/^This machine lacks what a new process needs; the server is not to blame/);
  });

  it('of a server without a process has no more than that', async () => {
    const { report } = await given({ isStarted: false });
    expect(report().servers[1]).toMatchObject({ server: 'b', state: 'stopped', pid: null, generation: 0, dropped: {} });
  });
});

describe('what a limit refused', () => {
  const waiting = new SharedLimit(0);
  const partialFrames = new SharedLimit(5);
  waiting.tryAcquire(1);
  partialFrames.tryAcquire(5);
  partialFrames.tryAcquire(1);

  it('is reported where it was refused, and advised about', async () => {
    const tools = Array.from({ length: 41 }, (_, index) => `tool_${index}`);
    const { report } = await given({ script: { tools }, facts: { waiting, partialFrames, internalErrorCount: 2 } });
    expect(report()).toMatchObject({
      limits: { waitingCalls: { now: 0, max: 0, refused: 1 }, partialFrameBytes: { now: 5, max: 5, refused: 1 } },
      internalErrorCount: 2,
      advice: expect.stringContaining('41 tools are listed'),
    });
    expect(renderStatus(report()).split('\n').slice(1, 5)).toEqual([
      'Calls refused: 1, because 0 calls were waiting already (limit `gateway.maxQueued`).',
      'Messages dropped: 1, because incomplete messages took up 5 bytes already (limit `gateway.maxPartial`).',
      'Internal errors in Trunkline: 2. Each failed one request; the log has the details.',
      report().advice,
    ]);
  });

  it('is counted by the reason of each failure', async () => {
    const { server, report } = await given();
    server('a').backend.dispatcher.refuse(
      { isSettled: false, request: { method: 'x', tokens: {} }, fail: () => {} } as never,
      'queue_full',
    );
    expect(report().servers[0]).toMatchObject({ failures: 1, failureReasons: { queue_full: 1 } });
    expect(renderStatus(report())).toContain('    failures: queue_full 1');
  });

  it('of a log is told with it', async () => {
    const { make } = await given();
    const facts = make();
    const [one, ...others] = facts.servers;
    if (one === undefined) throw new Error('No server');
    const report = reportStatus({ ...facts, servers: [{ ...one, droppedLogLines: 7 }, ...others] });
    expect(renderStatus(report)).toContain('    log lines dropped: 7 (more than 1000 in one second)');
  });

  it('names tools that hide characters in their descriptions', async () => {
    const { one, report } = await given({
      script: { tools: [toolOf('ok').replace('{', '{"description":"\\u200b",')] },
    });
    expect(one()?.tools).toMatchObject({ exposed: ['a__ok'], hiding: ['a__ok'] });
    expect(renderStatus(report())).toContain('    invisible characters in the description: a__ok');
  });
});

describe('what a server offers besides tools', () => {
  const script: ServerScript = {
    ...offering({ prompts: ['p', 'q'], resources: ['x://1'], templates: ['x://{id}'] }),
    tools: ['read'],
  };

  it('is reported list by list, under the names that clients use', async () => {
    const { one } = await given({ script });
    expect(one()).toMatchObject({
      prompts: { ...NOTHING, exposed: ['a__p', 'a__q'] },
      resources: { ...NOTHING, exposed: ['x://1'] },
      resourceTemplates: { ...NOTHING, exposed: ['x://{id}'] },
    });
  });

  it('is counted in the text, where there is any', async () => {
    const { report } = await given({ script });
    expect(renderStatus(report())).toContain(
      '- a: ready · 1 tool · 2 prompts · 1 resource · 1 resource template · pid',
    );
    expect(renderStatus(report())).not.toMatch(/^- b:.*(prompts|resources|templates)/m);
  });

  it('and cannot be read is shown as quarantined, of a server that is ready all the same', async () => {
    const error = { code: -32603, message: 'broken\u001b[31m' };
    const { one, report } = await given({ script: { ...script, lists: { ...script.lists, 'prompts/list': error } } });
    const name = 'prompts/list';
    const reason = `prompts/list: answered ${JSON.stringify(error)}`;
    expect(one()).toMatchObject({ state: 'ready', prompts: { ...NOTHING, quarantined: [{ name, reason }] } });
    expect(one()?.tools.exposed).toEqual(['a__read']);
    expect(renderStatus(report()).split('\n')).toContain(`    quarantined: ${name} (${reason})`);
  });

  it('and is unsound or shadowed is shown as quarantined', async () => {
    const bad = { resources: [{ uri: 'x://1' }, { uri: 'x://2', name: 'two' }] };
    const servers = {
      a: { ...script, lists: { ...script.lists, 'resources/list': bad } },
      b: offering({ resources: ['x://2'] }),
    };
    const world = scriptGateway({ servers });
    await world.startAll();
    const { make } = await given();
    const facts = ['a', 'b'].map((key) => {
      return {
        backend: world.server(key).backend,
        lifecycle: READY,
        problem: undefined,
        logLines: [],
        cause: [],
        droppedLogLines: 0,
        instances: [],
      };
    });
    const report = reportStatus({ ...make(), catalogs: world.gateway.catalogs, servers: facts });
    expect(report.servers.map(({ resources }) => resources)).toEqual([
      { ...NOTHING, exposed: ['x://2'], quarantined: [{ name: 'x://1', reason: 'name is not a string' }] },
      { ...NOTHING, quarantined: [{ name: 'x://2', reason: 'taken by "a"' }] },
    ]);
  });
});

describe('the advice', () => {
  it.each([
    ['parked', {}, /Read the log lines, fix the cause, then restart the client/],
    ['backoff', {}, /restarts it automatically/],
    ['starting', { consecutiveFailures: 0 }, /still starting/],
    ['starting', { consecutiveFailures: 1 }, /being started again/],
    ['stopping', {}, /^$/],
    ['stopped', {}, /^$/],
    ['ready', {}, /^$/],
  ] as const)('for a server that is %s (%j) is %s', async (state, lifecycle, advice) => {
    const { one } = await given({ lifecycle: { state, ...lifecycle } });
    expect(one()?.advice).toMatch(advice);
  });

  it('names the tool that restarts, where there is one', async () => {
    const { one } = await given({ lifecycle: { state: 'parked' }, facts: { canRestart: true } });
    expect(one()?.advice).toContain('call trunkline__restart with server "a"');
  });

  it('is what is wrong with the configuration, if that is it', async () => {
    const problem = { message: 'the variable KEY is not set', hint: 'set KEY, or give it a default' };
    const { one } = await given({ problem, isStarted: false });
    expect(one()).toMatchObject({
      state: 'misconfigured',
      advice: 'Its configuration is wrong: the variable KEY is not set. To fix it, set KEY, or give it a default.',
    });
  });
});

describe('the report as text', () => {
  it('has one line for a server that is well', async () => {
    const { report } = await given({ lifecycle: { readySince: 100_000 - 61_000 } });
    expect(renderStatus(report())).toBe(
      [
        'Trunkline 1.2.3, up 1 min 40 s: 1 of 2 servers ready, 1 tool.',
        '- a: ready · 1 tool · pid 4711 · up 1 min 1 s · generation 1 · restarts 0 · in flight 0 · queued 0 · calls 0 · errors 0 · failures 0',
        '- b: stopped · 0 tools · generation 0 · restarts 0 · in flight 0 · queued 0 · calls 0 · errors 0 · failures 0',
      ].join('\n'),
    );
  });

  it('has below it what is not as it should be', async () => {
    const lifecycle = {
      state: 'backoff',
      pid: undefined,
      readySince: undefined,
      retryAt: 101_500,
      lastExit: { code: 1, signal: null, at: 35_000 },
      lastFailure: { reason: 'start-timeout', at: 35_000 },
    } as const;
    const { report } = await given({ lifecycle, logLines: ['Error: no key'], script: { tools: ['{"name":"bad"}'] } });
    const lines = renderStatus(report()).split('\n');
    expect(lines.slice(2, -1)).toEqual([
      '    next start: in 2 s',
      '    last failure: start-timeout',
      '    last exit: code 1, 1 min 5 s ago',
      '    quarantined: bad (inputSchema is not a schema of type "object")',
      '    log: Error: no key',
      '    what to do: Trunkline restarts it automatically. If it keeps failing, the log lines show why.',
    ]);
  });

  it('has the cause of the failure instead of the last log lines, and both for a server that is asked for', async () => {
    const lifecycle = { state: 'parked', pid: undefined, readySince: undefined } as const;
    const logLines = ['Error: no key', '    at main (server.js:1:1)', 'Node.js v20.20.2'];
    const { report, make } = await given({ lifecycle, logLines, cause: ['Error: no \u001bkey', 'canary', '3', '4'] });
    const about = (text: string) => text.split('\n').filter((line) => /^ {4}(?:cause|log):/.test(line));
    const causes = ['    cause: Error: no \\u{1b}key', '    cause: [redacted]', '    cause: 3'];
    expect(about(renderStatus(report()))).toEqual(causes);
    expect(report().servers[0]?.log).toEqual([]);
    expect(about(renderStatus(reportStatus(make(), 'a')))).toEqual([
      ...causes,
      '    cause: 4',
      ...logLines.map((line) => `    log: ${line}`),
    ]);
  });

  it('names the signal that ended a process, long ago', async () => {
    const { report } = await given({
      lifecycle: { lastExit: { code: null, signal: 'SIGKILL', at: 0 } },
      facts: { now: 7_290_000 },
    });
    expect(renderStatus(report())).toContain('last exit: signal SIGKILL, 2 h 1 min ago');
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
    const lines = renderStatus(report()).split('\n');
    expect(lines.filter((line) => !/^(Trunkline|- [ab]:| {4}[a-z ]+:)/.test(line))).toEqual([]);
  });
});

describe('the tool trunkline__status', () => {
  it('gives the report as text and as data', async () => {
    const { make, report } = await given();
    const result = await createStatusTool(make).call(undefined, NOTHING_SEEN);
    expect(result.structuredContent).toEqual(report());
    expect(result.content).toEqual([{ type: 'text', text: renderStatus(report()) }]);
    expect(result.isError).toBeUndefined();
  });

  it('reports members that its schema names, all of them', async () => {
    const { make } = await given();
    const tool = createStatusTool(make);
    const { outputSchema } = JSON.parse(Buffer.from(tool.entry).toString());
    const { structuredContent } = (await tool.call({ server: 'a' }, NOTHING_SEEN)) as {
      structuredContent: Record<string, unknown[]>;
    };
    expect(Object.keys(structuredContent).sort()).toEqual(outputSchema.required.toSorted());
    const [server] = structuredContent.servers as Record<string, object>[];
    const schema = outputSchema.properties.servers.items;
    expect(Object.keys(server ?? {}).sort()).toEqual(schema.required.toSorted());
    for (const list of ['tools', 'prompts', 'resources', 'resourceTemplates']) {
      expect(Object.keys(server?.[list] ?? {}).sort()).toEqual(schema.properties[list].required.toSorted());
    }
  });

  it.each([{}, { server: undefined }, { server: null }, null, 'a', []])('shows all servers for %j', async (args) => {
    const { make } = await given();
    const { structuredContent } = await createStatusTool(make).call(args, NOTHING_SEEN);
    expect((structuredContent as { servers: unknown[] }).servers).toHaveLength(2);
  });

  it.each(['c', '', '__proto__', 7])('says which servers there are when asked for %j', async (server) => {
    const { make } = await given();
    const result = await createStatusTool(make).call({ server }, NOTHING_SEEN);
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result.content)).toContain('Configured servers: a, b.');
  });
});

describe('the tool trunkline__restart', () => {
  it('restarts the server that is named, and no other', async () => {
    const { server, gateway } = scriptGateway({ servers: { a: {}, b: {} } });
    const backends = new Map(['a', 'b'].map((key) => [key, server(key).backend]));
    const seen = { backends, catalogs: gateway.catalogs };
    const restarted: string[] = [];
    const tool = createRestartTool(
      () => ['a', 'b'],
      (key) => restarted.push(key),
    );
    expect((await tool.call({ server: 'b' }, seen)).isError).toBeUndefined();
    expect((await tool.call({ server: 'c' }, seen)).isError).toBe(true);
    expect((await tool.call({}, seen)).isError).toBe(true);
    expect((await tool.call(undefined, seen)).isError).toBe(true);
    expect(restarted).toEqual(['b']);
  });
});

describe('the advice on many tools', () => {
  it.each([
    [39, undefined],
    [40, 40],
    [79, 40],
    [80, 80],
    [127, 80],
    [128, 128],
    [1_000, 128],
  ])('of %i names the number that some clients stop at: %s', (count, step) => {
    const advice = adviseOnToolCount(count);
    if (step === undefined) expect(advice).toBe('');
    else expect(advice).toMatch(new RegExp(`^${count} tools are listed.* no more than ${step}, .*tools.allow`));
  });

  it('is given once for each of the numbers', () => {
    const told: string[] = [];
    const warn = createToolCountWarning((advice) => told.push(advice));
    for (const count of [10, 41, 45, 39, 50, 200, 100, 130]) warn(count);
    expect(told.map((advice) => advice.split(' ')[0])).toEqual(['41', '200']);
  });
});
