import { describe, expect, it } from 'vitest';
import { reportStatus } from '../../src/status/status.js';
import { adviseOnToolCount, createToolCountWarning } from '../../src/status/status-advice.js';
import { overviewOf, renderOneServer, renderStatus } from '../../src/status/status-text.js';
import { FairMemory, SharedLimit } from '../../src/wire/io/shared-limit.js';
import { offering, type ServerScript, startGateway, toolOf } from '../support/scripted-gateway.js';
import { factsOf, given, NOTHING, READY } from './reporting.js';

describe('the report', () => {
  it('has the era of the revision, and how it was found out, while a process is connected', async () => {
    const { make } = await given();
    const era = { kind: 'cached', until: '2026-11-24T08:10:30.000Z' } as const;
    const facts = make();
    const report = reportStatus({ ...facts, servers: facts.servers.map((server) => ({ ...server, era })) });
    expect(report.servers.map((server) => server.era)).toEqual([
      { name: 'legacy', foundBy: 'cached', cachedUntil: '2026-11-24T08:10:30.000Z' },
      null,
    ]);
  });

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
      project: null,
      sandbox: null,
      state: 'ready',
      remote: false,
      pid: 4711,
      uptimeSeconds: 60,
      generation: 1,
      restarts: 0,
      packageVersion: null,
      usage: null,
      resourceLimits: { memoryBytes: null, processes: null },
      protocolVersion: '2025-11-25',
      era: null,
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
      toolTokens: 13,
      approval: null,
      unshaped: [],
      repairedResults: [],
      prompts: NOTHING,
      resources: NOTHING,
      resourceTemplates: NOTHING,
      dropped: {
        late: 0,
        duplicate: 0,
        unknown: 0,
        junk: 0,
        repaired: 0,
        blank: 0,
        oversized: 0,
        evicted: 0,
        staleProgress: 0,
        unsentReplies: 0,
      },
      forgottenSessions: 0,
      insecure: false,
      pausedSeconds: 0,
      lastExit: null,
      lastFailure: null,
      retryInSeconds: null,
      installing: null,
      cause: [],
      log: [],
      droppedLogBytes: 0,
      problem: '',
      code: null,
      advice: '',
      instructions: null,
      sharing: null,
      instances: [],
    });
  });

  it('tells that sessions share a process as soon as its revision has none, and each has its own before', async () => {
    const because = 'it is not known whether it keeps state';
    const sharingAt = async (protocolVersion: string, isStarted = true) => {
      const { make } = await given({ script: { hello: { protocolVersion } }, isStarted });
      const [server, ...others] = make().servers;
      if (server === undefined) throw new Error('No server');
      const instances = [{ backend: server.backend, lifecycle: READY, isUnclaimed: false }];
      const decided = { ...server, instances, sharing: { sharing: 'auto', rule: 'unknown', because } } as const;
      return reportStatus({ ...make(), servers: [decided, ...others] }).servers[0]?.sharing;
    };
    const apart = { mode: 'isolated', rule: 'unknown', because };
    expect(await sharingAt('2026-07-28', false)).toEqual(apart);
    expect(await sharingAt('2025-11-25')).toEqual(apart);
    expect(await sharingAt('2026-07-28')).toEqual({
      ...{ mode: 'profile', rule: 'revision', because: 'revision 2026-07-28 has no sessions' },
    });
  });

  it('counts calls and how long they took, in whole milliseconds', async () => {
    const { server, connect, clock, one } = await given();
    const client = connect().greet();
    for (const id of [1, 2, 3]) client.call(id, 'a__read');
    clock.advance(12.34);
    server('a').child.answer(0);
    server('a').child.answer(1, { isError: true });
    expect(one()).toMatchObject({ calls: 3, errors: 1, inFlight: 1, latencyMs: { p50: 12, p95: 12 } });
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
      repaired: [],
      denied: ['secret'],
      truncated: null,
      unchanged: 0,
      failure: null,
      hiding: [],
    });
  });

  it('names the server that took a name', async () => {
    const world = await startGateway({
      servers: { a: { tools: ['x'], prefix: '' }, b: { tools: ['x', 'c__y'], prefix: '' }, c: { tools: [] } },
    });
    const { make } = await given();
    const servers = ['a', 'b'].map((key) => factsOf(world.server(key).backend));
    const report = reportStatus({ ...make(), catalogs: world.gateway.catalogs, servers });
    expect(report.servers[1]?.tools.quarantined).toEqual([
      {
        name: 'x',
        reason: 'server "a" has this name already; to list both, remove `prefix: ""` from one of the two servers',
      },
      { name: 'c__y', reason: 'names that begin with c__ are reserved for server "c"' },
    ]);
  });

  it('of one server alone has more of its log', async () => {
    const logLines = Array.from({ length: 30 }, (_, index) => `line ${index}`);
    const { make } = await given({ logLines });
    expect(reportStatus(make()).servers[0]?.log).toEqual(['line 27', 'line 28', 'line 29']);
    const alone = reportStatus(make(), 'a');
    expect(alone.servers.map(({ server }) => server)).toEqual(['a']);
    expect(alone.servers[0]?.log).toHaveLength(20);
  });

  it('escapes what a server could have put in, and has no secret that a server told', async () => {
    const evil = 'canary \u001b]0;owned\u0007\u202e\n- b: ready';
    const safe = '[redacted] \\u{1b}]0;owned\\u{7}\\u{202e}\\u{a}- b: ready';
    const script = { tools: [toolOf('ok'), '{"name":"canary"}'], filter: { deny: ['x_canary'] } };
    const { report } = await given({
      script,
      logLines: [evil],
      lifecycle: { lastFailure: { code: null, signal: null, reason: evil, at: 0 } },
    });
    expect(JSON.stringify(report())).not.toContain('canary');
    expect(report().servers[0]).toMatchObject({ log: [safe], lastFailure: safe });
  });

  it('of a server without a process has no more than that', async () => {
    const { report } = await given({ isStarted: false });
    expect(report().servers[1]).toMatchObject({ server: 'b', state: 'stopped', pid: null, generation: 0, dropped: {} });
  });
});

describe('the effect of a limit', () => {
  const waiting = new SharedLimit(0);
  const partialFrames = new FairMemory(5);
  const requestBodies = new FairMemory(4);
  waiting.tryAcquire(1);
  for (const [memory, bytes] of [[partialFrames, 5] as const, [requestBodies, 4] as const]) {
    memory.grow(memory.join({ evict: () => {} }), bytes);
    memory.grow(memory.join({ evict: () => {} }), bytes + 1);
  }

  it('is reported with the refused calls, and with advice', async () => {
    const tools = Array.from({ length: 41 }, (_, index) => `tool_${index}`);
    const { report } = await given({
      script: { tools },
      facts: { waiting, partialFrames, requestBodies, internalErrorCount: 2 },
    });
    expect(report()).toMatchObject({
      limits: {
        waitingCalls: { now: 0, max: 0, refused: 1 },
        partialFrameBytes: { now: 5, max: 5, refused: 1 },
        requestBodyBytes: { now: 4, max: 4, refused: 1 },
      },
      internalErrorCount: 2,
      advice: expect.stringContaining('41 tools are listed'),
    });
    expect(renderStatus(report()).split('\n').slice(1, 5)).toEqual([
      'Calls refused: 1, because 0 calls were waiting already (limit `gateway.maxQueued`).',
      'Unfinished messages dropped: 1, the largest first, because all unfinished messages together reached 5 bytes (limit `gateway.maxPartial`).',
      'Request bodies refused: 1, the largest of the client that held the most first, because all incomplete bodies together reached 4 bytes (limit `gateway.http.maxPartial`).',
      'Internal errors in Trunkline: 2. Each failed one request; the log has the details.',
    ]);
    expect(renderStatus(report()).split('\n').at(-1)).toBe(report().advice);
  });

  it('is counted by the reason of each failure', async () => {
    const { server, report } = await given();
    server('a').backend.dispatcher.refuse(
      { isSettled: false, request: { method: 'x', tokens: {} }, fail: () => {} } as never,
      'queue_full',
    );
    expect(report().servers[0]).toMatchObject({ failures: 1, failureReasons: { queue_full: 1 } });
    expect(renderStatus(report())).toContain('    failed calls: 1 of 1 (queue full 1)');
  });

  it('names tools that hide characters in their descriptions', async () => {
    const { one, report } = await given({
      script: { tools: [toolOf('ok').replace('{', '{"description":"\\u200b",')] },
    });
    expect(one()?.tools).toMatchObject({ exposed: ['a__ok'], hiding: ['a__ok'] });
    expect(renderStatus(report())).toContain('    invisible characters in the description: a__ok');
  });
});

describe('tools that the configuration shapes and the server does not have', () => {
  it('are named in both texts, as a problem of the server', async () => {
    const { one, report } = await given({ script: { tools: ['read'], shapes: { rename: { reed: 'x' } } } });
    const told = 'there is no tool "reed"; did you mean `read`?';
    expect(one()?.unshaped).toEqual([told]);
    expect(renderStatus(report())).toContain(`    \`tools\` of the configuration: ${told}`);
    expect(overviewOf(report()).servers[0]).toMatchObject({ server: 'a', unshaped: [told] });
  });
});

describe('a list besides that of the tools', () => {
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

  it('is counted in the text about one server, where there is any', async () => {
    const { report } = await given({ script });
    const text = renderOneServer(report());
    expect(text).toContain('- a: up, 1 tool, 2 prompts, 1 resource, 1 resource template');
    expect(text).toContain('- b: not running, no tools');
  });

  it('and cannot be read is named with the words of the server, which is ready all the same', async () => {
    const error = { code: -32603, message: 'broken canary\u001b[31m' };
    const { one, report } = await given({ script: { ...script, lists: { ...script.lists, 'prompts/list': error } } });
    const failure = `prompts/list: answered ${JSON.stringify(error)}`.replace('canary', '[redacted]');
    expect(one()).toMatchObject({ state: 'ready', prompts: { ...NOTHING, failure } });
    expect(one()?.tools.exposed).toEqual(['a__read']);
    expect(renderStatus(report()).split('\n')).toContain(`    list failed: ${failure} (Trunkline asks again)`);
  });

  it('of tools that cannot be read is a problem with advice', async () => {
    const lists = { 'tools/list': { code: -32603, message: 'no network' } };
    const { one } = await given({ script: { lists } });
    expect(one()).toMatchObject({
      problem: 'It runs, but it does not list its tools.',
      advice: expect.stringContaining('Calls of its tools by name are sent to it.'),
    });
  });

  it('and is unsound or shadowed is shown as quarantined, and without a malformed part as repaired', async () => {
    const bad = { resources: [{ uri: 'x://1', name: '\u200b' }, { uri: 'x://2', name: 'two' }, { uri: 'x://3' }] };
    const servers = {
      a: { ...script, lists: { ...script.lists, 'resources/list': bad } },
      b: offering({ resources: ['x://2'] }),
    };
    const world = await startGateway({ servers });
    const { make } = await given();
    const facts = ['a', 'b'].map((key) => factsOf(world.server(key).backend));
    const report = reportStatus({ ...make(), catalogs: world.gateway.catalogs, servers: facts });
    expect(report.servers.map(({ resources }) => resources)).toEqual([
      {
        ...NOTHING,
        exposed: ['x://2', 'x://3'],
        quarantined: [{ name: 'x://1', reason: 'its name hides characters' }],
        repaired: [{ name: 'x://3', reason: 'name is not a string' }],
      },
      { ...NOTHING, quarantined: [{ name: 'x://2', reason: 'server "a" has this name already' }] },
    ]);
    const shadowedSkills = [{ key: 'b', exposed: 'x://2', owner: 'a' }];
    const told = reportStatus({ ...make(), catalogs: world.gateway.catalogs, servers: facts, shadowedSkills });
    expect(told.servers[1]?.resources.quarantined).toEqual([
      {
        name: 'x://2',
        reason: 'server "a" has a skill with this URI already; a client that shows only server "b" lists this one',
      },
    ]);
  });
});

describe('the advice on many tools', () => {
  it.each([
    [39, undefined],
    [40, 40],
    [99, 40],
    [100, 100],
    [127, 100],
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
