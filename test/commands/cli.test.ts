import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { VERSION } from '../../src/version.js';
import { type Finished, Workplace } from '../cli/cli-run.js';
import { FAULTY } from '../support/in-process-gateway.js';
import { IS_WINDOWS } from '../support/platform.js';
import { until } from '../support/processes.js';

/** A server that cannot list its tools while there is a file `fault`. */
const OFFLINE = { command: 'node', args: [FAULTY, 'fail=fault'] };

const GUARD = fileURLToPath(new URL('../fixtures/servers/guard.mjs', import.meta.url));

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => {
  try {
    expect(place.leftovers()).toEqual([]);
  } finally {
    place.dispose();
  }
});

describe('the command line', () => {
  it('prints the schema of the configuration, or writes it and says which line refers to it', async () => {
    const committed = readFileSync(new URL('../../config/trunkline.schema.json', import.meta.url), 'utf8');
    expect(await place.run(['schema'])).toEqual({ code: 0, stdout: committed, stderr: '' });
    const file = join(place.folder, 'schema.json');
    const { code, stdout, stderr } = await place.run(['schema', '--out', 'schema.json']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toContain(`\n  # yaml-language-server: $schema=${file}\n`);
    expect(readFileSync(file, 'utf8')).toBe(committed);
  });

  it('prints its version', async () => {
    expect(await place.run(['--version'])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  it('says so when the log file cannot be written', async () => {
    place.configure({ good: 'ok' });
    const { code, stderr } = await place.run(['--log-file', place.folder]);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^trunkline: the log file .* cannot be written: it is a folder, not a file \(EISDIR\); .*--log-file FILE\n$/,
    );
  });

  it('writes the log to the given file, and nothing to stderr', async () => {
    place.configure({ good: 'ok' });
    const { code, stderr } = await place.run(['check', '-v', '--log-file', 'logs/all.log']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

describe('a configuration that cannot be used', () => {
  it.each([
    ['is not there', undefined, /no configuration file found; looked for\n {2}.*trunkline\.yaml/],
    [
      'has an unknown key',
      'servers:\n  a: { command: x, timeuot: 5s }\n',
      /:2:20: .*timeuot.*\n {2}did you mean `timeout`/,
    ],
  ])('exits with 2 and tells where, when it %s', async (_, text, message) => {
    if (text !== undefined) place.write('trunkline.yaml', text);
    // A gateway of another test, which may be the only one of this user, would answer instead.
    place.env.TRUNKLINE_HUB_DIR = join(place.folder, 'hubs');
    for (const command of ['check', 'tools']) {
      const { code, stdout, stderr } = await place.run([command]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(message);
    }
  });
});

describe('check', () => {
  it('shows what each server offers and how long it took', async () => {
    place.configure({ good: { fixture: 'ok', tools: { deny: ['secret'] } } });
    const { code, stdout, stderr } = await place.run(['check']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^SERVER +STATE +VERSION +PROTOCOL +READY AFTER +TOOLS +QUARANTINED +DENIED\n/);
    expect(stdout).toMatch(/\ngood +ready +- +2025-06-18 +\d+ ms +5 +1 +1\n/);
    expect(stdout).toContain('not listed: odd (inputSchema');
  });

  describe('of servers that do not start, or not well', () => {
    const FAULTS = [
      [
        'uses an unset variable',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how the file spells a variable.
        { command: 'node', args: ['${NOBODY_SETS_THIS}'] },
        'misconfigured',
        'Set NOBODY_SETS_THIS',
      ],
      [
        'is a package that is not to be had',
        { package: '@nobody/nothing' },
        'failed',
        'ECONNREFUSED: the registry cannot be reached; check the network connection',
      ],
      ['has a command that is not there', { command: 'no-such-command' }, 'failed', 'set `command` to its full path'],
      [
        'has a whole line as its command',
        { command: 'node server.mjs' },
        'failed',
        'put the rest of a command line into `args`',
      ],
      [
        'exits at once, after colors and a bell',
        { fixture: 'exits-at-once' },
        'failed',
        '  | Error: API_URL is not set \\u{7}\n',
      ],
      [
        'says why it ends',
        { fixture: 'no-key' },
        'failed',
        'it ended with exit code 1 before it was ready\n  | Error: ACME_KEY is not set\n' +
          '  Its output says why; often an argument, a variable in `env` or a file is missing',
      ],
      ['cannot list its tools', OFFLINE, 'ready', 'Calls of its tools by name are sent to it'],
      ['speaks an unknown revision', { fixture: 'old' }, 'failed', '"1999-01-01", which is unknown here'],
      ['never answers', { fixture: 'never-answers', startTimeout: '1s' }, 'failed', 'raise `startTimeout`'],
      [
        'does not trust the certificate of its registry',
        { fixture: 'no-certificate', startTimeout: '1s' },
        'failed',
        'Its output shows a certificate error (UNABLE_TO_VERIFY_LEAF_SIGNATURE): behind a private certificate authority, set `NODE_EXTRA_CA_CERTS`',
      ],
      ['never ends', { fixture: 'ignores-the-end', startTimeout: '1s' }, 'failed', 'it was not ready within 1 s'],
    ] as const;
    const shared = new Workplace();
    let checked: Finished;
    beforeAll(async () => {
      shared.configure({
        ...Object.fromEntries(FAULTS.map(([, entry], index) => [`bad${index}`, entry])),
        good: 'ok',
        loud: 'banner',
      });
      shared.write('fault', 'tools/list: no network');
      // A registry that does not exist.
      shared.env.npm_config_registry = 'http://127.0.0.1:1/';
      checked = await shared.run(['check']);
    });
    afterAll(() => {
      try {
        expect(shared.leftovers()).toEqual([]);
      } finally {
        shared.dispose();
      }
    });

    it('exits with 1, and shows those that start as ready, even after a banner', () => {
      expect(checked).toMatchObject({ code: 1, stderr: '' });
      expect(checked.stdout).toMatch(/\ngood +ready .*\nloud +ready /);
      expect(checked.stdout).toContain('1 line on stdout is no MCP message and was skipped');
    });

    it.each(FAULTS.map(([what, , state, message], index) => [what, `bad${index}`, state, message] as const))(
      'says why, when a server %s',
      (_, key, state, message) => {
        expect(checked.stdout).toMatch(new RegExp(`\n${key} +${state} +-`));
        const [, explained = ''] = checked.stdout.split(new RegExp(`^${key}: `, 'm'));
        expect(explained.split('\n\n')[0]).toContain(message);
      },
    );
  });

  it('prints the same as JSON', async () => {
    place.configure({ good: { fixture: 'ok', tools: { deny: ['secret'] } }, bad: 'no-key' });
    const { code, stdout, stderr } = await place.run(['check', '--json', '--quiet']);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const { configFile, servers } = JSON.parse(stdout);
    expect(configFile).toBe(join(place.folder, 'trunkline.yaml'));
    expect(servers).toEqual([
      expect.objectContaining({ server: 'good', state: 'ready', denied: ['secret'], problem: null, output: [] }),
      expect.objectContaining({ server: 'bad', state: 'failed', tools: null, output: ['Error: ACME_KEY is not set'] }),
    ]);
  });

  it('starts only the servers that are named, and suggests the name of one that it knows', async () => {
    place.configure({ good: 'ok', bad: 'exits-at-once' });
    const { code, stdout } = await place.run(['check', 'good']);
    expect([code, stdout.includes('bad')]).toEqual([0, false]);
    const stderr = 'trunkline: there is no server `goood` in the configuration; did you mean `good`?\n';
    expect(await place.run(['check', 'goood'])).toMatchObject({ code: 2, stderr });
  });

  it.each([
    ['check', 'off'],
    ['call', 'off.echo'],
    ['tools', 'off'],
    ['update', 'off'],
    ['login', 'off'],
  ])('says that a server is disabled, and how to enable it: %s', async (...args) => {
    const server = { command: 'node', disabled: true };
    writeFileSync(join(place.folder, 'trunkline.yaml'), JSON.stringify({ servers: { off: server } }));
    const stderr = 'trunkline: the server `off` is disabled in the configuration; run: trunkline enable off\n';
    expect(await place.run(args)).toEqual({ code: 2, stdout: '', stderr });
  });

  it('names the disabled servers if there is no other to start', async () => {
    const servers = { off: { command: 'node', disabled: true } };
    writeFileSync(join(place.folder, 'trunkline.yaml'), JSON.stringify({ servers }));
    const { code, stdout } = await place.run(['check']);
    const text = 'trunkline.yaml are disabled: off. `trunkline enable NAME` enables one.';
    expect([code, stdout]).toEqual([0, expect.stringContaining(text)]);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('ends every process on %s, and exits with %i', async (signal, expected) => {
    place.configure({ mute: 'never-answers', stubborn: 'ignores-the-end' });
    const { process: running, finished } = place.start(['check']);
    await until('both servers run', () => place.leftovers().length === 2);
    running.kill(signal);
    // On Windows, a program that another one ends gets no signal. The system and the guardian end what it has started.
    expect(await finished).toEqual({ code: IS_WINDOWS ? null : expected, stdout: '', stderr: '' });
    if (IS_WINDOWS) await until('both servers have ended', () => place.leftovers().length === 0);
  });
});

describe('tools', () => {
  it('lists the tools of all servers with their owners', async () => {
    const tools = { deny: ['secret'], rename: { big: 'huge' }, annotate: { '*': { title: 'Mine' } } };
    place.configure({ good: { fixture: 'ok', tools }, more: 'ok' });
    const { code, stdout, stderr } = await place.run(['tools']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^TOOL +SERVER +DESCRIPTION\n/);
    expect(stdout).toMatch(/\ngood__echo +good +The echo\\u\{1b\} tool\n/);
    expect(stdout).toMatch(/\nmore__secret +more /);
    expect(stdout).toMatch(/\ntrunkline__status +trunkline +Shows/);
    expect(stdout).toMatch(/\n\nQUARANTINED +SERVER +REASON\nodd +good +inputSchema/);
    expect(stdout).toMatch(/\n\nCHANGED +SERVER +BY THE KEYS OF `tools`\n/);
    expect(stdout).toMatch(/\ngood__huge +good +rename, annotate\.title\n/);
    expect(stdout).toMatch(/\ngood__echo +good +annotate\.title\n/);
    expect(stdout).not.toContain('good__secret');
  });

  it('lists what there is and exits with 1 when a server failed', async () => {
    place.configure({ good: 'ok', bad: 'exits-at-once' });
    const { code, stdout, stderr } = await place.run(['tools']);
    expect(code).toBe(1);
    expect(stdout).toContain('good__echo');
    expect(stderr).toMatch(/^trunkline: server `bad` failed: it ended with exit code 3.*\n.*`trunkline check bad`/);
  });

  it('lists their sizes, the largest first, with lines of YAML that save tokens', async () => {
    place.configure({ good: 'ok', more: 'ok' });
    const { code, stdout } = await place.run(['tools', '--sort', 'size']);
    expect(code).toBe(0);
    const [head = '', ...rows] = stdout.split('\n\n')[0]?.split('\n') ?? [];
    expect(head).toMatch(/^TOKENS +TOOL +SERVER +DESCRIPTION$/);
    const sizes = rows.map((row) => Number.parseInt(row, 10));
    expect(sizes).toEqual([...sizes].sort((one, other) => other - one));
    expect(stdout).toMatch(/\n\n13 tools, about \d+ tokens \(a token is about four bytes\)\.\n/);
    expect(stdout).toContain(
      'good and more both have image, secret, echo, fail, big and 1 more, and say that they do the same.\n  in the entry of more:  tools: { deny: [image, secret, echo, fail, big, slow] }',
    );
    const { stdout: json } = await place.run(['tools', 'more', '--sort', 'size', '--json']);
    expect(JSON.parse(json)).toMatchObject({ tools: Array(6).fill({ server: 'more' }), advice: [] });
  });

  it('lists all of them in search mode, but not as a view with that mode shows them', async () => {
    place.configure({ good: 'ok' }, { views: { short: { mode: 'search' } }, gateway: { mode: 'search' } });
    expect((await place.run(['tools'])).stdout).toContain('good__echo');
    const { stdout } = await place.run(['tools', '--view', 'short']);
    expect(stdout).toContain('trunkline__find_tools');
    expect(stdout).not.toContain('good__echo');
  });

  it('lists all of them, even those that a client gets on a second page', async () => {
    place.configure({ one: 'many', two: 'many' });
    const { code, stdout } = await place.run(['tools', '--json']);
    expect(code).toBe(0);
    const names = ['one', 'two'].flatMap((key) => Array.from({ length: 600 }, (_, index) => `${key}__t${index}`));
    const [line = '', ...rest] = stdout.split('\n');
    expect(rest).toEqual(['']);
    expect(JSON.parse(line).tools.map(({ name }: { name: string }) => name)).toEqual([...names, 'trunkline__status']);
    expect(line.match(/"x":1\.0/g)).toHaveLength(1_200);
    expect(line).not.toContain('nextCursor');
  });
});

describe('call', () => {
  it('prints a result as it is, or as the clients of a view get it', async () => {
    place.configure(
      { good: 'ok' },
      { defaults: { results: { max: '1kB' } }, views: { short: { results: { max: '2kB' } } } },
    );
    expect((await place.run(['call', 'good__big'])).stdout).toHaveLength(2 * 1024 * 1024 + 1);
    const { stdout } = await place.run(['call', 'good__big', '--view', 'short']);
    expect(stdout).toMatch(/^x{1000}\n\n\[Trunkline left out .* bytes 1000 to 2096152 of 2097152\./);
  });

  it('reaches a server that cannot list its tools, which `tools` reports', async () => {
    place.configure({ offline: OFFLINE });
    place.write('fault', 'tools/list: no network');
    const called = await place.run(['call', 'offline__answer', '{"nonce":"n"}']);
    expect(called).toEqual({ code: 0, stdout: 'n\n', stderr: '' });
    const { code, stdout, stderr } = await place.run(['tools']);
    expect([code, stdout.includes('offline')]).toEqual([1, false]);
    expect(stderr).toContain(
      'trunkline: server `offline`: it runs, but its tools cannot be listed: tools/list: answered',
    );
  });

  it('is shown to the interceptors of its server, without a hub, too', async () => {
    const hooks = [{ events: ['tools/call'], phase: 'response' }];
    const list = JSON.stringify([{ name: 'no', type: 'validation', hooks, does: 'deny' }]);
    const guard = { command: 'node', args: [GUARD, `interceptors=${list}`], interceptorTimeout: '30s' };
    place.configure({ good: 'ok', guard }, { defaults: { interceptors: ['guard'] } });
    const { code, stdout, stderr } = await place.run(['call', 'good__echo', 'text=hidden']);
    expect([code, stdout]).toEqual([10, '']);
    expect(stderr).toContain('the interceptor "no" of "guard" refuses it');
    expect(stderr).not.toContain('hidden');
  });

  const BLOCK = '{"type":"image","data":"AA==","mimeType":"image/png"}';
  it.each<[string, string[], Partial<Finished>, string?]>([
    [
      'text as text',
      ['good__echo', '{"n": 12345678901234567890, "x": 1.0}'],
      { stdout: '{"n": 12345678901234567890, "x": 1.0}\n' },
    ],
    [
      'of SERVER.TOOL, with the types of its schema',
      ['good.echo', 'text=5', 'n:=5'],
      { stdout: '{"text":"5","n":5}\n' },
    ],
    ['of arguments on stdin, over several lines', ['good__echo', '-'], { stdout: '{ "a": 1  }\n' }, '{\n"a": 1\r\n}'],
    ['other blocks as JSON', ['good__image'], { stdout: `${BLOCK}\n` }],
    ['the whole result with --json', ['good__image', '--json'], { stdout: `{"content":[${BLOCK}]}\n` }],
    ['the text of a tool that failed on stderr', ['good__fail'], { code: 1, stderr: 'it did not work\n' }],
    [
      'a similar name for a server that is not there',
      ['godo.echo'],
      { code: 2, stderr: 'trunkline: there is no server `godo` in the configuration; did you mean `good`?\n' },
    ],
    [
      'a similar name for a tool that the server refuses',
      ['good__ecko'],
      { code: 4, stderr: 'trunkline: there is no such tool (error -32602)\n  did you mean `good__echo`?\n' },
    ],
    [
      'a similar name for a tool that the server reports as missing',
      ['good__faill'],
      { code: 4, stderr: 'Tool faill not found\n  did you mean `good__fail`?\n' },
    ],
    [
      'a similar name without a server',
      ['good_echo'],
      {
        code: 4,
        stderr:
          'trunkline: Unknown tool: good_echo. Did you mean `good__echo`? (error -32602)\n  `trunkline tools` lists all tools\n',
      },
    ],
  ])('prints %s', async (_, args, printed, input) => {
    // A server that fails, and is not started where its name is not meant.
    place.configure({ good: 'ok', ...(args[0]?.startsWith('good__') && { bad: 'exits-at-once' }) });
    expect(await place.run(['call', ...args], input)).toEqual({ code: 0, stdout: '', stderr: '', ...printed });
  });

  it('prints a result of 2 MB whole to a reader who takes its time', async () => {
    place.configure({ good: 'ok' });
    const { process: running, finished } = place.start(['call', 'good__big']);
    running.stdout.pause();
    await until('the answer is on its way', () => running.stdout.readableLength > 0);
    await until('the server was ended', () => place.leftovers().length === 0);
    running.stdout.resume();
    expect((await finished).stdout).toHaveLength(2 * 1024 * 1024 + 1);
  });

  it('is ended by SIGINT, and so is the server', async () => {
    place.configure({ good: 'ok' });
    const { process: running, finished } = place.start(['call', 'good__slow', '-vv']);
    await place.says(running, 'slow was called');
    running.kill('SIGINT');
    expect(await finished).toMatchObject({ code: IS_WINDOWS ? null : 130, stdout: '' });
    if (IS_WINDOWS) await until('the server has ended', () => place.leftovers().length === 0);
  });
});
