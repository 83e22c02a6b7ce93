import { describe, expect, it } from 'vitest';
import { createToolPolicy } from '../../src/gateway/catalog/tool-policy.js';
import { flush, type Message } from '../support/wire.js';
import { PAGES, seeing } from './seeing-one-server.js';

const CHANGED = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

/** A client of all servers that shares the process. */
function merged({ connect }: Pick<Awaited<ReturnType<typeof seeing>>, 'connect'>) {
  const client = connect().greet();
  return client;
}

describe('the lists of a server that all clients see unchanged', () => {
  it('are requested by the clients only, page by page with the cursors of the server', async () => {
    const { one, child } = await seeing();
    expect(child().asked('tools/list')).toEqual([]);
    one.request(1, 'tools/list');
    one.request(2, 'tools/list', { cursor: '1' });
    expect(
      child()
        .asked('tools/list')
        .map(({ params }) => params?.cursor),
    ).toEqual([undefined, '1']);
    expect([1, 2].map((id) => JSON.stringify(one.answerTo(id)?.result))).toEqual(PAGES);
  });

  it('stay unread when the server announces a change, which the clients hear', async () => {
    const { child, announcements } = await seeing();
    child().say(CHANGED);
    expect(announcements()).toEqual([CHANGED.method]);
    expect(child().asked('tools/list')).toEqual([]);
  });

  it('are read for the first client of all servers, which waits for them, and no other client is told', async () => {
    const world = await seeing();
    const { one, child, announcements, ids } = world;
    one.request(1, 'tools/list');
    child().listsTools = false;
    const other = merged(world);
    other.request(2, 'tools/list');
    expect([other.answerTo(2), ids()]).toEqual([undefined, ['a']]);
    child().reply('tools/list', { tools: [{ name: 'x', inputSchema: { type: 'object' } }] });
    await flush();
    expect(other.answerTo(2)?.result.tools.map(({ name }: Message) => name)).toEqual(['a__x']);
    expect(announcements()).toEqual([]);
    expect(child().asked('tools/list')).toHaveLength(2);
  });

  it('are read again and again from the first client of all servers on', async () => {
    const world = await seeing();
    const other = merged(world);
    await flush();
    world.child().say(CHANGED);
    world.clock.advance(250);
    await flush();
    other.session.close();
    world.a.crash();
    const next = await world.a.start();
    expect(next.asked('tools/list').map(({ params }) => params?.cursor)).toEqual([undefined, '1']);
  });

  it('are read at the start of the next process if the client of all servers came while none ran', async () => {
    const world = await seeing();
    world.a.crash();
    const other = merged(world);
    await world.a.start();
    other.request(1, 'tools/list');
    expect(other.answerTo(1)?.result.tools).toHaveLength(2);
  });

  it('do not keep a client of all servers waiting when the process ends while they are read', async () => {
    const world = await seeing();
    world.child().listsTools = false;
    const other = merged(world);
    other.request(1, 'tools/list');
    world.a.crash();
    await flush();
    expect(other.answerTo(1)?.result.tools).toEqual([]);
  });

  it('are read at the start if the configuration trusts the annotations of its tools', async () => {
    const { child } = await seeing({ isTrusted: true });
    expect(child().asked('tools/list')).toHaveLength(2);
  });

  it('are read when a new configuration trusts the annotations of its tools', async () => {
    const { a, child } = await seeing();
    a.backend.configure({ ...a.backend.rules, isTrusted: true });
    await flush();
    expect(child().asked('tools/list')).toHaveLength(2);
    expect(a.backend.listsAs('exposed').tools.entries).toHaveLength(2);
  });

  it('may be others after a restart, so clients that have read them are told to read them again', async () => {
    const { one, a, announcements } = await seeing();
    a.crash();
    await a.start();
    expect(announcements()).toEqual([]);
    one.request(1, 'tools/list');
    a.crash();
    await a.start();
    expect(announcements()).toEqual([CHANGED.method]);
  });

  it('may be shorter under a new configuration, so clients that have read them are told to read them again', async () => {
    const { one, a, announcements } = await seeing();
    one.request(1, 'tools/list');
    a.backend.configure({ ...a.backend.rules, policy: createToolPolicy({ deny: ['x'] }) });
    expect(announcements()).toEqual([CHANGED.method]);
  });
});
