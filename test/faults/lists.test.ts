import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkEntry } from '../../src/mcp/entry-check.js';
import { listPage } from '../fixtures/servers/faulty/lists.mjs';
import { FakeClock } from '../support/fake-clock.js';
import { InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

async function listing(list: string, entry: Record<string, unknown> = {}) {
  const gateway = InProcessGateway.start({ servers: { f: { args: [`list=${list}`, 'heard=RUN/heard'], ...entry } } });
  const client = await gateway.connect();
  await gateway.untilState('f', 'ready');
  return { gateway, client };
}

describe('the tools of a server', () => {
  it('F27: may have the names of members that every JavaScript object has, and so may a server and an argument', async () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    const gateway = InProcessGateway.start({ servers: { constructor: { args: ['list=names'] } } });
    const client = await gateway.connect();
    await gateway.untilState('constructor', 'ready');
    const names = await client.listTools();
    expect(names).toContain('constructor__constructor');
    for (const tool of ['__proto__', 'constructor']) {
      const name = names.find((one) => one.startsWith(`constructor__${tool.slice(0, 7)}`)) ?? '';
      const args = JSON.parse('{"nonce":"n","__proto__":{"polluted":true},"constructor":{"prototype":1}}');
      expect(textOf(await client.call(name, args))).toBe('n');
    }
    expect((await client.call('toString')).code).toBe(-32602);
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('F39: are shown without the one of fifty that has no schema, and the status says why', async () => {
    const { gateway, client } = await listing('bad-among-50');
    const names = (await client.listTools()).filter((name) => name.startsWith('f__'));
    expect(names).toHaveLength(49);
    expect(gateway.status('f').tools.quarantined).toEqual([
      { name: 'unsound', reason: 'inputSchema is not a schema of type "object"' },
    ]);
  });

  it('F40: have names that differ, have at most 48 characters and are the same after a restart', async () => {
    const { gateway, client } = await listing('names');
    const names = (await client.listTools()).filter((name) => name.startsWith('f__'));
    expect(new Set(names).size).toBe(8);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,48}$/);
    expect(gateway.status('f').tools.quarantined).toHaveLength(1);
    process.kill(gateway.status('f').pid ?? 0, 'SIGKILL');
    await until('it is another process', () => gateway.status('f').generation === 2);
    await gateway.untilState('f', 'ready');
    expect((await client.listTools()).filter((name) => name.startsWith('f__'))).toEqual(names);
  });

  it.each([
    ['hostile', 1, 'f__answer', null],
    ['cursor-loop', 2, 'f__answer', 'the server sent the same cursor twice'],
    ['endless-pages', 100, 'f__tool_99', 'more than 100 pages'],
  ])('F41: are shown when their list is %s, and it is requested %i times at most', async (list, asked, tool, cut) => {
    const { gateway, client } = await listing(list);
    expect(await client.listTools()).toContain(tool);
    expect(gateway.status('f').tools.truncated).toBe(cut);
    expect(gateway.lines('heard').filter((method) => method === 'tools/list')).toHaveLength(asked);
  });

  it('F41: with hostile schemas cost less than 50 ms each; the status reports what is too large or too deep', async () => {
    const { gateway } = await listing('hostile');
    expect(gateway.status('f').tools.quarantined).toEqual([
      { name: 'self', reason: 'inputSchema refers to itself without end' },
      { name: 'deep', reason: 'inputSchema nests deeper than 32' },
      { name: 'large', reason: 'is larger than 1048576 bytes' },
    ]);
    const { tools } = JSON.parse(listPage({ name: 'hostile' }));
    for (const tool of tools) {
      const costs = [1, 2, 3].map(() => {
        const before = process.cpuUsage();
        checkEntry('tools', tool);
        const { user, system } = process.cpuUsage(before);
        return (user + system) / 1_000;
      });
      expect(Math.min(...costs)).toBeLessThan(50);
    }
  });
});

describe('a server that answers initialize and not tools/list', () => {
  const FAULT = 'tools/list: no network, says Bearer abcdefgh12345678';

  it('F59: is up, is called by name, and shows its tools as soon as it lists them', async () => {
    const gateway = InProcessGateway.start({ servers: { f: { args: ['fail=RUN/fail'], tools: { deny: ['exit'] } } } });
    writeFileSync(gateway.file('fail'), FAULT);
    const client = await gateway.connect();
    const { generation, restarts, tools, prompts } = await gateway.untilState('f', 'ready');
    expect([generation, restarts]).toEqual([1, 0]);
    expect(tools.failure).toBe(
      'tools/list: answered {"code":-32603,"message":"tools/list: no network, says Bearer [redacted]"}',
    );
    expect(prompts.failure).toBeNull();
    expect(textOf(await client.call('trunkline__status'))).toContain(`    list failed: ${tools.failure} (`);
    expect(gateway.log.join()).toContain('server runs, but tools/list fails');
    expect(await client.listTools()).toEqual(['trunkline__status']);
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
    expect(await client.call('f__exit')).toEqual({ code: -32602, message: 'Unknown tool: f__exit' });
    rmSync(gateway.file('fail'));
    const isTold = () => client.notifications('notifications/tools/list_changed').length > 0;
    await until('the client is told', isTold);
    expect(await client.listTools()).toContain('f__answer');
    expect(gateway.status('f')).toMatchObject({ state: 'ready', generation: 1, tools: { failure: null } });
  });

  it('F59: is up when the time for the list is over, even if the time for the start is shorter', async () => {
    const clock = new FakeClock();
    const entry = { args: ['ignore=tools/list', 'heard=RUN/heard'], startTimeout: '1s' };
    const gateway = InProcessGateway.start({ servers: { f: entry }, clock });
    const client = await gateway.connect();
    await until('it is asked for its tools', () => gateway.lines('heard').includes('tools/list'));
    clock.advance(29_999);
    expect(gateway.status('f').state).toBe('starting');
    clock.advance(1);
    await gateway.untilState('f', 'ready');
    expect(gateway.status('f')).toMatchObject({ generation: 1, tools: { failure: 'tools/list: timeout' } });
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
  });
});
