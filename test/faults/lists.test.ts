import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

async function listing(list: string, entry: Record<string, unknown> = {}) {
  const gateway = InProcessGateway.start({ servers: { f: { args: [`list=${list}`], ...entry } } });
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
});
