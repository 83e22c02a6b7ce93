import { describe, expect, it } from 'vitest';
import { NamedViews } from '../../../src/gateway/catalog/tool-policy.js';
import { reportView } from '../../../src/gateway/status/tool-report.js';
import type { OutputLine, PageEvent } from '../../../src/hub/control.js';
import { HubLife } from '../../../src/hub/hub-life.js';
import type { ControlCommands } from '../../../src/hub/server/control-connection.js';
import type { HubClients } from '../../../src/hub/server/hub-clients.js';
import type { RunningHub } from '../../../src/hub/server/hub-commands.js';
import { pageCommands } from '../../../src/hub/server/page-commands.js';
import { FakeClock } from '../../support/fake-clock.js';
import { LAB } from '../../support/gateway-process.js';
import { InProcessGateway } from '../../support/in-process-gateway.js';
import { until } from '../../support/processes.js';
import type { Message } from '../../support/wire.js';

const SECRET = { env: { API_KEY: 'hunter2hunter2' } };
const lab = { command: 'node', args: [LAB, 'run=RUN'], sharing: 'all' };

/** The commands of a hub with this gateway, and what they emit. */
function hubOf(gateway: InProcessGateway) {
  const clients = { all: [], size: 0 } as unknown as HubClients;
  const hub: RunningHub = { composition: gateway.composition, clients };
  const { clock } = gateway;
  const commands = pageCommands({
    ...{ life: new HubLife(new FakeClock()), platform: { clock }, hubFolder: '/hubs/key/4', startedAt: clock.now() },
    ...{ configFile: '/c/trunkline.yaml', logFile: '/hubs/key/hub.log' },
    running: Promise.resolve(hub),
    hub: () => hub,
  });
  return commands;
}

async function run(commands: ControlCommands, command: string, params: object): Promise<unknown> {
  const context = { emit: () => true, signal: new AbortController().signal };
  return await commands[command]?.({ ...params }, context);
}

/** Follows a command until it is closed. */
function follow<Event>(commands: ControlCommands, command: string, params: object = {}) {
  const closed = new AbortController();
  const events: Event[] = [];
  const emit = (event: unknown) => events.push(event as Event) > 0;
  const ended = commands[command]?.({ ...params }, { emit, signal: closed.signal }) as Promise<unknown>;
  const close = async () => {
    closed.abort();
    await ended;
  };
  return { events, close };
}

// The end of the gateway fails if a timer is left.
describe('the command `page`', () => {
  it('F293: emits the state at once and after a change, and leaves no timer and no subscription', async () => {
    const gateway = InProcessGateway.start({ servers: { one: { ...lab, ...SECRET } } });
    await gateway.untilState('one', 'ready');
    const { composition } = gateway;
    const client = await gateway.connect();
    await client.listTools();
    const { events, close } = follow<PageEvent>(hubOf(gateway), 'page');
    const calls = () => events.flatMap((each) => (each.kind === 'state' ? (each.report?.servers[0]?.calls ?? []) : []));
    await until('the first state is there', () => calls().length === 1);
    await until('the usage is there', () => events.some(({ kind }) => kind === 'usage'));
    await client.call('one__echo');
    await until('the call is counted', () => calls().includes(1));
    expect(composition.platform.events.wants('config.read')).toBe(true);
    await close();
    expect(composition.platform.events.wants('config.read')).toBe(false);
  });
});

interface Call {
  readonly id: number;
  readonly outcome: string;
  readonly [member: string]: unknown;
}

describe('the command `calls`', () => {
  it('emits each call, keeps the messages of both legs without secrets, and ends the observation with its connection', async () => {
    const gateway = InProcessGateway.start({ servers: { one: { ...lab, ...SECRET } } });
    await gateway.untilState('one', 'ready');
    const client = await gateway.connect();
    const commands = hubOf(gateway);
    const { events, close } = follow<{ calls: Call[]; left: object }>(commands, 'calls');
    await until('the calls are observed', () => events.length > 0);
    await client.call('one__echo', { text: 'hunter2hunter2', big: 'x'.repeat(20_000) });
    await client.call('one__echo', { text: 'hunter2hunter2' });
    await client.call('one__missing\u202e');
    const rows = () => events.flatMap(({ calls }) => calls);
    await until('three calls are there', () => rows().length === 3);
    const [large, small, missing] = rows();
    const own = { server: 'one', method: 'tools/call', name: 'one__echo', outcome: 'ok', client: 'test 1' };
    expect(small).toMatchObject({ ...own, serverMs: expect.any(Number), queueMs: expect.any(Number) });
    expect(missing?.name).toBe('one__missing\\u{202e}');
    const detail = (id?: number) => run(commands, 'call', { id }) as Promise<Message>;
    const { messages, command } = await detail(small?.id);
    expect(messages.map((each: Message) => [each.leg, each.direction])).toEqual([
      ['client', 'request'],
      ['server', 'request'],
      ['server', 'answer'],
      ['client', 'answer'],
    ]);
    const [asked, sent, answered, got] = messages.map(({ text }: Message) => JSON.parse(text));
    expect([asked.params.name, sent.params.name]).toEqual(['one__echo', 'echo']);
    expect([sent.id, asked.id]).toEqual([answered.id, got.id]);
    expect(JSON.stringify(messages)).not.toContain('hunter2');
    expect(command).toBe(`trunkline call one__echo '{"text":"[redacted]"}' --config /c/trunkline.yaml`);
    const [tooLarge] = (await detail(large?.id)).messages;
    expect(tooLarge).toMatchObject({ text: null, bytes: expect.any(Number) });
    expect(tooLarge.bytes).toBeGreaterThan(20_000);
    expect(await run(commands, 'failures', { server: 'one' })).toEqual({
      since: expect.any(Number),
      calls: [expect.objectContaining({ id: missing?.id, outcome: 'tool_error', reason: 'no tool missing\\u{202e}' })],
    });
    await close();
    expect(await detail(small?.id)).toBeNull();
  });

  it('numbers calls on after all pages were closed, and has a row for a call that began without a follower', async () => {
    const gateway = InProcessGateway.start({ servers: { one: lab } });
    await gateway.untilState('one', 'ready');
    const client = await gateway.connect();
    const commands = hubOf(gateway);
    const first = follow<{ calls: Call[] }>(commands, 'calls');
    await until('the calls are observed', () => first.events.length > 0);
    await client.call('one__echo');
    await until('the call is there', () => first.events.some(({ calls }) => calls.length > 0));
    await first.close();
    const page = follow<PageEvent>(commands, 'page');
    await until('the page is open', () => page.events.length > 0);
    const slow = client.call('one__wait', { delayMs: 60_000 });
    await until('the call is under way', () => gateway.status('one').inFlight === 1);
    const second = follow<{ calls: Call[]; left: object; since?: number }>(commands, 'calls');
    await until('the calls are observed again', () => second.events.length > 0);
    await client.call('one__die');
    await slow;
    const rows = () => second.events.flatMap(({ calls }) => calls);
    await until('both calls are there', () => rows().length === 2);
    expect(rows().map(({ name }) => name)).toContain('one__wait');
    expect(second.events.map(({ left }) => left)).toEqual(second.events.map(() => ({})));
    expect(second.events.filter(({ since }) => since !== undefined)).toEqual([second.events[0]]);
    const numbers = [...first.events, ...second.events].flatMap(({ calls }) => calls.map(({ id }) => id));
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    await second.close();
    await page.close();
  });

  it('F292: counts the calls of a flood for which it has no room, and loses none', async () => {
    const gateway = InProcessGateway.start({ servers: { one: lab } });
    await gateway.untilState('one', 'ready');
    const client = await gateway.connect();
    const { events, close } = follow<{ calls: Call[]; left: Record<string, number> }>(hubOf(gateway), 'calls');
    await until('the calls are observed', () => events.length > 0);
    await Promise.all(
      Array.from({ length: 700 }, (_, at) => client.call(at % 2 === 0 ? 'one__echo' : 'trunkline__status')),
    );
    const sent = () => events.flatMap(({ calls }) => calls).length;
    const left = () =>
      events.flatMap(({ left: counts }) => Object.values(counts)).reduce((sum, count) => sum + count, 0);
    await until('all are told', () => sent() + left() === 700);
    expect(left()).toBeGreaterThan(0);
    expect(Math.max(...events.map(({ calls }) => calls.length))).toBeLessThanOrEqual(200);
    await close();
  });
});

describe('the command `output`', () => {
  it('emits the starts and the last lines of a server and then each line, with its time, without colors and secrets', async () => {
    const code = `console.error('\\x1b[31mred\\x1b[0m hunter2hunter2'); process.stdin.on('data', () => {})`;
    const gateway = InProcessGateway.start({
      servers: { one: { command: 'node', args: ['-e', code, 'RUN'], sharing: 'all', ...SECRET } },
    });
    await until('the first line is there', () => gateway.status('one').log.length > 0);
    const { events, close } = follow<{ lines: OutputLine[]; isFirst: boolean }>(hubOf(gateway), 'output', {
      server: 'one',
    });
    const lines = () => events.flatMap(({ lines: some }) => some.map(({ text }) => text));
    await until('the last lines are there', () => lines().length > 0);
    expect(events).toEqual([expect.objectContaining({ isFirst: true, left: 0 })]);
    expect(lines()).toEqual(['started', 'red [redacted]']);
    gateway.composition.restart('one');
    await until('the output goes on', () => lines().filter((line) => line === 'red [redacted]').length >= 2);
    const all = events.flatMap(({ lines: some }) => some);
    const starts = all.filter(({ isStart }) => isStart).map(({ at }) => at);
    expect(starts).toHaveLength(2);
    expect(all.map(({ at }) => at)).toEqual(all.map(({ at }) => at).sort());
    expect(Date.now() - (starts[0] ?? 0)).toBeLessThan(3_600_000);
    await close();
  });
});

describe('the tools of a view', () => {
  it('are shown or hidden with the reason and the size of what clients get', async () => {
    const tools = { deny: ['die'], rename: { big: 'large' } };
    const gateway = InProcessGateway.start({ servers: { one: { ...lab, tools }, two: { ...lab, prefix: '' } } });
    await gateway.untilState('one', 'ready');
    await gateway.untilState('two', 'ready');
    const client = await gateway.connect();
    const listed = (await client.request('tools/list')).result.tools as readonly { readonly name: string }[];
    const report = (name: string) => {
      const view = new NamedViews({ views: [{ name, servers: ['one'], tools: { deny: ['one__wait'] } }], clients: [] });
      const named = name === '' ? undefined : view.of(name);
      const { gateway: own } = gateway.composition;
      const facts = { view: named, catalogs: own.catalogsIn(named), backends: own.pool.oldest };
      return reportView({ ...facts, clients: ['cursor'], redact: (text) => text.replace('verbatim', '[redacted]') });
    };
    const all = report('');
    const of = (view: typeof all, server: string, original: string) =>
      view.tools.find((each) => each.server === server && each.original === original);
    expect(of(all, 'one', 'big')).toMatchObject({ name: 'one__large', state: 'shown', because: '' });
    expect(of(all, 'one', 'die')).toMatchObject({
      state: 'denied',
      because: '`tools` in the configuration leaves it out',
      tokens: 0,
    });
    expect(of(all, 'one', '[redacted]')).toMatchObject({ name: 'one__[redacted]', state: 'shown' });
    const shown = all.tools.filter(({ state }) => state === 'shown');
    expect(shown.length).toBe(listed.length);
    const large = listed.find(({ name }) => name === 'one__large');
    expect(of(all, 'one', 'big')?.tokens).toBe(Math.ceil(JSON.stringify(large).length / 4));
    const few = report('few');
    expect(few).toMatchObject({ name: 'few', clients: ['cursor'] });
    expect(of(few, 'one', 'wait')).toMatchObject({ state: 'outside', because: 'the view few leaves it out' });
    expect(of(few, 'two', 'echo')).toMatchObject({ state: 'outside' });
    expect(of(few, 'trunkline', 'trunkline__status')).toMatchObject({ state: 'shown' });
    expect(few.tokens).toBeLessThan(all.tokens);
  });
});
