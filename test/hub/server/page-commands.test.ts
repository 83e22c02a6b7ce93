import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { NamedViews } from '../../../src/gateway/catalog/tool-policy.js';
import type { OutputLine, PageEvent } from '../../../src/hub/control.js';
import { HubLife } from '../../../src/hub/hub-life.js';
import type { ControlCommands } from '../../../src/hub/server/control-connection.js';
import type { HubClients } from '../../../src/hub/server/hub-clients.js';
import type { RunningHub } from '../../../src/hub/server/hub-commands.js';
import { pageCommands } from '../../../src/hub/server/page-commands.js';
import { reportView } from '../../../src/status/tool-report.js';
import { FakeClock } from '../../support/fake-clock.js';
import { LAB } from '../../support/gateway-process.js';
import { InProcessGateway } from '../../support/in-process-gateway.js';
import { IS_WINDOWS } from '../../support/platform.js';
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
    ...{ life: new HubLife(new FakeClock()), platform: { clock }, kind: 'hub', number: 4, startedAt: clock.now() },
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

/** Follows the command `page` until it is closed. */
function follow(commands: ControlCommands) {
  const closed = new AbortController();
  const events: PageEvent[] = [];
  const emit = (event: unknown) => events.push(event as PageEvent) > 0;
  const ended = commands.page?.({}, { emit, signal: closed.signal }) as Promise<unknown>;
  const close = async () => {
    closed.abort();
    await ended;
  };
  const calls = () => events.filter((event) => event.kind === 'calls');
  const rows = () => calls().flatMap((event) => event.calls);
  const states = () => events.filter((event) => event.kind === 'state');
  const histories = () => events.filter((event) => event.kind === 'history');
  const listeners = () => getEventListeners(closed.signal, 'abort').length;
  return { calls, rows, states, histories, listeners, close };
}

// The end of the gateway fails if a timer is left.
describe('the command `page`', () => {
  it('F293: emits the state at once and after a change, and leaves no timer and no subscription', async () => {
    const gateway = InProcessGateway.start({ servers: { one: { ...lab, ...SECRET } } });
    await gateway.untilState('one', 'ready');
    const { composition } = gateway;
    const client = await gateway.connect();
    await client.listTools();
    const { states, close } = follow(hubOf(gateway));
    const calls = () => states().flatMap(({ report }) => report?.servers[0]?.calls ?? []);
    const memory = () => states().flatMap(({ hub }) => hub.servers[0]?.memoryBytes ?? []);
    await until('the first state is there', () => calls().length === 1);
    // Windows tells no usage.
    if (!IS_WINDOWS) await until('the usage is there', () => memory().length > 0);
    await client.call('one__echo');
    await until('the call is counted', () => calls().includes(1));
    expect(composition.platform.events.wants('config.read')).toBe(true);
    await close();
    expect(composition.platform.events.wants('config.read')).toBe(false);
  });

  it('listens for the end of its connection as often after many changes as after one', async () => {
    const gateway = InProcessGateway.start({ servers: { one: lab } });
    await gateway.untilState('one', 'ready');
    const { states, listeners, close } = follow(hubOf(gateway));
    const change = async () => {
      const before = states().length;
      gateway.composition.platform.events.emit({ kind: 'config.read' });
      await until('the change is told', () => states().length > before);
    };
    await change();
    const counts = [listeners()];
    for (let times = 0; times < 2; times += 1) {
      await change();
      counts.push(listeners());
    }
    expect(counts).toEqual(counts.map(() => counts[0]));
    await close();
  });
});

it('a page that is opened gets the calls that the hub has counted before', async () => {
  const gateway = InProcessGateway.start({ servers: { one: lab, two: lab } });
  await gateway.untilState('one', 'ready');
  const commands = hubOf(gateway);
  const client = await gateway.connect();
  for (let times = 0; times < 3; times += 1) await client.call('one__echo');
  await client.call('trunkline__status');
  const { histories, close } = follow(commands);
  await until('the history is there', () => histories().length > 0);
  const sums = histories()[0]?.servers.map(({ server, calls }) => [server, calls.reduce((sum, each) => sum + each, 0)]);
  expect(sums).toEqual([
    ['one', 3],
    ['two', 0],
  ]);
  await close();
});

describe('the calls of the command `page`', () => {
  it('are emitted, and their messages on both legs are kept without secrets until the connection ends', async () => {
    const gateway = InProcessGateway.start({ servers: { one: { ...lab, ...SECRET } } });
    await gateway.untilState('one', 'ready');
    const client = await gateway.connect();
    const commands = hubOf(gateway);
    const { calls, rows, close } = follow(commands);
    await until('the calls are observed', () => calls().length > 0);
    await client.call('one__echo', { text: 'hunter2hunter2', big: 'x'.repeat(20_000) });
    await client.call('one__echo', { text: 'hunter2hunter2' });
    await client.call('one__missing\u202e');
    await until('three calls are there', () => rows().length === 3);
    const [large, small, missing] = rows();
    const own = { server: 'one', method: 'tools/call', name: 'one__echo', outcome: 'ok', client: 'test 1' };
    expect(small).toMatchObject({ ...own, serverMs: expect.any(Number), queueMs: expect.any(Number) });
    expect(missing).toMatchObject({
      name: 'one__missing\\u{202e}',
      outcome: 'tool_error',
      reason: 'no tool missing\\u{202e}',
    });
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
    const quoted = IS_WINDOWS ? '"{\\"text\\":\\"[redacted]\\"}"' : `'{"text":"[redacted]"}'`;
    expect(command).toBe(`trunkline call one__echo ${quoted} --config /c/trunkline.yaml`);
    const [tooLarge] = (await detail(large?.id)).messages;
    expect(tooLarge).toMatchObject({ text: null, bytes: expect.any(Number) });
    expect(tooLarge.bytes).toBeGreaterThan(20_000);
    await close();
    expect(await detail(small?.id)).toBeNull();
  });

  it('have numbers that go on after all pages were closed, also if they outlive them', async () => {
    const gateway = InProcessGateway.start({ servers: { one: lab } });
    await gateway.untilState('one', 'ready');
    const client = await gateway.connect();
    const commands = hubOf(gateway);
    const first = follow(commands);
    await until('the calls are observed', () => first.calls().length > 0);
    await client.call('one__echo');
    await until('the call is there', () => first.rows().length > 0);
    const slow = client.call('one__wait', { delayMs: 60_000 });
    await until('the call is under way', () => gateway.status('one').inFlight === 1);
    await first.close();
    const second = follow(commands);
    await until('the calls are observed again', () => second.calls().length > 0);
    await client.call('one__die');
    await slow;
    // Its observation outlived the first page, and its end is told to the second.
    await until('both calls are there', () => second.rows().length === 2);
    expect(second.calls().map(({ left }) => left)).toEqual(second.calls().map(() => ({})));
    expect(second.calls().filter(({ since }) => since !== undefined)).toEqual([second.calls()[0]]);
    const numbers = [...first.rows(), ...second.rows()].map(({ id }) => id);
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    await second.close();
  });

  it('F292: are counted in a flood for which there is no room, and none is lost', async () => {
    const gateway = InProcessGateway.start({ servers: { one: lab } });
    await gateway.untilState('one', 'ready');
    const client = await gateway.connect();
    const { calls, rows, close } = follow(hubOf(gateway));
    await until('the calls are observed', () => calls().length > 0);
    await Promise.all(
      Array.from({ length: 700 }, (_, at) => client.call(at % 2 === 0 ? 'one__echo' : 'trunkline__status')),
    );
    const left = () =>
      calls()
        .flatMap(({ left: counts }) => Object.values(counts))
        .reduce((sum, count) => sum + count, 0);
    await until('all are told', () => rows().length + left() === 700);
    expect(left()).toBeGreaterThan(0);
    expect(Math.max(...calls().map((event) => event.calls.length))).toBeLessThanOrEqual(200);
    await close();
  });
});

it('the command `output` has the starts and the last lines of a server, with their times, without colors and secrets', async () => {
  const code = `console.error('\\x1b[31mred\\x1b[0m hunter2hunter2'); process.stdin.on('data', () => {})`;
  const gateway = InProcessGateway.start({
    servers: { one: { command: 'node', args: ['-e', code, 'RUN'], sharing: 'all', ...SECRET } },
  });
  const commands = hubOf(gateway);
  const lines = async () => (await run(commands, 'output', { server: 'one' })) as readonly OutputLine[];
  const texts = async () => (await lines()).map(({ text }) => text);
  await expect.poll(texts).toEqual(['started', 'red [redacted]']);
  gateway.composition.restart('one');
  const all = ['started', 'red [redacted]', 'started', 'red [redacted]'];
  await expect.poll(texts).toEqual(all);
  const times = (await lines()).map(({ at }) => at);
  expect(times).toEqual(times.toSorted((one, other) => one - other));
  expect(Date.now() - (times[0] ?? 0)).toBeLessThan(3_600_000);
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
      const facts = { view: named, mode: 'auto' as const, catalogs: own.catalogsIn(named), backends: own.pool.oldest };
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
