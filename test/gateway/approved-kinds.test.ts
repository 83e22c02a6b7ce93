import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApprovalFile, ServerApprovals } from '../../src/state/approvals.js';
import { folderWith } from '../config/files.js';
import { type ServerScript, scriptGateway, toolOf } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

/** What a server offers. With `is`, each entry and text is another one; with `more`, there is a further one of each. */
function offer(is: string, more: readonly string[] = []): ServerScript {
  const names = ['a', ...more];
  const described = (name: string, members: Message) => ({ ...members, name, description: is });
  return {
    tools: names.map((name) => toolOf(name, { _meta: { is } })),
    hello: {
      capabilities: { tools: {}, prompts: {}, resources: {} },
      instructions: `Obey ${is}.`,
      serverInfo: { name: 's', version: '1' },
    },
    lists: {
      'prompts/list': { prompts: names.map((name) => described(name, {})) },
      'resources/list': { resources: names.map((name) => described(name, { uri: `r:${name}` })) },
      'resources/templates/list': {
        resourceTemplates: names.map((name) => described(name, { uriTemplate: `t:${name}/{x}` })),
      },
    },
  };
}

/** A gateway of one run, with the approvals in this file. */
async function run(file: string, script: ServerScript) {
  const approvals = new ServerApprovals({
    file: new ApprovalFile(file),
    command: 'trunkline approve s',
    trustsFirstUse: true,
    onFirstUse: () => {},
    onFault: () => {},
    onWithheld: () => {},
  });
  const world = scriptGateway({ servers: { s: { ...script, approvals, sharing: 'profile' } } });
  const [merged, alone] = [world.connect(), world.connect({ server: 's' })];
  alone.request('hello', 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 't', version: '0' },
  });
  merged.initialize();
  await world.startAll();
  await flush();
  const lists = async (client: typeof merged) => {
    const methods = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
    for (const method of methods) client.request(method, method);
    await flush();
    return methods.map((method) => (Object.values(client.answerTo(method)?.result)[0] as Message[]).length);
  };
  const instructions = () => world.connect().initialize().result.instructions as string;
  const { child } = world.server('s');
  return { ...world, approvals, merged, alone, lists, instructions, child };
}

describe('what a server with required approval offers', () => {
  it('is approved as a whole in the run of its first use, and listed again in later runs', async () => {
    const file = join(folderWith(), 'a.json');
    for (const _ of ['first', 'second']) {
      const { lists, merged, alone, instructions } = await run(file, offer('1'));
      expect(await lists(merged)).toEqual([1, 1, 1, 1]);
      expect(await lists(alone)).toEqual([1, 1, 1, 1]);
      expect(instructions()).toContain('Obey 1.');
    }
  });

  it.each([
    ['new', offer('1', ['b']), [1, 1, 1, 1], true],
    ['changed', offer('2'), [0, 0, 0, 0], false],
  ])(
    'is withheld if it is %s: tools, prompts, resources, templates and instructions',
    async (_, script, left, isSame) => {
      const file = join(folderWith(), 'a.json');
      await run(file, offer('1'));
      const { lists, merged, alone, instructions, approvals } = await run(file, script);
      expect(await lists(merged)).toEqual(left);
      expect(await lists(alone)).toEqual(left);
      expect(instructions().includes('Obey')).toBe(isSame);
      expect(alone.answerTo('hello')?.result.instructions).toBe(isSame ? 'Obey 1.' : undefined);
      approvals.approve(approvals.withheld);
      expect(approvals.withheld).toEqual([]);
      const next = await run(file, script);
      expect(await next.lists(next.merged)).toEqual(left.map((count) => count + 1));
      expect(next.instructions()).toContain('Obey');
    },
  );

  it('cannot be used while it is withheld, by any name and at any endpoint, but unlisted resources can', async () => {
    const file = join(folderWith(), 'a.json');
    await run(file, offer('1'));
    const { merged, alone, child } = await run(file, offer('1', ['b']));
    const asked = [
      ['tools/call', { name: 'b' }],
      ['prompts/get', { name: 'b' }],
      ['prompts/get', { name: 'unlisted' }],
      ['resources/read', { uri: 'r:b' }],
    ] as const;
    for (const [method, params] of asked) {
      alone.request(`alone ${method} ${JSON.stringify(params)}`, method, params);
      const name = 'name' in params ? { name: `s__${params.name}` } : params;
      merged.request(`merged ${method} ${JSON.stringify(params)}`, method, name);
    }
    await flush();
    expect(asked.flatMap(([method]) => child.asked(method))).toEqual([]);
    for (const client of [alone, merged])
      expect(JSON.stringify(client.received.messages)).toContain('trunkline approve s');
    alone.request('free', 'resources/read', { uri: 'r:unlisted' });
    alone.request('known', 'prompts/get', { name: 'a' });
    await flush();
    expect([child.asked('resources/read'), child.asked('prompts/get')].map(({ length }) => length)).toEqual([1, 1]);
  });
});
