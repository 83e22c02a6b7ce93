import { describe, expect, it } from 'vitest';
import { createOwnTool, textResult } from '../../../src/gateway/routing/own-tool.js';
import { type ServerScript, scriptGateway } from '../../support/scripted-gateway.js';

const status = createOwnTool({ name: 'trunkline__status', inputSchema: { type: 'object' } }, () => textResult('fine'));

const SERVERS: Readonly<Record<string, ServerScript>> = {
  files: { tools: ['read_file', 'list_directory', 'search'] },
  notes: { tools: ['create_note', 'search', 'secret'], filter: { deny: ['secret'] } },
  bare: { tools: ['fetch'], prefix: '' },
};

async function world(servers = SERVERS) {
  const scripted = scriptGateway({ servers, ownTools: [status] });
  await scripted.startAll();
  const client = scripted.connect().greet();
  let id = 0;
  const messageFor = (name: string): string => {
    id += 1;
    client.call(id, name);
    return client.answerTo(id)?.error.message;
  };
  return { ...scripted, client, messageFor };
}

describe('the answer to a call of an unknown tool', () => {
  it.each([
    ['a single separator', 'files_read_file', '`files__read_file`'],
    ['a misspelled prefix', 'file__read_file', '`files__read_file`'],
    ['a misspelled prefix and name', 'fiels__list_directry', '`files__list_directory`'],
    ['a misspelled name without its prefix', 'create_nots', '`notes__create_note`'],
    ['an abbreviation', 'file__list_dir', '`files__list_directory`'],
    ["another client's prefix", 'mcp__read_file', '`files__read_file`'],
    ['a prefix that the tool does not have', 'bare__fetch', '`fetch`'],
    ["a misspelled name of one of Trunkline's own tools", 'trunkline__stats', '`trunkline__status`'],
  ])('suggests the tool that %s hides', async (_, name, suggested) => {
    const { messageFor } = await world();
    expect(messageFor(name)).toBe(`Unknown tool: ${name}. Did you mean ${suggested}?`);
  });

  it('suggests each server that has a tool of this name', async () => {
    const { messageFor } = await world();
    expect(messageFor('search')).toBe('Unknown tool: search. Did you mean `files__search` or `notes__search`?');
  });

  it('suggests of several servers that have it the one with a similar prefix', async () => {
    const { messageFor } = await world();
    expect(messageFor('note__search')).toBe('Unknown tool: note__search. Did you mean `notes__search`?');
    expect(messageFor('web__search')).toBe(
      'Unknown tool: web__search. Did you mean `files__search` or `notes__search`?',
    );
  });

  it('suggests nothing for a name like no other, and no denied tool', async () => {
    const { messageFor } = await world();
    expect(messageFor('deploy_the_rocket')).toBe('Unknown tool: deploy_the_rocket');
    expect(messageFor('secret')).toBe('Unknown tool: secret');
    expect(messageFor('notes__secret')).toBe('Unknown tool: notes__secret');
  });

  it('suggests the tool of a server that does not run, and says that it does not run', async () => {
    const { messageFor, server } = await world();
    server('files').crash('parked');
    expect(messageFor('read_file')).toBe(
      'Unknown tool: read_file. Did you mean `files__read_file`? Server "files" does not run now, so the call would fail; trunkline__status shows why',
    );
  });

  it('names a server with a similar prefix whose tools were never listed', async () => {
    const { files, ...others } = SERVERS;
    const { messageFor } = await world({ ...others, files: { ...files, isMisconfigured: true } });
    expect(messageFor('file__read_text')).toBe(
      'Unknown tool: file__read_text. Server "files" does not run now, so its tools are not listed; trunkline__status shows why',
    );
    expect(messageFor('deploy_the_rocket')).toBe('Unknown tool: deploy_the_rocket');
  });

  it('reaches no server', async () => {
    const { messageFor, server } = await world();
    messageFor('file__read_file');
    expect(Object.keys(SERVERS).flatMap((key) => server(key).child.calls)).toEqual([]);
  });

  it('escapes and cuts a hostile name', async () => {
    const { messageFor } = await world();
    expect(messageFor('files\u001b[2K__x\u202e')).toMatch(/^Unknown tool: files\\u\{1b\}\[2K__x\\u\{202e\}/);
    const long = messageFor('files__read_file'.repeat(100_000).replaceAll('__', '_'));
    expect(long).toHaveLength('Unknown tool: '.length + 101);
  });

  it('suggests prompts for a prompt', async () => {
    const lists = { 'prompts/list': { prompts: [{ name: 'summarize' }] } };
    const { client, startAll } = scriptGatewayWith(lists);
    await startAll();
    client.initialize();
    client.request(1, 'prompts/get', { name: 'summarise' });
    expect(client.answerTo(1)?.error.message).toBe('Unknown prompt: summarise. Did you mean `files__summarize`?');
  });
});

function scriptGatewayWith(lists: NonNullable<ServerScript['lists']>) {
  const hello = { capabilities: { tools: {}, prompts: {} } };
  const scripted = scriptGateway({ servers: { files: { hello, lists }, other: {} } });
  return { ...scripted, client: scripted.connect() };
}
