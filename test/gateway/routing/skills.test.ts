import { describe, expect, it } from 'vitest';
import type { VisibleBackends } from '../../../src/gateway/routing/own-tool.js';
import { createOwnTool, type OwnTool, textResult } from '../../../src/gateway/routing/own-tool.js';
import { type ScriptedClient, type ServerScript, startGateway } from '../../support/scripted-gateway.js';
import { flush, type Message } from '../../support/wire.js';

const EXTENSION = 'io.modelcontextprotocol/skills';

function skillOf(path: string, members: Message = {}): Message {
  const uri = `skill://${path}/SKILL.md`;
  return { uri, frontmatter: { name: path.split('/').at(-1), description: '' }, resources: 'dynamic', ...members };
}

/** A server that lists these skills on one page. */
function serving(skills: readonly Message[] | Message, settings: Message = {}): ServerScript {
  return {
    hello: { capabilities: { tools: {}, resources: {}, extensions: { [EXTENSION]: settings } } },
    lists: {
      'resources/list': { resources: [] },
      // Servers with the official SDK have such a template.
      'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'skill://{+path}', name: 'skills' }] },
      'skills/list': Array.isArray(skills) ? { skills } : (skills as Message),
    },
  };
}

async function starting(servers: Readonly<Record<string, ServerScript>>, ownTools: readonly OwnTool[] = []) {
  const world = await startGateway({ servers, ownTools });
  const client = world.connect().greet();
  const list = async (from: ScriptedClient = client) => {
    from.request('list', 'skills/list', {});
    await flush();
    const [answer] = from.received.take();
    return answer ?? {};
  };
  return { ...world, client, list };
}

describe('the list of skills', () => {
  it('has the skills of all servers that declare some, in their order, byte for byte', async () => {
    const { list, server, client } = await starting({
      b: serving([skillOf('two', { n: 1e21 }), skillOf('three')]),
      plain: {},
      a: serving([skillOf('one')]),
    });
    const { result } = await list();
    expect(result).toEqual({ skills: [skillOf('two', { n: 1e21 }), skillOf('three'), skillOf('one')] });
    expect(server('plain').child.asked('skills/list')).toEqual([]);
    client.request('odd', 'skills/list', { cursor: 'odd' });
    await flush();
    expect(client.answerTo('odd')?.error.code).toBe(-32602);
  });

  it('F169: has the skills of the other servers when one fails', async () => {
    const { list } = await starting({ a: serving({ code: -32000, message: 'no' }), b: serving([skillOf('one')]) });
    expect((await list()).result).toEqual({ skills: [skillOf('one')] });
  });

  it('has the first of two skills with the same URI, and the status tells about the other', async () => {
    const seen: VisibleBackends['shadowedSkills'][] = [];
    const look = createOwnTool({ name: 'trunkline__look', inputSchema: { type: 'object' } }, (_, visible) => {
      seen.push(visible.shadowedSkills);
      return textResult('');
    });
    const servers = { a: serving([skillOf('x', { of: 'a' })]), b: serving([skillOf('x', { of: 'b' })]) };
    const { list, client } = await starting(servers, [look]);
    expect((await list()).result.skills).toEqual([skillOf('x', { of: 'a' })]);
    client.call('look', 'trunkline__look');
    expect(seen).toEqual([[{ key: 'b', exposed: 'skill://x/SKILL.md', owner: 'a' }]]);
  });

  it('says how long it may be kept to a client without a handshake', async () => {
    const { connect } = await starting({ a: serving([skillOf('one')]) });
    const client = connect();
    client.modernRequest('list', 'skills/list');
    await flush();
    expect(client.answerTo('list')?.result).toMatchObject({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      skills: [skillOf('one')],
    });
  });

  it('goes to the server that the configuration names, if none declares the extension', async () => {
    const { client, server } = await starting({ a: {}, b: { methods: ['skills/list'] } });
    client.request('list', 'skills/list', {});
    expect(server('b').child.asked('skills/list')).toHaveLength(1);
  });
});

describe('a skill', () => {
  const servers = () => ({
    a: serving([skillOf('mine'), skillOf('outer')], { directoryRead: true }),
    b: serving([skillOf('yours'), skillOf('outer/inner')], { directoryRead: true }),
    c: serving([]),
  });

  it.each([
    ['skills/get', 'skill://yours/SKILL.md', 'b'],
    ['resources/directory/read', 'skill://yours', 'b'],
    ['resources/directory/read', 'skill://mine/examples', 'a'],
    ['resources/read', 'skill://yours/examples/one.md', 'b'],
    ['resources/read', 'skill://outer/inner/SKILL.md', 'b'],
    ['resources/read', 'skill://outer/other.md', 'a'],
  ])('that is listed is read from its server: %s %s', async (method, uri, key) => {
    const { list, client, server } = await starting(servers());
    await list();
    client.request('read', method, { uri });
    expect(['a', 'b', 'c'].filter((each) => server(each).child.asked(method).length > 0)).toEqual([key]);
    expect(server(key).child.asked(method)[0]?.params).toEqual({ uri });
    const result = { anything: uri };
    server(key).child.reply(method, { ...result, contents: [{}] });
    await flush();
    expect(client.answerTo('read')?.result).toMatchObject(result);
  });

  it('that is not listed is asked for in order, and from then on where it was found', async () => {
    const { client, server } = await starting(servers());
    const get = (id: string) => client.request(id, 'skills/get', { uri: 'skill://hidden/SKILL.md' });
    get('first');
    server('a').child.reply('skills/get', { code: -32602, message: 'no' });
    server('b').child.reply('skills/get', { skill: skillOf('hidden') });
    await flush();
    expect(client.answerTo('first')?.result).toEqual({ skill: skillOf('hidden') });
    get('second');
    expect(['a', 'b', 'c'].map((key) => server(key).child.asked('skills/get').length)).toEqual([1, 2, 0]);
    client.request('read', 'resources/read', { uri: 'skill://hidden/examples/one.md' });
    expect(['a', 'b', 'c'].map((key) => server(key).child.asked('resources/read').length)).toEqual([0, 1, 0]);
  });

  it('that no server has is an invalid parameter', async () => {
    const { client, server } = await starting(servers());
    client.request('get', 'skills/get', { uri: 'skill://none/SKILL.md' });
    for (const key of ['a', 'b', 'c']) server(key).child.reply('skills/get', { code: -32602, message: 'no' });
    expect(client.answerTo('get')?.error).toMatchObject({ code: -32602, data: { uri: 'skill://none/SKILL.md' } });
    client.request('odd', 'skills/get', { uri: 5 });
    expect(client.answerTo('odd')?.error.code).toBe(-32602);
  });

  it('has folders only where its server reads them', async () => {
    const { client, server } = await starting(servers());
    client.request('read', 'resources/directory/read', { uri: 'skill://none' });
    for (const key of ['a', 'b']) {
      server(key).child.reply('resources/directory/read', { code: -32602, message: 'no' });
    }
    expect(client.answerTo('read')?.error.code).toBe(-32602);
    expect(server('c').child.asked('resources/directory/read')).toEqual([]);
  });
});
