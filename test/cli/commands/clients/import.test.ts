import { symlinkSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeVariables, serversFrom } from '../../../../src/cli/commands/clients/import.js';
import { folderWith } from '../../../config/files.js';

const ONE = JSON.stringify({ mcpServers: { one: { command: 'a' } } });

/** The places of the servers that are found, in a home folder with these files. */
async function placesFrom(files: Readonly<Record<string, string>>, from?: string) {
  const home = folderWith(files);
  const system = { platform: 'linux', home, cwd: home, env: {} } as const;
  const { servers, unreadable } = await serversFrom(from?.replace('~', home), system);
  expect(unreadable).toEqual([]);
  return servers.map(({ place: { client, scope, file }, variables }) => {
    return [client, scope, variables, relative(home, file).replaceAll(sep, '/')];
  });
}

describe('servers to import', () => {
  const files = { '.cursor/mcp.json': ONE, '.config/Claude/claude_desktop_config.json': ONE };

  it('come from all clients, or from one', async () => {
    expect(await placesFrom(files)).toHaveLength(2);
    expect(await placesFrom(files, 'cursor')).toEqual([['cursor', 'user', 'cursor', '.cursor/mcp.json']]);
    expect(await placesFrom(files, 'zed')).toEqual([]);
  });

  it('come once from a file that has two names, through a link or in letters of another case', async () => {
    const home = folderWith(files);
    symlinkSync('Claude', join(home, '.config/claude'), 'junction');
    const { servers } = await serversFrom('claude-desktop', { platform: 'linux', home, cwd: home, env: {} });
    expect(servers.map(({ place }) => relative(home, place.file))).toEqual([
      join('.config/Claude/claude_desktop_config.json'),
    ]);
  });

  it('come from a file, which says whose it is by its place or its name', async () => {
    expect(await placesFrom(files, '~/.cursor/mcp.json')).toEqual([['cursor', 'user', 'cursor', '.cursor/mcp.json']]);
    const other = {
      'old/claude_desktop_config.json': ONE,
      'app/.vscode/mcp.json': JSON.stringify({ servers: { one: { command: 'a' } } }),
      'app/.mcp.json': ONE,
      '1mcp.json': ONE,
    };
    const found = await Promise.all(Object.keys(other).map((name) => placesFrom(other, `~/${name}`)));
    expect(found.flat()).toEqual([
      ['claude-desktop', 'user', 'none', 'old/claude_desktop_config.json'],
      ['vscode', 'project', 'vscode', 'app/.vscode/mcp.json'],
      ['claude-code', 'project', 'claude-code', 'app/.mcp.json'],
      ['file', 'user', 'claude-code', '1mcp.json'],
    ]);
  });

  it.each([
    ['curser', 'there is no client `curser`, and no such file', 'did you mean `cursor`?'],
    ['./none.json', 'the file ./none.json cannot be read: it or its folder does not exist (ENOENT)', 'correct --from'],
    ['~/broken.json', expect.stringMatching(/cannot be imported: .+/), 'name a file with `mcpServers` or the like'],
  ])('from %s are reported as a mistake', async (from, message, hint) => {
    await expect(placesFrom({ 'broken.json': '{ canary' }, from)).rejects.toMatchObject({ message, hint });
  });
});

describe('what a person is told of the variables before a server is added', () => {
  it('is each value, but of secrets only that they are secrets', () => {
    const entry = {
      command: 'a',
      env: {
        MODE: 'fast',
        NODE_OPTIONS: './x.js',
        TOKEN: `\${ONE_TOKEN}`,
        STORED: `\${secret:NAME}`,
        MIXED: `a \${ONE_TOKEN:-canary}`,
        FROM_SHELL: `\${HOME}/x`,
        'OD\u202eD': '\u001b[31m',
        COUNT: 7,
      },
      headers: { 'X-Mode': 'fast', Authorization: `Bearer \${ONE_TOKEN}` },
    };
    expect(describeVariables(entry, { ONE_TOKEN: 'canary' })).toEqual([
      'it gets the variable MODE: fast',
      'it gets the variable NODE_OPTIONS: ./x.js',
      'it gets the variable TOKEN, whose value is a secret',
      'it gets the variable STORED, whose value is a secret',
      'it gets the variable MIXED, whose value is a secret',
      `it gets the variable FROM_SHELL: \${HOME}/x`,
      'it gets the variable OD\\u{202e}D: \\u{1b}[31m',
      'it gets the variable COUNT: 7',
      'it gets the header X-Mode: fast',
      'it gets the header Authorization, whose value is a secret',
    ]);
    expect(describeVariables({ url: 'https://a.test' }, {})).toEqual([]);
  });
});
