import { mkdirSync, symlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SERVER_SETTINGS, settingsOf } from '../../../src/config/schema/settings.js';
import type { ProgramServer } from '../../support/load-config.js';
import { loadConfig } from '../../support/load-config.js';
import { folderWith } from '../files.js';
import { load, loadServer } from '../loading.js';

describe('a server of the file', () => {
  test('has everything settled, by the built-in defaults when the file says nothing', () => {
    const config = load('servers:\n  own: { command: node }\n');
    expect(config.servers).toStrictEqual([
      {
        key: 'own',
        prefix: 'own',
        methods: [],
        passHeaders: [],
        spec: {
          key: 'own',
          command: 'node',
          label: 'node',
          args: [],
          cwd: dirname(config.file),
          env: {},
          timeouts: { startMs: 60_000, stopGraceMs: 2000, killAfterMs: 3000 },
          restart: {
            firstDelayMs: 500,
            maxDelayMs: 30_000,
            budget: 5,
            stableAfterMs: 300_000,
            parkedProbeMs: 300_000,
            parkedProbeMaxMs: 3_600_000,
            demandEveryMs: 60_000,
          },
          leaveRunning: false,
        },
        tools: { deny: [] },
        variables: [],
        references: {},
        ...settingsOf(SERVER_SETTINGS),
      },
    ]);
    expect(config.warnings).toStrictEqual([]);
  });

  test('prefers its own settings to `defaults`, and those to the built-in ones, also within `restart`', () => {
    const { spec, ...server } = loadServer(`
defaults: { timeout: 10s, concurrency: 2, restart: { budget: 9, firstDelay: 1s } }
servers:
  own: { command: node, timeout: 20s, restart: { budget: 3 } }
`);
    expect(server).toMatchObject({ timeoutMs: 20_000, concurrency: 2, maxQueued: 64 });
    expect(spec?.restart).toMatchObject({ budget: 3, firstDelayMs: 1000, maxDelayMs: 30_000 });
  });

  test('has no resource limits by default, and merges those that are set', () => {
    const limited = 'defaults: { limits: { memory: 1GiB, processes: 64 } }\n';
    const entry = 'servers: { own: { command: node, limits: { memory: 512MiB } } }\n';
    expect(loadServer('servers: { own: { command: node } }\n').limits).toStrictEqual({});
    expect(loadServer(entry).limits).toStrictEqual({ memoryBytes: 512 * 1024 ** 2 });
    expect(loadServer(`${limited}${entry}`).limits).toStrictEqual({ memoryBytes: 512 * 1024 ** 2, processes: 64 });
  });

  test('tells what variables it refers to, so that they can be redacted, and how its command is written', () => {
    const { references, spec } = loadServer(
      `servers:\n  own: { command: "\${BIN}/run --key \${KEY}", args: ["$\${NOT}", "\${KEY}"], env: { A: "\${OTHER:-x}" } }\n`,
      { env: { BIN: '/opt/bin', KEY: 'hunter2' } },
    );
    expect(references).toEqual({ BIN: '/opt/bin', KEY: 'hunter2' });
    expect(spec?.label).toBe(`\${BIN}/run …`);
  });

  test('may switch its prefix off and filter its tools', () => {
    const server = loadServer('servers:\n  own: { command: x, prefix: "", tools: { allow: [], deny: ["write_*"] } }\n');
    expect(server).toMatchObject({ prefix: '', tools: { allow: [], deny: ['write_*'] } });
  });

  test('that runs on one gateway only is for all clients, and cannot have variables of users', () => {
    const { sharing, spec } = loadServer(
      'defaults: { sharing: user }\nservers:\n  own: { command: x, placement: one }\n',
    );
    expect([sharing, spec?.soleKey]).toEqual(['all', 'own']);
    const { spec: none, problem } = loadServer(
      `servers:\n  own: { command: x, placement: one, env: { TOKEN: "\${user:TOKEN:-none}" } }\n`,
    );
    expect([none, problem?.message]).toEqual([undefined, expect.stringContaining('runs once for all users')]);
  });

  test('is left out when disabled, whatever it would need', () => {
    const config = load(
      `servers:\n  off: { command: "\${NO}", disabled: true }\n  on: { command: x, disabled: false }\n`,
    );
    expect(config.servers.map(({ key }) => key)).toStrictEqual(['on']);
  });

  test('given as a package runs its program with our Node', () => {
    const { spec } = loadServer(
      'servers:\n  own: { package: tool, args: [--fast] }\n',
      { nodePath: '/opt/node' },
      { 'node_modules/tool/package.json': '{"bin":"run.js"}', 'node_modules/tool/run.js': '' },
    );
    expect(spec).toMatchObject({
      command: '/opt/node',
      args: [expect.stringContaining(join('node_modules', 'tool', 'run.js')), '--fast'],
    });
  });

  test('keeps its place in the file, and shares settings by an alias', () => {
    const { servers } = load(
      'servers:\n  constructor: { command: x, env: &shared { A: b } }\n  a: { command: x, env: *shared }\n',
    );
    expect(servers.map(({ key, spec }) => [key, spec?.env])).toStrictEqual([
      ['constructor', { A: 'b' }],
      ['a', { A: 'b' }],
    ]);
  });
});

describe('paths', () => {
  test('a relative cwd and a command with a leading dot are relative to the file, a bare command is not', () => {
    const files = { 'sub/x': '' };
    const config = load(
      'servers:\n  a: { command: ./run.sh, cwd: sub }\n  b: { command: ../run.sh }\n  c: { command: run.sh }\n',
      {},
      files,
    );
    const folder = dirname(config.file);
    expect(config.servers.map(({ spec }) => [spec?.command, spec?.cwd])).toStrictEqual([
      [join(folder, 'run.sh'), join(folder, 'sub')],
      [join(dirname(folder), 'run.sh'), folder],
      ['run.sh', folder],
    ]);
  });

  test('a leading ~/ is the home folder, a ~ elsewhere is not', () => {
    const home = dirname(load('servers: { a: { command: x } }', {}, { 'sub/x': '' }).file);
    const { spec } = loadServer('servers:\n  a: { command: ~/bin/run, cwd: ~/sub, args: [~/x] }\n', {
      env: { HOME: home },
    });
    expect(spec).toMatchObject({ command: join(home, 'bin/run'), cwd: join(home, 'sub'), args: ['~/x'] });
    expect(loadServer('servers: { a: { command: ~run } }').spec?.command).toBe('~run');
  });
});

describe('variables', () => {
  test('expand in args, env, cwd, command and package, and nowhere else', () => {
    const files = { 'sub/x': '', 'node_modules/tool/package.json': '{"bin":"run.js"}', 'node_modules/tool/run.js': '' };
    const literal = `\${A}`;
    const { servers } = load(
      `servers:
  a: { command: "\${A}", args: ["--\${A}"], env: { KEY: "<\${A}>", "\${A}": x }, cwd: "\${SUB}", tools: { deny: ["\${A}"] } }
  b: { package: "\${TOOL}" }
`,
      { env: { A: 'one', SUB: 'sub', TOOL: 'tool' } },
      files,
    );
    expect(servers[0]).toMatchObject({
      spec: {
        command: 'one',
        args: ['--one'],
        env: { KEY: '<one>', [literal]: 'x' },
        cwd: expect.stringMatching(/sub$/),
      },
      tools: { deny: [literal] },
    });
    expect(servers[1]?.spec?.args).toStrictEqual([expect.stringMatching(/run\.js$/)]);
  });

  test('one that is not set stops only the server that needs it', () => {
    const { servers } = load(`servers:\n  a:\n    command: x\n    env:\n      KEY: "\${TOKEN}"\n  b: { command: x }\n`);
    expect(servers[0]).toMatchObject({
      spec: undefined,
      problem: {
        message: 'servers.a.env.KEY: the environment variable TOKEN is not set',
        hint: expect.stringContaining('set TOKEN'),
        line: 5,
        column: 12,
      },
    });
    expect(servers[1]).toMatchObject({ spec: { command: 'x' } });
    expect(servers[1]).not.toHaveProperty('problem');
  });
});

describe('the variables of `defaults.env`', () => {
  const TEXT = `
defaults:
  env: { HTTPS_PROXY: "http://\${USER}:\${PROXY_PASSWORD}@proxy", LEVEL: info }
servers:
  a: { command: x }
  b: { command: x, env: { LEVEL: debug, OWN: "1" } }
  c: { package: tool, env: { LEVEL: debug, OWN: "1" } }
`;
  const env = { USER: 'ada', PROXY_PASSWORD: 'hunter22' };
  const HTTPS_PROXY = 'http://ada:hunter22@proxy';

  test('reach every server, which can override them, and npm', () => {
    const [a, b, c] = load(TEXT, { env }).servers;
    expect(a?.spec?.env).toStrictEqual({ HTTPS_PROXY, LEVEL: 'info' });
    expect(b?.spec?.env).toStrictEqual({ HTTPS_PROXY, LEVEL: 'debug', OWN: '1' });
    // Logs are cleaned of their secrets, and npm gets no other variable of the server.
    expect(a?.references).toStrictEqual(env);
    expect(c?.spec?.missing?.env).toStrictEqual({ HTTPS_PROXY, LEVEL: 'debug' });
  });

  test('that refer to a variable that is not set stop the servers that do not override them', () => {
    const text = `defaults:
  env:
    A: "\${NO}"
servers:
  a: { command: x }
  b: { command: x, env: { A: own } }
  c: { command: x, env: { A: "\${NO}" } }
`;
    const [a, b, c] = load(text).servers;
    const message = 'the environment variable NO is not set';
    expect(a?.problem).toMatchObject({ message: `defaults.env.A: ${message}`, line: 3, column: 8 });
    expect(b?.spec?.env).toStrictEqual({ A: 'own' });
    expect(c?.problem).toMatchObject({ message: `servers.c.env.A: ${message}`, line: 7 });
  });
});

describe('a server that cannot run', () => {
  test.each([
    [`{ command: x, args: [a, "\${"] }`, 'servers.a.args[1]: "${" does not start a valid reference', 30],
    [`{ command: "\${NO:-}" }`, 'servers.a.command: the command is empty', 17],
    ['{ package: "tool@file:../x" }', 'servers.a.package: tool@file:../x does not name a version', 17],
    ['{ command: x, cwd: ./gone }', 'servers.a.cwd: the folder ./gone does not exist; expected a folder to run', 25],
  ])('because of %s leaves the others alone', (entry, message, column) => {
    const { servers } = load(`servers:\n  a: ${entry}\n  b: { command: x }\n`);
    const problem = { message: expect.stringContaining(message), line: 2, column, hint: expect.any(String) };
    expect(servers[0]).toMatchObject({ key: 'a', spec: undefined, problem });
    expect(servers[1]?.spec).toBeDefined();
  });

  test('never tells the value of a variable', () => {
    const env = { SECRET: 'hunter2' };
    const { servers } = load(
      `servers:
  a: { command: x, cwd: "\${SECRET}" }
  b: { package: "\${SECRET}" }
  c: { package: "tool@file:\${SECRET}" }
  d: { command: x, args: ["\${SECRET}", "\${NO}"] }
`,
      { env },
    );
    expect(servers.map(({ problem }) => problem === undefined)).toEqual([false, true, false, false]);
    expect(JSON.stringify(servers.map(({ problem }) => problem))).not.toContain('hunter2');
    expect(servers[1]?.package?.request.shown).toBe(`\${SECRET}`);
  });
});

describe('the gateway', () => {
  test('has defaults, of which the start limit depends on the machine', () => {
    expect(load('servers: { a: { command: x } }').gateway).toStrictEqual({
      mode: 'direct',
      callLog: 'metadata',
      startupWaitMs: 3_000,
      idleStopMs: 600_000,
      restartTool: false,
      watch: true,
      startLimit: Math.max(4, availableParallelism()),
      maxQueued: 1024,
      maxPartialBytes: 268_435_456,
      maxInstructionsBytes: 8_192,
      hub: 'auto',
      hubIdleMs: 600_000,
      hubClients: 256,
      drainMs: 60_000,
      views: [],
      clientViews: [],
      ask: { timeoutMs: 60_000, notify: true },
      metrics: { tools: true },
      http: {
        maxSessions: 100,
        sessionIdleMs: 1_800_000,
        maxSessionAgeMs: 604_800_000,
        maxConnections: 256,
        requestsPerSecond: 50,
        requestBurst: 100,
        maxBodyBytes: 4_194_304,
        maxPartialBytes: 134_217_728,
        receiveTimeoutMs: 30_000,
        keepAliveMs: 15_000,
        maxUnreadBytes: 8_388_608,
        maxReplayBytes: 2_097_152,
      },
    });
  });

  test.each(['127.0.0.1:9464', 'localhost:9464', '[::1]:9464'])(
    'serves metrics at the loopback address %s',
    (listen) => {
      const { metrics } = load(`servers: { a: { command: x } }\ngateway: { metrics: { listen: "${listen}" } }`).gateway;
      expect(metrics).toEqual({ listen, tools: true });
    },
  );

  test('serves metrics at a unix socket in the folder of the configuration', () => {
    const { file, gateway } = load(`servers: { a: { command: x } }\ngateway: { metrics: { listen: ./m.sock } }`);
    expect(gateway.metrics.listen).toBe(join(dirname(file), 'm.sock'));
  });

  test.each([
    '0.0.0.0:9464',
    '192.168.0.1:9464',
    '127.0.0.1',
    '127.0.0.1:0',
    'http://127.0.0.1:9464',
    '0.0.0.0:9464/x',
  ])('refuses %s for metrics, and names the way with a token', (listen) => {
    const text = `servers: { a: { command: x } }\ngateway: { metrics: { listen: "${listen}" } }`;
    expect(() => load(text)).toThrow(
      /a loopback address with a port.*\/metrics from `trunkline serve --http`, with the token/,
    );
  });

  test('finds the recording and the shared key in the folder of the configuration, unless the path says otherwise', () => {
    const of = (record: string) =>
      load(`servers: { a: { command: x } }\ngateway: { callLog: full, sealKeyFile: sub/key, record: ${record} }`);
    const { file, gateway } = of('sub/r.jsonl');
    const [folder, record] = [join(dirname(file), 'sub'), join(dirname(file), 'sub', 'r.jsonl')];
    expect(gateway).toMatchObject({ callLog: 'full', record, sealKeyFile: join(folder, 'key') });
    expect(of('/r.jsonl').gateway.record).toBe(resolve(folder, '/r.jsonl'));
  });

  test('takes what the file says, also one by one within `http`', () => {
    const text =
      'servers: { a: { command: x } }\ngateway: { startupWait: 0s, restartTool: true, http: { maxSessions: 7 } }\n';
    expect(load(text).gateway).toMatchObject({
      ...{ startupWaitMs: 0, restartTool: true, idleStopMs: 600_000 },
      http: { maxSessions: 7, maxConnections: 256 },
    });
  });

  test('allows at least one whole body to arrive slowly', () => {
    const limits = '{ maxBody: 8MiB, maxPartial: 2MiB }';
    const { http } = load(`servers: { a: { command: x } }\ngateway: { http: ${limits} }\n`).gateway;
    expect(http).toMatchObject({ maxBodyBytes: 8_388_608, maxPartialBytes: 8_388_608 });
  });
});

describe('a file of Claude Desktop', () => {
  const CLAUDE = `{
	"globalShortcut": "Alt+Space",
	"mcpServers": {
		"memory": { "type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": { "A": "b" } },
		"elsewhere": { "type": "http", "url": "https://example.com/mcp", "oauth": {} }
	},
	"gatway": {}
}`;

  test('works as it is, tabs and unknown keys at the top included', () => {
    const { servers, file, warnings } = load(CLAUDE);
    expect(servers.map(({ key, spec }) => [key, spec?.command])).toStrictEqual([
      ['memory', 'npx'],
      ['elsewhere', undefined],
    ]);
    expect(servers[0]?.spec).toMatchObject({ args: ['-y', '@modelcontextprotocol/server-memory'], env: { A: 'b' } });
    expect(warnings).toStrictEqual([
      expect.stringContaining(`${file}:2:2: ignored the unknown key \`globalShortcut\``),
      `${file}:7:2: ignored the unknown key \`gatway\`\n  did you mean \`gateway\`?`,
    ]);
  });

  test('calls its servers as it does when one has a problem', () => {
    expect(load(CLAUDE).servers[1]?.problem).toMatchObject({
      message: expect.stringMatching(/^mcpServers\.elsewhere: /),
      line: 5,
      column: 3,
    });
  });

  test('leaves out a remote server that is disabled', () => {
    const text = '{ "mcpServers": { "a": { "url": "x", "disabled": true }, "b": { "command": "x" } } }';
    expect(load(text).servers.map(({ key }) => key)).toStrictEqual(['b']);
  });
});

describe('a warning', () => {
  test('tells of a limit that another one makes pointless', () => {
    const { file, warnings } = load(
      'servers:\n  a: { command: x, timeout: 20m }\n  b: { command: x, restart: { firstDelay: 1m, parkedProbe: 2h } }\n',
    );
    expect(warnings).toStrictEqual([
      `${file}:2:3: servers.a: timeout is longer than maxTimeout, so maxTimeout applies; change one of them`,
      `${file}:3:3: servers.b: restart.firstDelay is longer than restart.maxDelay, so restart.maxDelay applies; change one of them`,
      `${file}:3:3: servers.b: restart.parkedProbe is longer than restart.parkedProbeMax, so restart.parkedProbeMax applies; change one of them`,
    ]);
  });

  test('tells of more HTTP sessions than connections', () => {
    const withHttp = (http: string) => load(`servers: { a: { command: x } }\ngateway:\n  http: ${http}\n`);
    const { file, warnings } = withHttp('{ maxSessions: 300 }');
    expect(warnings).toStrictEqual([
      `${file}:3:3: gateway.http: maxSessions (300) is greater than maxConnections (256), but each listening client holds a connection; raise maxConnections`,
    ]);
    expect(withHttp('{ maxSessions: 300, maxConnections: 300 }').warnings).toStrictEqual([]);
  });
});

const INSTALLED = {
  'lib/trunkline/package.json': '{ "name": "trunkline" }',
  'lib/trunkline/dist/cli.js': '',
  'lib/other/package.json': '{ "name": "other" }',
  'lib/other/dist/cli.js': '',
  'other.yaml': 'servers: { x: { command: x } }',
  'home/.config/other': '',
  'elsewhere/trunkline/trunkline.yaml': '',
};

const ELSEWHERE = '$' + '{HOME}/../elsewhere';

/** Loads `conf/trunkline.yaml`, the configuration of the user, with this entry, near an installed Trunkline with a link to it in `bin`. */
function entryOf(entry: object, { env = {}, files = {} }: { env?: Record<string, string>; files?: object } = {}) {
  const text = JSON.stringify({ servers: { self: entry, fine: { command: 'x' } } });
  const folder = folderWith({ ...INSTALLED, 'conf/trunkline.yaml': text, ...files });
  mkdirSync(join(folder, 'bin'));
  symlinkSync(join(folder, 'lib/trunkline/dist/cli.js'), join(folder, 'bin/tl'));
  symlinkSync(join(folder, 'conf'), join(folder, 'link'));
  symlinkSync(join(folder, 'conf'), join(folder, 'home/.config/trunkline'));
  const variables = { HOME: join(folder, 'home'), PATH: [join(folder, 'none'), join(folder, 'bin')].join(delimiter) };
  const options = { env: { ...variables, ...env }, nodePath: '/opt/node' };
  const [self, fine] = loadConfig(join(folder, 'conf/trunkline.yaml'), options).servers;
  expect(fine?.spec).toBeDefined();
  return { folder, self: self as ProgramServer };
}

describe('a server that is Trunkline itself with the same configuration', () => {
  test.each([
    { args: ['replay', 'r.jsonl', '--as-server', 'files'] },
    { args: ['replay', '--as-server=files', 'r.jsonl'] },
  ])('is allowed if it replays a recording, which needs no configuration: $args', ({ args }) => {
    expect(entryOf({ command: 'trunkline', args }).self.problem).toBeUndefined();
  });

  test.each([
    ['by its name', { command: 'trunkline' }],
    ['by its name and the file', { command: 'trunkline', args: ['serve', '--config', 'trunkline.yaml'] }],
    ['by a link in PATH', { command: 'tl', args: ['-c', './trunkline.yaml'] }],
    ['by a path', { command: '../bin/tl', args: ['--config=../conf/trunkline.yaml'] }],
    ['through a link to the folder of the file', { command: 'trunkline', args: ['-c../link/trunkline.yaml'] }],
    ['as a script of Node', { command: 'node', args: ['--no-warnings', '../lib/trunkline/dist/cli.js'] }],
    ['as a script after an import', { command: '/usr/bin/node', args: ['--import', './x.mjs', '../bin/tl'] }],
    ['with npx', { command: 'npx', args: ['-y', 'trunkline'] }],
    ['with npx and a version', { command: 'npx', args: ['--yes', 'trunkline@latest', '--http', '7411'] }],
    ['with npm exec', { command: 'npm', args: ['exec', '-y', '-p', 'trunkline', 'trunkline'] }],
    ['with a package manager', { command: 'pnpm', args: ['dlx', 'trunkline'] }],
    ['as a package', { package: 'trunkline' }],
    [
      'by a variable of the entry',
      { command: 'trunkline', cwd: '..', env: { TRUNKLINE_CONFIG: 'conf/trunkline.yaml' } },
    ],
  ])('is refused: %s', (_, entry) => {
    const { self } = entryOf(entry);
    expect(self.spec).toBeUndefined();
    expect(self.problem).toMatchObject({
      message: expect.stringContaining(
        'servers.self: this server is Trunkline itself with the same configuration file',
      ),
      hint: 'remove this server, or give it another configuration file with `--config`',
      line: 1,
    });
  });

  test('is refused when a file between them leads back to the first', () => {
    const { folder, self } = entryOf({ command: 'trunkline', args: ['-c', '../other.yaml'] });
    expect(self.spec?.env.TRUNKLINE_PARENTS).toBe(join(folder, 'conf/trunkline.yaml'));
    const back = entryOf(
      { command: 'trunkline', args: ['-c', join(folder, 'other.yaml')] },
      {
        env: { TRUNKLINE_PARENTS: ['/first.yaml', join(folder, 'other.yaml')].join(delimiter) },
      },
    );
    expect(back.self.problem?.message).toContain('with a configuration file that has started this one');
  });
});

describe('a server that may run', () => {
  test.each([
    ['Trunkline with another file', { command: 'trunkline', args: ['--config', '../other.yaml'] }],
    [
      'Trunkline that finds another file',
      { command: 'npx', args: ['trunkline'], cwd: '..', env: { XDG_CONFIG_HOME: ELSEWHERE } },
    ],
    ['Trunkline without any file', { command: 'trunkline', cwd: '..', env: { HOME: '/nobody' } }],
  ])('is %s, which learns the files above it', (_, entry) => {
    const { folder, self } = entryOf(entry);
    expect(self.problem).toBeUndefined();
    expect(self.spec?.env).toMatchObject({ TRUNKLINE_PARENTS: join(folder, 'conf/trunkline.yaml') });
  });

  test.each([
    ['another program with the same file name', { command: 'node', args: ['../lib/other/dist/cli.js'] }],
    ['a program that gets Trunkline as an argument', { command: 'node', args: ['x.mjs', '../bin/tl'] }],
    ['another package', { command: 'npx', args: ['-y', 'trunkline-tools'] }],
    ['a program that is nowhere', { command: 'no-such-program' }],
  ])('is %s, and gets no more variables', (_, entry) => {
    const { self } = entryOf(entry);
    expect(self.spec?.env).toEqual({});
  });
});
