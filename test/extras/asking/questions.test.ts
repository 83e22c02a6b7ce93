import { describe, expect, it } from 'vitest';
import { Questions } from '../../../src/extras/asking/questions.js';
import type { GatedRequest, RequestGate } from '../../../src/gateway/routing/request-gate.js';
import { REDACTED } from '../../../src/host/observe/redact.js';
import {
  callRules,
  offering,
  type ServerScript,
  startGateway,
  toolOf,
  type Who,
} from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const FORMS = { elicitation: {} };
const SESSION = 'yes, for this tool until the session ends';
/** Time after which a person can have read a form, in milliseconds. */
const READ_MS = 1_000;
const ASKING: NonNullable<ServerScript['rules']> = [
  { tools: ['delete'], args: { path: ['/etc/**'] }, verdict: 'deny' },
  { tools: ['delete'], verdict: 'ask', say: 'Gone is gone' },
];

/** A gateway that asks about the calls of `delete` at its server `a`. */
async function asking(script: Partial<ServerScript> = {}) {
  const notified: string[] = [];
  let questions: Questions | undefined;
  let gate: RequestGate | undefined;
  const world = await startGateway({
    servers: { a: { tools: ['delete', 'drop', 'read'], rules: ASKING, ...script } },
    gates: (gateway, clock) => {
      questions = new Questions({
        clock,
        gateway: {
          get connected() {
            return gateway().connected;
          },
        },
        redact: (text) => text.replaceAll('hunter2', REDACTED),
        place: () => 'on the page',
        settings: () => ({ timeoutMs: 60_000, notify: true }),
        notify: (title) => notified.push(title),
      });
      const made = questions;
      gate = { concerns: ({ asks }) => asks !== undefined, hold: (request, pass) => made.hold(request, pass) };
      return [gate];
    },
  });
  if (questions === undefined || gate === undefined) throw new Error('No questions');
  const connected = (capabilities: Message = {}, who: Who = {}) => world.connect(who).greet('2025-11-25', capabilities);
  const { child } = world.server('a');
  return { ...world, gate, questions, notified, connected, child, sent: () => child.asked('tools/call') };
}

type Client = Awaited<ReturnType<typeof asking>>['connected'] extends (...args: never) => infer C ? C : never;

/** The form that the client was asked to show. */
function formOf({ received }: Client): Message {
  const asked = received.messages.filter(({ method }) => method === 'elicitation/create');
  expect(asked).toHaveLength(1);
  return asked[0] ?? {};
}

function failureOf(answer: Message | undefined): Message {
  return answer?.result?._meta?.['trunkline/failure'] ?? {};
}

describe('a call for which a rule asks, of a client with forms', () => {
  const asked = async (args: Message = { path: '/a' }) => {
    const world = await asking();
    const client = world.connected(FORMS);
    client.call('first', 'a__delete', { arguments: args });
    await flush();
    const form = formOf(client);
    const answer = async (result: Message) => {
      client.say({ jsonrpc: '2.0', id: form.id, result });
      await flush();
    };
    return { ...world, client, form, answer };
  };

  it('shows the server, the tool, the arguments and the reason, and sends nothing', async () => {
    const { form, sent, notified } = await asked();
    expect(form.params).toMatchObject({
      message:
        'Allow this call of the server "a"? The configuration asks first (servers.a.rules[1]): Gone is gone\nThe tool is "delete", with {"path":"/a"}',
      requestedSchema: { properties: { answer: { enum: ['no', 'yes', SESSION] } }, required: ['answer'] },
    });
    expect(sent()).toEqual([]);
    expect(notified).toEqual([]);
  });

  it('is sent once after a yes, and the next one asks again', async () => {
    const { client, answer, sent, questions } = await asked();
    await answer({ action: 'accept', content: { answer: 'yes' } });
    expect(sent()).toHaveLength(1);
    expect(questions.open).toEqual([]);
    client.received.take();
    client.call('second', 'a__delete', { arguments: { path: '/a' } });
    await flush();
    formOf(client);
    expect(sent()).toHaveLength(1);
  });

  it('is sent without a question after a yes for the session, but no other tool is, and no other client', async () => {
    const { client, answer, sent, ...world } = await asked();
    await answer({ action: 'accept', content: { answer: SESSION } });
    client.call('second', 'a__delete', { arguments: { path: '/b' } });
    await flush();
    expect(sent()).toHaveLength(2);
    const other = world.connected(FORMS);
    other.call('first', 'a__delete', { arguments: { path: '/a' } });
    await flush();
    formOf(other);
    expect(sent()).toHaveLength(2);
  });

  it.each([
    ['a no', { action: 'accept', content: { answer: 'no' } }],
    ['a form that was declined', { action: 'decline' }],
    ['a form that was closed', { action: 'cancel' }],
    ['a declined form with a yes', { action: 'decline', content: { answer: 'yes' } }],
    ['an accepted form without an answer', { action: 'accept' }],
    ['an answer that the form does not offer', { action: 'accept', content: { answer: 'YES' } }],
    ['an answer that is no text', { action: 'accept', content: { answer: ['yes'] } }],
  ])('is refused after %s', async (_, result) => {
    const { client, answer, sent, clock } = await asked();
    await clock.advance(READ_MS);
    await answer(result);
    expect(sent()).toEqual([]);
    expect(failureOf(client.answerTo('first'))).toMatchObject({
      reason: 'denied',
      sent: false,
      rule: 'servers.a.rules[1]',
    });
    expect(client.answerTo('first')?.result.content[0].text).toBe(
      'Server "a" was not asked, because a rule of the configuration asks a person first, who said no: Gone is gone. Do not repeat this call. Ask your user what to do instead.',
    );
  });

  it.each([
    ['an error', { error: { code: -32603, message: 'No' } }],
    ['a decline at once', { result: { action: 'decline' } }],
    ['a cancel at once', { result: { action: 'cancel' } }],
    ['an empty form at once', { result: { action: 'accept', content: {} } }],
  ])('waits on after %s, as without forms, because no person has seen the form', async (_, said) => {
    const { client, form, sent, clock, questions, notified } = await asked();
    client.say({ jsonrpc: '2.0', id: form.id, ...said });
    await flush();
    expect(notified).toHaveLength(1);
    questions.answer(questions.open[0]?.id ?? '', 'yes');
    expect(sent()).toHaveLength(1);
    client.received.take();
    client.call('second', 'a__delete', { arguments: { path: '/a' }, _meta: { progressToken: 2 } });
    await flush();
    client.say({ jsonrpc: '2.0', id: formOf(client).id, ...said });
    await flush();
    await clock.advance(60_000);
    expect(client.answerTo('second')?.result.content[0].text).toContain('and nobody has answered: Gone is gone.');
    const reports = client.received.messages.filter(({ method }) => method === 'notifications/progress');
    const values = reports.map(({ params }) => params.progress);
    expect(values.slice(0, 3)).toEqual([-120, -55, -50]);
    await clock.advance(60_000);
    expect(questions.open).toEqual([]);
  });

  it('is refused without an answer in two minutes, and promises nothing of a yes that comes later', async () => {
    const { client, clock, questions } = await asked();
    await clock.advance(120_000);
    expect(client.answerTo('first')?.result.content[0].text).toBe(
      'Server "a" was not asked, because a rule of the configuration asks a person first, and nobody has answered: Gone is gone. Repeat this call only when your user is there to answer.',
    );
    expect(questions.open).toEqual([]);
  });

  it('is refused at once by a no that the form offers', async () => {
    const { client, answer } = await asked();
    await answer({ action: 'accept', content: { answer: 'no' } });
    expect(failureOf(client.answerTo('first')).reason).toBe('denied');
  });

  it('withdraws the form when the answer comes from elsewhere, and takes no second answer', async () => {
    const { client, answer, sent, questions } = await asked();
    questions.answer(questions.open[0]?.id ?? '', 'no');
    await flush();
    expect(client.received.messages.some(({ method }) => method === 'notifications/cancelled')).toBe(true);
    await answer({ action: 'accept', content: { answer: 'yes' } });
    expect(sent()).toEqual([]);
    expect(failureOf(client.answerTo('first')).reason).toBe('denied');
  });

  it('hides secrets and hidden characters from the form, and cuts long arguments, which reach the server whole', async () => {
    const args = { path: 'hunter2\u202e', more: 'x'.repeat(3_000) };
    const { form, answer, sent } = await asked(args);
    const { message } = form.params;
    expect(message).toContain('[redacted]');
    expect(message).toContain('\\u{202e}');
    expect(message).not.toContain('hunter2');
    expect(message).toContain('…[2600 more characters]…');
    await answer({ action: 'accept', content: { answer: 'yes' } });
    expect(sent()[0]?.params.arguments).toEqual(args);
  });
});

describe('a call for which a rule asks, of a client without a session', () => {
  it('gets the form as required input, without a yes for the session, and goes on with the answer', async () => {
    const world = await asking();
    const client = world.connect();
    client.modernRequest(1, 'tools/call', { name: 'a__delete', arguments: { path: '/a' } }, FORMS);
    await flush();
    await world.clock.advance(100);
    const { result } = client.answerTo(1) ?? {};
    const [[key, entry] = ['', {}]] = Object.entries<Message>(result.inputRequests);
    expect(entry.params.requestedSchema.properties.answer.enum).toEqual(['no', 'yes']);
    expect(world.sent()).toEqual([]);
    const { requestState } = result;
    const inputResponses = { [key]: { action: 'accept', content: { answer: 'yes' } } };
    const again = { name: 'a__delete', arguments: { path: '/a' }, requestState, inputResponses };
    client.modernRequest(2, 'tools/call', again, FORMS);
    await flush();
    expect(world.sent()).toHaveLength(1);
  });
});

describe('a call for which a rule asks, of a client without forms', () => {
  const waiting = async (script: Partial<ServerScript> = {}) => {
    const world = await asking(script);
    const client = world.connected();
    const call = async (id: number, args: Message = { path: '/a' }, from = client) => {
      from.call(id, 'a__delete', { arguments: args, _meta: { progressToken: id } });
      await flush();
    };
    await call(1);
    const [question] = world.questions.open;
    if (question === undefined) throw new Error('Nothing waits');
    return { ...world, client, call, question, id: question.id };
  };

  it('waits, tells the person and reports progress, and takes no slot of the server', async () => {
    const { client, clock, question, notified, sent } = await waiting({ limits: { concurrency: 1 } });
    expect(question).toMatchObject({
      server: 'a',
      kind: 'tool',
      name: '"delete"',
      arguments: '{"path":"/a"}',
      client: '"t"',
    });
    expect(notified).toEqual(['Allow a call of server a? The tool is "delete"']);
    client.call(2, 'a__read');
    await flush();
    expect(sent().map(({ params }) => params.name)).toEqual(['read']);
    await clock.advance(10_000);
    const reports = client.received.messages.filter(({ method }) => method === 'notifications/progress');
    const values = reports.map(({ params }) => params.progress);
    expect(values).toEqual([-60, -55, -50]);
  });

  it('is sent after a yes, and refused after a no', async () => {
    const { client, call, questions, sent, id } = await waiting();
    expect(questions.answer(id, 'yes')).toBe(true);
    expect(sent()).toHaveLength(1);
    expect(questions.answer(id, 'yes')).toBe(false);
    await call(2);
    questions.answer(questions.open[0]?.id ?? '', 'no');
    expect(sent()).toHaveLength(1);
    expect(failureOf(client.answerTo(2)).reason).toBe('denied');
  });

  it('is refused without an answer, and passes once when it comes again after a late yes', async () => {
    const { client, call, clock, questions, sent, id } = await waiting();
    await clock.advance(60_000);
    expect(client.answerTo(1)?.result.content[0].text).toContain('and nobody has answered: Gone is gone.');
    expect(questions.answer(id, 'yes')).toBe(true);
    expect(sent()).toEqual([]);
    await call(2);
    expect(sent()).toHaveLength(1);
    await call(3);
    expect(sent()).toHaveLength(1);
    expect(questions.open).toHaveLength(1);
  });

  it('does not pass by a late yes with other arguments, of another client, or after two minutes', async () => {
    const { call, clock, questions, sent, id, ...world } = await waiting();
    await clock.advance(60_000);
    questions.answer(id, 'yes');
    await call(2, { path: '/b' });
    await call(3, { path: '/a', more: 1 });
    await call(4, { path: '/a' }, world.connected());
    expect(sent()).toEqual([]);
    await clock.advance(60_000);
    await call(5);
    expect(sent()).toEqual([]);
  });

  it('can be answered no more after two minutes', async () => {
    const { clock, questions, id } = await waiting();
    await clock.advance(120_000);
    expect(questions.open).toEqual([]);
    expect(questions.answer(id, 'yes')).toBe(false);
  });

  it('is one question when its client gives up and repeats it', async () => {
    const { client, call, questions } = await waiting();
    client.cancel(1);
    await call(2);
    expect(questions.open).toHaveLength(1);
    questions.answer(questions.open[0]?.id ?? '', 'yes');
    await flush();
    expect(client.answerTo(1)).toBeUndefined();
  });

  it('is denied if the rules deny it by the time of the yes', async () => {
    const { client, questions, sent, id, server } = await waiting();
    const { backend } = server('a');
    backend.configure({ ...backend.rules, callRules: callRules([{ tools: ['*'], verdict: 'deny' }]) });
    questions.answer(id, 'yes');
    await flush();
    expect(sent()).toEqual([]);
    expect(failureOf(client.answerTo(1)).rule).toBe('servers.a.rules[0]');
  });

  it('is refused when Trunkline ends', async () => {
    const { client, questions, sent } = await waiting();
    questions.close();
    await flush();
    expect(sent()).toEqual([]);
    expect(client.answerTo(1)?.result.content[0].text).toContain('and Trunkline ends');
  });

  it('is one of at most 64 that wait for a principal', async () => {
    const { client, call, questions } = await waiting();
    for (let id = 2; id <= 65; id += 1) await call(id, { path: `/${id}` });
    expect(questions.open).toHaveLength(64);
    expect(client.answerTo(65)?.result.content[0].text).toContain('too many calls wait for an answer');
  });
});

describe('a call that a rule denies before another one asks', () => {
  it('is denied without a question', async () => {
    const world = await asking();
    const client = world.connected();
    client.call(1, 'a__delete', { arguments: { path: '/etc/passwd' } });
    await flush();
    expect(failureOf(client.answerTo(1)).rule).toBe('servers.a.rules[0]');
    expect(world.questions.open).toEqual([]);
  });
});

describe('a request without a tool for which a rule asks', () => {
  const ANY: ServerScript['rules'] = [
    { uris: ['*'], verdict: 'ask' },
    { prompts: ['*'], verdict: 'ask' },
    { tools: ['*'], verdict: 'ask' },
  ];
  const resources = {
    ...offering({
      prompts: ['delete'],
      resources: ['file:///a', 'file:///b'],
      capabilities: { tools: {}, prompts: {}, resources: {} },
    }),
    tools: ['delete'],
    rules: ANY,
    methods: ['files/*'],
  };

  it.each([
    ['resources/read', { uri: 'file:///a' }, { uri: 'file:///b' }],
    ['files/get', { uri: 'file:///a' }, { uri: 'file:///b' }],
    ['files/get', { uri: 'file:///a' }, { uri: 'file:///a', content: 'other' }],
    ['files/get', { uri: 'file:///a', name: 'x' }, { uri: 'file:///b', name: 'x' }],
  ])('passes by a late yes with the same parameters only: %s %j', async (method, first, other) => {
    const { connected, clock, questions, child } = await asking(resources);
    const client = connected({}, { server: 'a' });
    client.request('first', method, first);
    await flush();
    expect(questions.open[0]).toMatchObject({ kind: 'resource', name: '"file:///a"' });
    await clock.advance(60_000);
    questions.answer(questions.open[0]?.id ?? '', 'yes');
    client.request('other', method, other);
    await flush();
    expect(child.asked(method)).toEqual([]);
    client.request('again', method, first);
    await flush();
    expect(child.asked(method)).toHaveLength(1);
  });

  it('has no yes for the session, and a yes for the session of a tool is not for the prompt of its name', async () => {
    const { connected, questions, child } = await asking(resources);
    const client = connected(FORMS);
    client.call('tool', 'a__delete');
    await flush();
    const { id } = formOf(client);
    client.received.take();
    client.say({ jsonrpc: '2.0', id, result: { action: 'accept', content: { answer: SESSION } } });
    client.request('prompt', 'prompts/get', { name: 'a__delete' });
    await flush();
    expect(formOf(client).params.requestedSchema.properties.answer.enum).toEqual(['no', 'yes']);
    expect(questions.open).toHaveLength(1);
    expect(child.asked('prompts/get')).toEqual([]);
  });
});

describe('a call that a person could not judge', () => {
  it.each([
    ['a name twice', '{"to":"/tmp","to":"/home"}', 'two arguments of one name'],
    ['a name in two cases', '{"to":"/tmp","To":"/home"}', 'two arguments of one name'],
    ['a name twice, deep', '[{"a":{"b":1,"\\u0062":2}}]', 'two arguments of one name'],
    ['arguments of more than a megabyte', `{"a":"${'x'.repeat(1024 * 1024)}"}`, 'too long for a person to read'],
  ])('is refused without a question: %s', async (_, args, because) => {
    const { connected, questions, sent } = await asking();
    const client = connected();
    const wrapped = args.startsWith('[') ? `{"list":${args}}` : args;
    client.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__delete","arguments":${wrapped}}}`);
    await flush();
    expect(questions.open).toEqual([]);
    expect(sent()).toEqual([]);
    expect(client.answerTo(1)?.result.content[0].text).toContain(because);
  });

  it('is shown decoded, with all names, and with names of servers and clients in quotes on one line', async () => {
    const name = `list${' '.repeat(300)}of the server "files"? It only reads.`;
    const { connected, questions } = await asking({ tools: [toolOf(name)], rules: [{ tools: ['*'], verdict: 'ask' }] });
    const client = connected({}, { server: 'a' });
    const args = `{"cmd":"\\u0072\\u006d","pad":"${'x'.repeat(5_000)}","last":"\\u0068unter2"}`;
    client.say(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${JSON.stringify(name)},"arguments":${args}}}`,
    );
    await flush();
    const [question] = questions.open;
    expect(question?.name).toBe('"list of the server \\"files\\"? It only reads."');
    expect(question?.arguments).toMatch(
      /^\{"cmd":"rm","pad":"x+…\[4600 more characters\]…x+","last":"\[redacted\]"\}$/,
    );
  });
});

describe('the questions of clients that give up', () => {
  it('are one question with one id and one timer, however often the call comes again', async () => {
    const { connected, clock, questions } = await asking();
    const client = connected();
    const ids = new Set<string>();
    const timers: number[] = [];
    for (let id = 1; id <= 20; id += 1) {
      client.call(id, 'a__delete', { arguments: { path: '/a' } });
      await flush();
      client.cancel(id);
      for (const each of questions.open) ids.add(each.id);
      timers.push(clock.pending);
    }
    expect(ids.size).toBe(1);
    expect(new Set(timers).size).toBe(1);
  });

  it('make room for calls that wait', async () => {
    const { connected, questions } = await asking();
    const client = connected();
    for (let id = 1; id <= 64; id += 1) {
      client.call(id, 'a__delete', { arguments: { path: `/${id}` } });
      await flush();
      client.cancel(id);
    }
    client.call(65, 'a__delete', { arguments: { path: '/65' } });
    await flush();
    expect(questions.open.map((each) => each.arguments)).toContain('{"path":"/65"}');
  });

  it('can be answered with a no after a yes, as long as the call has not come again', async () => {
    const { connected, clock, questions, sent } = await asking();
    const client = connected();
    client.call(1, 'a__delete', { arguments: { path: '/a' } });
    await flush();
    const id = questions.open[0]?.id ?? '';
    await clock.advance(60_000);
    questions.answer(id, 'yes');
    expect(questions.answer(id, 'no')).toBe(true);
    client.call(2, 'a__delete', { arguments: { path: '/a' } });
    await flush();
    expect(sent()).toEqual([]);
  });
});

describe('a call that waits for a person while the configuration changes', () => {
  const waiting = async () => {
    const world = await asking();
    const client = world.connected();
    client.call(1, 'a__delete', { arguments: { path: '/a' } });
    await flush();
    return { ...world, client, id: world.questions.open[0]?.id ?? '' };
  };

  it('is looked at by a gate that was added', async () => {
    const { gate, change, questions, client, id, sent } = await waiting();
    const seen: string[] = [];
    const added = {
      concerns: () => true,
      hold: ({ exchange }: GatedRequest) => void seen.push(exchange.request.method),
    };
    change({ a: { tools: ['delete'], rules: ASKING } }, [], { gates: [added, gate] });
    questions.answer(id, 'yes');
    await flush();
    expect(seen).toEqual(['tools/call']);
    expect(sent()).toEqual([]);
    expect(client.answerTo(1)).toBeUndefined();
  });

  it('is judged by the rules of the server that replaced the one that it was for', async () => {
    const { change, questions, id, sent, client, server, startAll } = await waiting();
    const old = server('a');
    change({ a: { tools: ['delete'], rules: [{ tools: ['*'], verdict: 'deny' }] } }, ['a']);
    await startAll();
    questions.answer(id, 'yes');
    await flush();
    expect([...sent(), ...old.child.asked('tools/call'), ...server('a').child.asked('tools/call')]).toEqual([]);
    expect(failureOf(client.answerTo(1)).rule).toBe('servers.a.rules[0]');
  });
});
