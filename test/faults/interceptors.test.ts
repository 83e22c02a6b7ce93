import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { interceptors } from '../../src/extras/interceptors/index.js';
import { reportStatus } from '../../src/status/status.js';
import { renderStatus } from '../../src/status/status-text.js';
import { LAB } from '../support/gateway-process.js';
import { failureOf, type InProcessClient, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';
import type { Message } from '../support/wire.js';

const GUARD = fileURLToPath(new URL('../fixtures/servers/guard.mjs', import.meta.url));

const hooks = (phase: string, ...events: string[]) => [
  { events: events.length === 0 ? ['tools/call'] : events, phase },
];
const validator = (does: string, phase = 'request', more: Message = {}) => ({
  name: does,
  type: 'validation',
  hooks: hooks(phase),
  does,
  ...more,
});
const mutator = (does: string, phase = 'request', more: Message = {}) => ({
  name: does,
  type: 'mutation',
  hooks: hooks(phase),
  does,
  ...more,
});

/** Guards by their keys, each with its interceptors, in front of the server `lab`, and the server `other` without one. */
function start(guards: Record<string, Message[]>, settings: Message = {}): InProcessGateway {
  const entries = Object.entries(guards).map(([key, list]): [string, Record<string, unknown>] => [
    key,
    {
      command: 'node',
      args: [GUARD, `interceptors=${JSON.stringify(list)}`, `seen=RUN/${key}`, 'run=RUN'],
      interceptorTimeout: '10s',
      ...settings,
    },
  ]);
  const lab = { command: 'node', args: [LAB, 'run=RUN'] };
  const servers = { lab: { ...lab, interceptors: Object.keys(guards) }, other: lab, ...Object.fromEntries(entries) };
  return InProcessGateway.start({ servers, gateway: { startupWait: '30s' }, features: [interceptors] });
}

const seen = (gateway: InProcessGateway, key = 'guard') => gateway.lines(key).map((line) => JSON.parse(line));

/** The arguments of a call of the tool `echo`, as the server got them. */
async function echoed(client: InProcessClient, args: Message = {}): Promise<Message> {
  const result = await client.call('lab__echo', args);
  return result.isError === true ? result : JSON.parse(textOf(result)).params.arguments;
}

/** The result of a call with these params, byte for byte. */
async function rawCall(client: InProcessClient, params: string): Promise<Message> {
  const answer = () => client.received.messages.find(({ id }) => id === 'raw');
  client.say(`{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":${params}}`);
  await until('the call is answered', () => answer() !== undefined);
  return answer()?.result;
}

const statusOf = (gateway: InProcessGateway) => renderStatus(reportStatus(gateway.composition.status()));

describe('an interceptor', () => {
  it('sees the request as its server gets it, with the client, and lets it pass unchanged', async () => {
    const gateway = start({ guard: [validator('pass')] });
    const client = await gateway.connect();
    const params = '{"name":"lab__echo","arguments":{"text":"hello", "n":9007199254740993,"f":1.0}}';
    expect(textOf(await rawCall(client, params))).toContain(
      '"arguments":{"text":"hello", "n":9007199254740993,"f":1.0}',
    );
    const [invocation] = seen(gateway);
    expect(invocation).toMatchObject({
      name: 'pass',
      event: 'tools/call',
      phase: 'request',
      payload: { name: 'echo', arguments: { text: 'hello' } },
      timeoutMs: 10_000,
      context: { principal: { type: 'anonymous' }, sessionId: expect.any(String), timestamp: expect.any(String) },
      _meta: { 'trunkline/server': 'lab' },
    });
    expect(await client.call('other__echo')).not.toHaveProperty('isError');
    expect(seen(gateway)).toHaveLength(1);
  });

  it('is not shown to clients, neither merged nor alone', async () => {
    const gateway = start({ guard: [validator('pass')] });
    const client = await gateway.connect();
    await gateway.untilState('guard', 'ready');
    expect((await client.listTools()).filter((name) => name.startsWith('guard'))).toEqual([]);
    expect((await client.request('tools/call', { name: 'guard__own' })).error.message).toContain('guard__own');
    expect(gateway.composition.gateway.pool.has('guard')).toBe(false);
    expect(gateway.status('guard').sharing).toMatchObject({ mode: 'all' });
  });

  it('refuses a request with its message, without control characters, and the server gets nothing', async () => {
    const gateway = start({ guard: [validator('deny')] });
    const client = await gateway.connect();
    const result = await client.call('lab__echo', { text: 'x' });
    expect(failureOf(result)).toMatchObject({
      reason: 'intercepted',
      code: 'TL-CALL-INTERCEPTED',
      server: 'lab',
      sent: false,
      outcome: 'not_sent',
      rule: 'interceptor guard/deny',
    });
    expect(textOf(result)).toBe(
      'Server "lab" was not asked, because the interceptor "deny" of "guard" refuses it: No [31mway. The call was not sent.',
    );
    expect(gateway.status('lab').calls).toBe(1);
    expect(gateway.status('lab').latencyMs).toBeNull();
  });

  it('withholds a result that it refuses', async () => {
    const gateway = start({ guard: [validator('deny', 'response')] });
    const client = await gateway.connect();
    const result = await client.call('lab__echo', { text: 'hidden' });
    expect(failureOf(result)).toMatchObject({ reason: 'intercepted', sent: true, outcome: 'failed' });
    expect(JSON.stringify(result)).not.toContain('hidden');
    expect(gateway.status('lab').inFlight).toBe(0);
    expect(seen(gateway)[0]).toMatchObject({ phase: 'response', payload: { content: [{ type: 'text' }] } });
  });

  it('changes arguments in the order of priorities, then names, and checks what results', async () => {
    const step = (name: string, priorityHint?: number | Message) =>
      mutator('append', 'request', { name, ...(priorityHint !== undefined && { priorityHint }) });
    const gateway = start({
      one: [step('late', 5), step('b'), validator('deny-x')],
      two: [step('a'), step('first', { request: -1, response: 9 })],
    });
    const client = await gateway.connect();
    expect(await echoed(client, { text: 'q' })).toEqual({ text: 'q', by: ['first', 'a', 'b', 'late'] });
    expect(seen(gateway, 'one').at(-1)).toMatchObject({
      name: 'deny-x',
      payload: { arguments: { by: ['first', 'a', 'b', 'late'] } },
    });
  });

  it('may not round a large number in a part that it changes', async () => {
    const gateway = start({ guard: [mutator('append')] });
    const client = await gateway.connect();
    const result = await rawCall(client, '{"name":"lab__echo","arguments":{"n":9007199254740993,"by":["x"]}}');
    expect(textOf(result)).toContain('"n":9007199254740993');
    const refused = await client.call('lab__echo', JSON.parse('{"by":[9007199254740993]}'));
    expect(textOf(refused)).toContain('would be rounded');
  });

  it('changes results', async () => {
    const gateway = start({ guard: [mutator('upper', 'response')] });
    const client = await gateway.connect();
    const result = await client.call('lab__big', { mark: 'secret', bytes: 12 });
    expect(textOf(result)).toBe('SECRETSECRET');
  });

  it('does not block with a severity below error, or in audit mode, and its findings are logged', async () => {
    const gateway = start({
      guard: [
        validator('warn'),
        validator('deny', 'request', { mode: 'audit' }),
        mutator('append', 'request', { mode: 'audit' }),
      ],
    });
    const remarks: string[] = [];
    gateway.composition.calls.observe({ begin: () => ({ ended: (call) => remarks.push(...call.remarks) }) });
    const client = await gateway.connect();
    expect(await echoed(client, { text: 'q' })).toEqual({ text: 'q' });
    expect(remarks).toContain('interceptor guard/warn: Hm');
    const findings = () => gateway.log.filter((line) => line.includes('an interceptor has found something')).join('\n');
    await expect.poll(findings).toContain('it would change the message');
    await expect.poll(findings).toContain('guard/deny');
    expect(findings()).toContain('guard/warn');
  });

  it('may be described as in the earlier text of the proposal', async () => {
    const { hooks: _, ...old } = validator('deny');
    const gateway = start({ guard: [{ ...old, hook: { events: ['tools/*'], phase: 'both' }, mode: 'enforce' }] });
    const client = await gateway.connect();
    expect(failureOf(await client.call('lab__echo'))).toMatchObject({ reason: 'intercepted' });
  });

  it('looks at the questions of a server and at the answers of the client', async () => {
    const list = [
      mutator('upper', 'request', { name: 'ask', hooks: hooks('request', 'elicitation/create') }),
      mutator('upper', 'response', { name: 'answer', hooks: hooks('response', 'elicitation/create') }),
    ];
    const gateway = start({ guard: list });
    const client = await gateway.connect({ elicitation: { form: {} } });
    const params = { message: 'the secret?', requestedSchema: { type: 'object', properties: {} } };
    const call = client.call('lab__ask', { method: 'elicitation/create', params });
    await until('the client is asked', () => client.notifications('elicitation/create').length === 1);
    const [question] = client.notifications('elicitation/create');
    expect(question?.params.message).toBe('Server "lab" asks: the SECRET?');
    client.say({ jsonrpc: '2.0', id: question?.id, result: { action: 'accept', content: { key: 'secret' } } });
    expect(textOf(await call)).toContain('"key":"SECRET"');
    expect(seen(gateway)).toHaveLength(2);
  });

  it.each([
    ['the question', 'request', 'The client was not asked'],
    ['the answer', 'response', 'The server does not get the answer'],
  ])('keeps %s back', async (_, phase, text) => {
    const gateway = start({ guard: [validator('deny', phase, { hooks: hooks(phase, 'sampling/createMessage') })] });
    const client = await gateway.connect({ sampling: {} });
    const params = { messages: [], maxTokens: 1 };
    const call = client.call('lab__ask', { method: 'sampling/createMessage', params });
    if (phase === 'response') {
      await until('the client is asked', () => client.notifications('sampling/createMessage').length === 1);
      const [question] = client.notifications('sampling/createMessage');
      const content = { type: 'text', text: 'private' };
      client.say({ jsonrpc: '2.0', id: question?.id, result: { role: 'assistant', model: 'm', content } });
    }
    const answer = textOf(await call);
    expect(answer).toContain(text);
    expect(answer).not.toContain('private');
  });

  it('is asked no more when the client cancels', async () => {
    const gateway = start({ guard: [validator('hang')] });
    const client = await gateway.connect();
    client.say({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'lab__echo' } });
    await until('the guard is asked', () => seen(gateway).length === 1);
    client.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'c' } });
    await until('the guard is told', () => seen(gateway).includes('cancelled'));
    expect(gateway.status('lab').calls).toBe(0);
    expect(await client.call('other__echo')).toHaveProperty('content');
  });

  it('keeps nothing else waiting while it looks, and progress goes on', async () => {
    const gateway = start({ guard: [validator('hang', 'response')] }, { interceptorTimeout: '5s' });
    const client = await gateway.connect();
    const call = client.call('lab__progress', { marker: 'm' }, 'token');
    await until('progress comes', () => client.notifications('notifications/progress').length > 0);
    expect(await client.call('other__echo')).toHaveProperty('content');
    expect(failureOf(await call)).toMatchObject({ reason: 'intercepted' });
  });

  it('is found, changed and removed by a reload', async () => {
    const lab = { command: 'node', args: [LAB, 'run=RUN'] };
    const guard = { command: 'node', args: [GUARD, `interceptors=${JSON.stringify([validator('deny')])}`, 'run=RUN'] };
    const gateway = InProcessGateway.start({ servers: { lab, guard }, features: [interceptors] });
    const client = await gateway.connect();
    await gateway.untilState('guard', 'ready');
    expect(await client.listTools()).toContain('guard__own');
    gateway.change({ lab: { ...lab, interceptors: ['guard'] }, guard: { ...guard, interceptorTimeout: '10s' } });
    expect(failureOf(await client.call('lab__echo'))).toMatchObject({ rule: expect.stringContaining('guard') });
    await expect.poll(() => client.listTools()).not.toContain('guard__own');
    gateway.change({ lab, guard });
    expect(await client.call('lab__echo')).toHaveProperty('content');
  });
});

describe('the example that finds secrets', () => {
  it('withholds results with a secret, and lets others pass', async () => {
    const example = fileURLToPath(new URL('../../docs/examples/secret-guard.mjs', import.meta.url));
    const lab = { command: 'node', args: [LAB, 'run=RUN'], interceptors: ['secrets'] };
    const secrets = { command: 'node', args: [example, 'run=RUN'], interceptorTimeout: '10s' };
    const gateway = InProcessGateway.start({ servers: { lab, secrets }, features: [interceptors] });
    const client = await gateway.connect();
    expect(await echoed(client, { text: 'ghp' })).toEqual({ text: 'ghp' });
    const token = `ghp_${'Xa2bC3dEf4gH5iJk6Lm7'}`;
    const result = await client.call('lab__echo', { text: token });
    expect(textOf(result)).toContain('refuses it: The result has a token of GitHub.');
    expect(JSON.stringify(result)).not.toContain(token);
  });
});

describe('a guard that does harm', () => {
  const FAULTS: readonly [string, Message, reason: string][] = [
    ['hangs', validator('hang'), 'did not answer in time'],
    ['exits', validator('exit'), 'exited during this call'],
    ['answers with an error', validator('error'), 'answered with an error'],
    ['answers in another shape', validator('wrong'), 'does not say whether the message is valid'],
    ['answers nothing', validator('nothing'), 'does not say whether the message is valid'],
    ['answers for another interceptor', validator('other'), 'answered for another interceptor'],
    ['answers under another id', validator('other-id'), 'did not answer in time'],
    ['changes the name of the tool', mutator('rename'), 'changed `name`'],
    ['changes the metadata', mutator('meta'), 'changed `_meta`'],
    ['answers with a huge message', mutator('huge'), 'its answer is too large'],
  ];
  it.each(FAULTS)('closes what it guards when it %s, and nothing else', async (_, interceptor, reason) => {
    const gateway = start({ guard: [interceptor] }, { interceptorTimeout: '1s' });
    const client = await gateway.connect();
    await gateway.untilState('guard', 'ready');
    const result = await client.call('lab__echo');
    expect(failureOf(result)).toMatchObject({ reason: 'intercepted', sent: false });
    expect(textOf(result)).toContain(reason);
    expect(await client.call('other__echo')).toHaveProperty('content');
    expect(statusOf(gateway).split('\n')[0]).toContain('Interceptor "guard" has failed: it');
  });

  it.each(FAULTS)('lets pass what it guards when it %s and the configuration says so', async (_, interceptor) => {
    const gateway = start({ guard: [interceptor] }, { interceptorTimeout: '1s', interceptorFailOpen: true });
    const client = await gateway.connect();
    await gateway.untilState('guard', 'ready');
    expect(await echoed(client, { text: 'q' })).toEqual({ text: 'q' });
  });

  it('is not believed when it says that messages may pass without it', async () => {
    const gateway = start({ guard: [validator('error', 'request', { failOpen: true })] });
    const client = await gateway.connect();
    expect(failureOf(await client.call('lab__echo'))).toMatchObject({ reason: 'intercepted' });
  });

  it.each([
    ['has no interceptors', [], 'it has no interceptors'],
    ['lists a malformed one', [{ name: 'x', type: 'validation' }], 'has no hooks'],
    ['lists a name twice', [validator('pass'), validator('pass')], 'the same name'],
  ])('closes everything when it %s', async (_, list, reason) => {
    const gateway = start({ guard: list });
    const client = await gateway.connect();
    expect(textOf(await client.call('lab__echo'))).toContain(reason);
  });

  it('is not asked about a message that is too large, which does not pass', async () => {
    const gateway = start({ guard: [validator('pass', 'both')] });
    const client = await gateway.connect();
    expect(textOf(await client.call('lab__big', { bytes: 1_100_000 }))).toContain('more than 1048576 bytes');
    expect(textOf(await client.call('lab__big', { bytes: 900_000 }))).toHaveLength(900_000);
  });

  it.each([
    ['twice', '{"k":1,"k":2}'],
    ['in capitals, too', '{"k":1,"K":2}'],
  ])('is not shown a message that has a key %s, which does not pass', async (_, args) => {
    const gateway = start({ guard: [validator('pass')] });
    const client = await gateway.connect();
    expect(textOf(await rawCall(client, `{"name":"lab__echo","arguments":{"a":${args}}}`))).toContain('a key twice');
  });

  it('is shown a message with a key twice if it only watches, and the message passes', async () => {
    const gateway = start({ guard: [validator('deny', 'request', { mode: 'audit' })] });
    const client = await gateway.connect();
    const result = await rawCall(client, '{"name":"lab__echo","arguments":{"a":{"k":1,"k":2}}}');
    expect(textOf(result)).toContain('"a":{"k":1,"k":2}');
    await until('the guard is asked', () => seen(gateway).length === 1);
  });

  it('answers again after its process was killed', async () => {
    const gateway = start({ guard: [validator('pass')] });
    const client = await gateway.connect();
    const { pid } = await gateway.untilState('guard', 'ready');
    expect(await client.call('lab__echo')).toHaveProperty('content');
    process.kill(pid ?? 0, 'SIGKILL');
    await until('the next process runs', () => ![null, pid].includes(gateway.status('guard').pid));
    expect(await client.call('lab__echo')).toHaveProperty('content');
    expect(statusOf(gateway)).not.toContain('Interceptor "guard"');
  });

  it('is asked no more while its circuit breaker is open', async () => {
    const gateway = start({ guard: [validator('hang')] }, { interceptorTimeout: '100ms' });
    const client = await gateway.connect();
    await gateway.untilState('guard', 'ready');
    for (let calls = 0; calls < 40 && gateway.status('guard').breaker === 'closed'; calls += 1)
      await client.call('lab__echo');
    expect(gateway.status('guard').breaker).not.toBe('closed');
    const asked = seen(gateway).length;
    expect(textOf(await client.call('lab__echo'))).toContain('too many of its recent calls failed');
    expect(seen(gateway).filter((line) => line !== 'cancelled').length).toBeLessThanOrEqual(asked);
  });

  it('floods, and calls go on', async () => {
    const gateway = start({ guard: [validator('flood')] });
    const client = await gateway.connect();
    expect(await client.call('lab__echo')).toHaveProperty('content');
    expect(await client.call('other__echo')).toHaveProperty('content');
  });

  it('may not make a refusal of a person an acceptance', async () => {
    const hook = { hooks: hooks('response', 'elicitation/create') };
    const gateway = start({ guard: [mutator('accept', 'response', hook)] });
    const client = await gateway.connect({ elicitation: { form: {} } });
    const params = { message: 'q', requestedSchema: { type: 'object', properties: {} } };
    const call = client.call('lab__ask', { method: 'elicitation/create', params });
    await until('the client is asked', () => client.notifications('elicitation/create').length === 1);
    client.say({
      jsonrpc: '2.0',
      id: client.notifications('elicitation/create')[0]?.id,
      result: { action: 'decline' },
    });
    expect(textOf(await call)).toContain('changed `action`');
  });
});
