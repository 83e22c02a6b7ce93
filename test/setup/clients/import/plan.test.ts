import { resolve } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import type { FoundServer } from '../../../../src/setup/clients/files/found-server.js';
import { type PlanOptions, planImport } from '../../../../src/setup/clients/import/plan.js';
import { describeRun, variablesOf } from '../../../../src/setup/clients/import/to-entry.js';
import { command, DESKTOP, found, NOWHERE } from './found.js';

const $ = '$';

function plan(servers: readonly FoundServer[], options: Partial<PlanOptions> = {}) {
  const values: Record<string, string> = {};
  const secrets = {
    envFile: 'trunkline.env',
    values,
    put: (name: string, value: string) => {
      values[name] = value;
      return name;
    },
  };
  const planned = planImport({
    found: servers,
    present: {},
    takesRemote: true,
    secrets,
    env: {},
    names: [],
    system: { platform: 'linux', home: '/home/ada' },
    readEnvFile: () => undefined,
    places: NOWHERE,
    isOurselves: (run) => run.kind === 'command' && run.command === 'trunkline',
    ...options,
  });
  return { planned, values };
}

const entriesOf = (servers: readonly FoundServer[], options?: Partial<PlanOptions>) =>
  plan(servers, options).planned.map(({ entry }) => entry);

const verdictsOf = (servers: readonly FoundServer[], options?: Partial<PlanOptions>) =>
  plan(servers, options).planned.map(({ verdict, key, because }) => [verdict, key, because]);

describe('a server of a client', () => {
  it('becomes an entry, with its secrets in the environment file', () => {
    const server = found(
      'github',
      command('npx -y @a/github@1.0.0 --read-only', { env: { TOKEN: 'canary', LEVEL: 'info' }, timeoutMs: 90_000 }),
      { deniedTools: ['delete'], allowedTools: ['read', 'delete'], isDisabled: true },
    );
    const { planned, values } = plan([server]);
    expect(planned[0]?.entry).toEqual({
      package: '@a/github@1.0.0',
      args: ['--read-only'],
      env: { TOKEN: `${$}{GITHUB_TOKEN}`, LEVEL: 'info' },
      envFile: 'trunkline.env',
      tools: { allow: ['read', 'delete'], deny: ['delete'] },
      timeout: '90s',
      disabled: true,
    });
    expect(values).toEqual({ GITHUB_TOKEN: 'canary' });
  });

  it('behind a URL keeps it, with its headers in the environment file', () => {
    const headers = { Authorization: 'Bearer canary', 'X-Toolset': 'all', Accept: 'text/event-stream' };
    const { planned, values } = plan([
      found('r', { kind: 'remote', url: 'https://host.test/sse', transport: 'sse', headers }),
    ]);
    expect(planned[0]?.entry).toEqual({
      url: 'https://host.test/sse',
      transport: 'sse',
      headers: { Authorization: `${$}{R_AUTHORIZATION}`, 'X-Toolset': 'all' },
      envFile: 'trunkline.env',
    });
    expect(planned[0]?.because).toBe('');
    expect(values).toEqual({ R_AUTHORIZATION: 'Bearer canary' });
  });

  it('behind a URL with a key in it has the URL in the environment file', () => {
    const run = { kind: 'remote', url: 'https://host.test/mcp?key=canary', transport: 'http', headers: {} } as const;
    const { planned, values } = plan([found('r', run)]);
    expect(planned[0]?.entry).toEqual({ url: `${$}{R_URL}`, envFile: 'trunkline.env' });
    expect(values).toEqual({ R_URL: 'https://host.test/mcp?key=canary' });
  });

  it('behind a URL that mcp-remote reaches does without mcp-remote', () => {
    const { planned, values } = plan([
      found(
        'a',
        command(`npx -y mcp-remote https://a.test/mcp 3334 --header Authorization:${$}{AUTH}`, {
          env: { AUTH: 'Bearer canary' },
        }),
      ),
      found('b', command('npx mcp-remote@0.1.0 https://b.test/sse --transport sse-only')),
      found('c', command(`npx mcp-remote https://c.test/mcp --header X-Key:${$}{KEY}`)),
    ]);
    expect(planned.map(({ entry }) => entry)).toEqual([
      { url: 'https://a.test/mcp', headers: { Authorization: `${$}{A_AUTHORIZATION}` }, envFile: 'trunkline.env' },
      { url: 'https://b.test/sse', transport: 'sse' },
      { url: 'https://c.test/mcp', headers: { 'X-Key': `${$}{KEY}` } },
    ]);
    expect(values).toEqual({ A_AUTHORIZATION: 'Bearer canary' });
    expect(planned.map(({ because }) => because)).toEqual([
      '',
      'if it needs a login, run `trunkline login` with its name',
      '',
    ]);
    expect(planned[2]?.unset).toEqual(['KEY']);
  });

  it.each([
    ['npx mcp-remote http://192.168.1.5/mcp --allow-http', {}],
    ['npx mcp-remote https://a.test/mcp --resource https://b.test', {}],
    ['npx mcp-remote https://a.test/mcp', { NODE_EXTRA_CA_CERTS: '/ca.pem' }],
  ])('keeps mcp-remote where Trunkline cannot do without it: %s %j', (line, env) => {
    expect(entriesOf([found('a', command(line, { env }))])).toMatchObject([{ package: 'mcp-remote' }]);
  });

  it.each([
    ['http://host.test/mcp', 'the URL is not encrypted, and its host is not this machine'],
    ['https://ada:canary@host.test/mcp', 'the URL has a user name or a password'],
  ])('behind the URL %s cannot be imported', (url, because) => {
    const run = { kind: 'remote', url, transport: 'http', headers: {} } as const;
    expect(verdictsOf([found('r', run)])).toEqual([['cannot', undefined, because]]);
  });

  it('behind a URL cannot be imported into a configuration with `mcpServers`', () => {
    const run = { kind: 'remote', url: 'https://a.test/mcp', transport: 'http', headers: {} } as const;
    expect(verdictsOf([found('r', run)], { takesRemote: false })).toEqual([
      ['cannot', undefined, expect.stringContaining('used below `servers:` only')],
    ]);
  });

  it('of a project runs in its folder if it names relative paths', () => {
    const place = { ...DESKTOP, scope: 'project', file: '/code/app/.cursor/mcp.json' } as const;
    const local = { ...DESKTOP, scope: 'local', path: ['projects', '/code/other', 'mcpServers'] } as const;
    expect(
      entriesOf([
        found('a', command('node server.js'), { place }),
        found('b', command('./bin/b'), { place: local }),
        found('c', command('uvx c'), { place }),
        found('d', command('node x', { cwd: 'sub' }), { place }),
      ]),
    ).toEqual([
      { command: 'node', args: ['server.js'], cwd: resolve('/code/app') },
      { command: resolve('/code/other/bin/b'), cwd: resolve('/code/other') },
      { command: 'uvx', args: ['c'] },
      { command: 'node', args: ['x'], cwd: resolve('/code/app/sub') },
    ]);
  });

  it('takes the variables of its own environment file with it', () => {
    const server = found('a', command('x', { envFile: '/e', env: { B: '2' } }));
    const { planned, values } = plan([server], { readEnvFile: () => ({ A_TOKEN: 'canary', B: '1' }) });
    expect(planned[0]?.entry).toMatchObject({ env: { A_TOKEN: `${$}{A_TOKEN}`, B: '2' } });
    expect(values).toEqual({ A_TOKEN: 'canary' });
    expect(verdictsOf([server])).toEqual([['cannot', undefined, 'its environment file cannot be read']]);
  });

  it('says which variables are still to be set', () => {
    const server = found('a', command(`x ${$}{SET} ${$}{input:my-key} ${$}{Z:-z}`), { variables: 'vscode' });
    expect(plan([server], { env: { SET: '1' } }).planned[0]).toMatchObject({ verdict: 'cannot' });
    const other = found('a', command(`x ${$}{env:SET} ${$}{input:my-key}`), { variables: 'vscode' });
    expect(plan([other], { env: { SET: '1' } }).planned[0]?.unset).toEqual(['MY_KEY']);
  });
});

describe('the name of a server', () => {
  it('is made a valid key, and kept in a comment', () => {
    const names = [
      'Deep Wiki (remote)',
      'über',
      'con',
      '日本',
      'a-name-that-is-much-too-long-for-a-key',
      'trunkline',
      'ok_1',
    ];
    const { planned } = plan(names.map((name, at) => found(name, command(`run${at}`))));
    expect(planned.map(({ key }) => key)).toEqual([
      ...['Deep-Wiki-remote', 'ber', 'con-server', 'server', 'a-name-that-is-much-too', 'trunkline-server', 'ok_1'],
    ]);
    expect(planned[0]?.comment).toBe('"Deep Wiki (remote)" in Claude Desktop');
    expect(planned.at(-1)).not.toHaveProperty('comment');
  });

  it('gets a number if it is taken, also by another case', () => {
    const present = { files: { command: 'other' } };
    expect(verdictsOf([found('Files', command('a')), found('files', command('b'))], { present })).toEqual([
      ['renamed', 'Files-2', 'the name Files is taken'],
      ['renamed', 'files-3', 'the name files is taken'],
    ]);
  });
});

describe('a server that is there already', () => {
  it('is the same whatever its name, its version and the notation of its variables are', () => {
    const present = {
      gh: { package: 'gh@2', env: { TOKEN: `${$}{GH}` } },
      r: { package: 'mcp-remote', args: ['https://a.test/mcp'] },
      u: { url: `https://${$}{HOST}/mcp`, headers: { authorization: `${$}{GH}` } },
    };
    const servers = [
      found('github', command('npx -y gh@1.0.0', { env: { TOKEN: 'canary' } })),
      found('remote', { kind: 'remote', url: 'https://a.test/mcp', transport: 'http', headers: {} }),
      found('direct', {
        kind: 'remote',
        url: 'https://u.test/mcp/',
        transport: 'sse',
        headers: { Authorization: 'canary' },
      }),
      found('work', command('npx -y gh', { env: { TOKEN: 'other' } })),
      found('again', command('cmd /c npx gh', { env: { TOKEN: 'other' } })),
    ];
    expect(verdictsOf(servers, { present, env: { GH: 'canary', HOST: 'u.test' } })).toEqual([
      ['same', 'gh', 'same as gh'],
      ['same', 'r', 'same as r'],
      ['same', 'u', 'same as u'],
      ['new', 'work', ''],
      ['same', 'work', 'same as work'],
    ]);
  });

  it('is enabled if one client has it enabled', () => {
    const servers = [found('a', command('x'), { isDisabled: true }), found('b', command('x'))];
    expect(entriesOf(servers)).toEqual([{ command: 'x' }, undefined]);
  });

  it('differs from one with the same relative path in another project', () => {
    const place = (folder: string) => ({ ...DESKTOP, scope: 'project', file: `/${folder}/.mcp.json` }) as const;
    const servers = ['one', 'two'].map((folder) => found('s', command('node s.js'), { place: place(folder) }));
    expect(verdictsOf(servers).map(([verdict]) => verdict)).toEqual(['new', 'renamed']);
  });
});

describe('servers that are left out', () => {
  it('are Trunkline itself and other gateways, which are taken only by name', () => {
    const servers = [found('t', command('trunkline')), found('hub', command('npx -y @1mcp/agent serve'))];
    expect(verdictsOf(servers)).toEqual([
      ['skipped', undefined, 'it is Trunkline itself'],
      ['skipped', undefined, 'it is another gateway, 1mcp; import its own file with --from FILE'],
    ]);
    expect(verdictsOf(servers, { names: ['hub'] })).toEqual([['new', 'hub', '']]);
  });

  it('are those that only their client can run', () => {
    const server = found('a', command(`x ${$}{command:pick}`), { variables: 'vscode' });
    expect(verdictsOf([server])[0]?.[0]).toBe('cannot');
  });
});

test('the description of a server has no secrets', () => {
  const shown = (run: FoundServer['run']) =>
    `${describeRun(run, plan([found('a', run)]).planned[0]?.run)} ${variablesOf(run)}`;
  const headers = { Authorization: 'canary' };
  const runs: FoundServer['run'][] = [
    { kind: 'remote', url: 'https://ada:canary@h.test/a?k=canary#canary', transport: 'http', headers },
    { kind: 'remote', url: 'https://h.test/s/canary0123456789ABCDEF0123456789/mcp', transport: 'http', headers: {} },
    command('npx mcp-remote https://h.test/a?key=canary'),
    command('node canary0123456789ABCDEF0123456789', { env: { KEY: 'canary' } }),
    command('npx -y pkg@1.2.3 --token canary'),
    { kind: 'command', command: 'sh -c canary=1', args: [], env: {} },
  ];
  expect(runs.map(shown)).toEqual([
    'https://h.test/a Authorization',
    'https://h.test/s/…/mcp ',
    'https://h.test/a ',
    'node KEY',
    'pkg@1.2.3 ',
    'sh … ',
  ]);
});
