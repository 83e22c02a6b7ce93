import { describe, expect, it } from 'vitest';
import { NamedViews } from '../../../src/gateway/catalog/tool-policy.js';
import { reportView } from '../../../src/gateway/status/tool-report.js';
import type { PageEvent } from '../../../src/hub/control.js';
import { HubLife } from '../../../src/hub/hub-life.js';
import type { HubClients } from '../../../src/hub/server/hub-clients.js';
import type { RunningHub } from '../../../src/hub/server/hub-commands.js';
import { pageCommands } from '../../../src/hub/server/page-commands.js';
import { FakeClock } from '../../support/fake-clock.js';
import { LAB } from '../../support/gateway-process.js';
import { InProcessGateway } from '../../support/in-process-gateway.js';
import { until } from '../../support/processes.js';

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

/** Follows a command until it is closed. */
function follow(gateway: InProcessGateway, command: string) {
  const closed = new AbortController();
  const events: unknown[] = [];
  const emit = (event: unknown) => events.push(event) > 0;
  const ended = hubOf(gateway)[command]?.({}, { emit, signal: closed.signal }) as Promise<unknown>;
  const close = async () => {
    closed.abort();
    await ended;
  };
  return { events: events as PageEvent[], close };
}

// The end of the gateway fails if a timer is left.
describe('the command `page`', () => {
  it('emits the state at once and after a change, and leaves no timer and no subscription', async () => {
    const gateway = InProcessGateway.start({ servers: { one: lab } });
    await gateway.untilState('one', 'ready');
    const { composition } = gateway;
    const client = await gateway.connect();
    await client.listTools();
    const { events, close } = follow(gateway, 'page');
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
    expect(of(all, 'one', 'die')).toMatchObject({ state: 'denied', because: 'the configuration denies it', tokens: 0 });
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
