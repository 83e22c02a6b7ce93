import { expect, it } from 'vitest';
import { needsOfHub } from '../../../../src/cli/commands/web/page-needs.js';
import type { HubDescription } from '../../../../src/hub/control.js';
import type { StatusReport } from '../../../../src/status/status.js';
import { VERSION } from '../../../../src/version.js';
import { quotedPath } from '../../../../src/wire/json/printable.js';
import { FAULT, given, SOUND } from '../../../status/reporting.js';

const HUB = { version: VERSION, configFile: '/c/my trunkline.yaml', servers: [] } as unknown as HubDescription;

function needs(report: StatusReport, hub: Partial<HubDescription> = {}) {
  return needsOfHub({ ...HUB, ...hub }, report);
}

/** The report about the server `a` alone, since `b` has never started. */
async function reportOf(...options: Parameters<typeof given>): Promise<StatusReport> {
  const report = (await given(...options)).report();
  return { ...report, servers: report.servers.slice(0, 1) };
}

it('nothing is needed while all is well', async () => {
  expect(needs(await reportOf())).toEqual([]);
});

it('a parked server has the words of the status, its output, and a restart', async () => {
  const lifecycle = { state: 'parked', consecutiveFailures: 5, retryAt: 160_000 } as const;
  const report = await reportOf({ lifecycle, cause: ['Error: no key'] });
  const [server] = report.servers;
  expect(needs(report)).toEqual([
    {
      ...{ id: 'server:a:TL-SERVER-PARKED', level: 'fail', code: 'TL-SERVER-PARKED', server: 'a' },
      title: server?.problem.replace('It is', 'a is'),
      detail: server?.advice,
      cause: ['Error: no key'],
      command: `trunkline restart a --config ${quotedPath('/c/my trunkline.yaml', process.platform)}`,
      action: 'restart',
      question: null,
    },
  ]);
});

it('a server that runs without any list is not well', async () => {
  const report = await reportOf({ lifecycle: { state: 'ready' } });
  const [server] = report.servers;
  if (server === undefined) throw new Error('no server');
  const none = { ...server.tools, exposed: [], denied: [], quarantined: [] };
  const empty = { ...server, tools: none, prompts: none, resources: none, resourceTemplates: none };
  expect(needs({ ...report, servers: [empty] })).toMatchObject([{ level: 'warn', server: 'a', action: 'restart' }]);
  const denied = { ...empty, tools: { ...none, denied: ['read'] } };
  expect(needs({ ...report, servers: [denied] })).toEqual([]);
});

it('a server that needs a login has the login, and one with a wrong entry the check', async () => {
  const blocked = needs(await reportOf({ lifecycle: { state: 'blocked' }, isRemote: true }));
  expect(blocked).toMatchObject([{ level: 'fail', code: 'TL-SERVER-LOGIN', action: 'login' }]);
  expect(blocked[0]?.command).toContain('trunkline login a ');
  const wrong = needs(await reportOf({ problem: { message: '`env.KEY` is not set', hint: 'set it' } }));
  expect(wrong).toMatchObject([{ level: 'fail', action: null, command: expect.stringContaining('trunkline check ') }]);
  expect(wrong[0]?.title).toBe('a: its configuration is wrong: `env.KEY` is not set.');
});

it('tools that wait for approval are named with the change', async () => {
  const report = await reportOf();
  const [server] = report.servers;
  if (server === undefined) throw new Error('no server');
  const quarantined = [
    { name: 'read', reason: 'changed since it was approved' },
    { name: 'write', reason: 'new, not approved yet' },
    { name: 'odd', reason: 'its schema is too deep' },
  ];
  const approval = { approved: 1, firstUse: false, fault: null };
  const changed = { ...server, approval, tools: { ...server.tools, quarantined } };
  expect(needs({ ...report, servers: [changed] })).toMatchObject([
    {
      ...{ id: 'approval:a', level: 'warn', title: 'a: 2 tools wait for approval (1 changed, 1 new).' },
      cause: ['read: changed since it was approved', 'write: new, not approved yet'],
      action: 'review',
    },
  ]);
});

it('memory near its limit is told from the instance that uses the most', async () => {
  const report = await reportOf();
  const servers = report.servers.map((each) => ({
    ...each,
    resourceLimits: { memoryBytes: 1024 ** 2, processes: null },
  }));
  const instance = (memoryBytes: number) =>
    ({ id: 'a', server: 'a', memoryBytes, processes: 1 }) as HubDescription['servers'][number];
  const near = (share: number) =>
    needs({ ...report, servers }, { servers: [instance(1), instance(share * 1024 ** 2)] });
  expect(near(0.7)).toEqual([]);
  expect(near(0.9)).toMatchObject([{ id: 'memory:a', title: 'a uses 921.6 KiB of its limit of 1 MiB.' }]);
});

it('a wrong configuration comes before an older hub', async () => {
  const config = { ...SOUND, fault: { ...FAULT, isPreviousInForce: true } };
  const found = needs(await reportOf({ facts: { config } }), { version: '0.0.1' });
  expect(found.map(({ id, level }) => [id, level])).toEqual([
    ['config', 'fail'],
    ['version', 'warn'],
  ]);
  expect(found[0]).toMatchObject({
    cause: [FAULT.report],
    detail: 'The servers run on with the previous configuration.',
  });
});

it('a call that waits for a yes comes first, with its arguments and the command that allows it', async () => {
  const report = await reportOf({ lifecycle: { state: 'parked' } });
  const asked = {
    id: 'k7wq2m9x',
    server: 'b',
    kind: 'tool' as const,
    name: '"delete"',
    arguments: '{"path":"/a"}',
    client: 't',
    user: null,
  };
  const question = { ...asked, rule: 'servers.b.rules[0]', say: 'Gone is gone', secondsLeft: 60 };
  const [need] = needs({ ...report, questions: [question] });
  expect(need).toMatchObject({
    ...{ id: 'question:k7wq2m9x', level: 'fail', server: 'b', question: 'k7wq2m9x', action: null },
    title: 'A call of b waits for your yes.',
    detail: 'The configuration asks first (servers.b.rules[0]): Gone is gone',
    cause: ['tool "delete", called by t', '{"path":"/a"}'],
    command: expect.stringMatching(/^trunkline allow k7wq2m9x /),
  });
  // A client does not learn the ids, so its report has nothing to answer.
  expect(needs({ ...report, questions: [{ ...question, id: null }] })).toEqual(needs(report));
});
