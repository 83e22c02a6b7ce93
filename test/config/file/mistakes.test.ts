import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/config/file/config-error.js';
import { loadConfig } from '../../support/load-config.js';
import { folderWith } from '../files.js';
import { errorOf, problemsOf } from '../loading.js';

describe('a text that is no configuration', () => {
  test.each([
    ['a file that does not exist', 'gone.yaml', 'config-not-found', /gone\.yaml: the file does not exist/],
    ['a folder', '.', 'config-unreadable', /it is a folder, not a file/],
    ['a file in UTF-16', 'c.yaml', 'config-unreadable', /expected UTF-8/],
  ])('%s', (_, name, code, message) => {
    const folder = folderWith();
    writeFileSync(join(folder, 'c.yaml'), Buffer.from('\ufeffservers:\n  a: { command: x }\n', 'utf16le'));
    const read = () => loadConfig(join(folder, name), { env: {}, nodePath: 'node' });
    expect(read).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });

  test.each([
    { of: 'an empty file', text: '', place: [1, 1] },
    { of: 'nothing but comments', text: '# later\n', place: [1, 1] },
    { of: 'no servers key', text: '\ndefaults: {}\n', place: [2, 1] },
    { of: 'an empty servers key', text: 'gateway: {}\nservers:\n', place: [2, 1] },
    { of: 'an empty map of servers', text: 'servers: {}\n', place: [1, 10] },
  ])('$of is answered with an example', ({ text, place }) => {
    const error = errorOf(text);
    expect(error).toMatchObject({ code: 'config-invalid', line: place[0], column: place[1] });
    expect(error.message).toMatch(
      /there are no servers; expected at least one below `servers:`\n {2}for example:\n {2}servers:\n/,
    );
  });

  test('an empty mcpServers is called by its name', () => {
    expect(problemsOf('{"mcpServers": {}}')).toStrictEqual([
      '1:16 there are no servers; expected at least one below `mcpServers:`',
    ]);
  });

  test.each([
    { text: '- a\n', found: 'a list' },
    { text: 'servers\n', found: 'a string' },
    { text: '42\n', found: 'a number' },
  ])('$found instead of a map', ({ text, found }) => {
    expect(problemsOf(text)).toStrictEqual([`1:1 found ${found}; expected a map with \`servers:\``]);
  });

  test('servers and mcpServers together', () => {
    expect(problemsOf('servers: { a: { command: x } }\nmcpServers: {}\n')).toStrictEqual([
      '2:1 found both `servers` and `mcpServers`, which mean the same; only one of them is allowed',
    ]);
  });
});

describe('bad YAML is told in plain words with its place', () => {
  test.each([
    [
      'a key twice',
      'servers:\n  a: { command: x }\n  a: { command: y }\n',
      '3:3 the key `a` is used twice; rename or remove one of the two',
    ],
    ['a quoted key twice', '{"servers": {}, "servers": {}}', '1:17 the key `servers` is used twice'],
    ['a tab', 'servers:\n\ta: 1\n', '2:1 this line is indented with a tab; use spaces'],
    ['an open {', 'servers:\n  a: {command: x\n  b: {command: y}\n', '3:3 the lines above open a bracket'],
    ['an open [', 'servers:\n  a:\n    args: ["-y", x\n    env: {}\n', '4:5 the lines above open a bracket'],
    ['odd indentation', 'servers:\n  a:\n    command: x\n   cwd: y\n', '4:1 the indentation does not match'],
    ['an open quote', 'servers: "a', '1:12 a character is missing here; expected a closing quote'],
    ['two keys on a line', 'servers: a: b\n', '1:10 a second `key:` on the same line'],
    ['a second document', 'servers: 1\n---\nservers: 2\n', '2:1 a second YAML document starts here'],
    ['an alias without anchor', 'servers: *gone\n', '1:10 this alias has no anchor'],
    ['a key that is a map', '? { a: 1 }\n: 2\n', '1:3 this key is a list or a map'],
    ['an unknown tag', 'servers: !ruby x\n', '1:10 unknown tag'],
    ['a value with @', 'servers: @x\n', '1:10 a value cannot start with this character'],
    ['a text after a text', 'servers: "a" b\n', '1:14 unexpected text'],
    ['__proto__', 'servers:\n  __proto__: { command: x }\n', '2:3 the key `__proto__` is not allowed'],
  ])('%s', (_, text, problem) => {
    expect(errorOf(text).code).toBe('config-syntax');
    expect(problemsOf(text)[0]).toContain(problem);
  });

  test('aliases that multiply are refused', () => {
    const levels = Array.from({ length: 9 }, (_, n) => `x${n + 1}: &x${n + 1} [${Array(9).fill(`*x${n}`).join(', ')}]`);
    expect(errorOf(['x0: &x0 [a]', ...levels].join('\n')).message).toContain('too many aliases to expand');
  });
});

describe('a NUL character', () => {
  test.each([
    ['command: "no\\0de"', '2:17 servers.a.command'],
    ['command: node, args: [x, "a\\0"]', '2:33 servers.a.args[1]'],
    ['command: node, cwd: "\\0"', '2:28 servers.a.cwd'],
    ['command: node, env: { A: "\\0" }', '2:33 servers.a.env.A'],
    ['package: "x\\0"', '2:17 servers.a.package'],
  ])('in %s is a mistake with line and column', (entry, place) => {
    const [problem] = problemsOf(`servers:\n  a: { ${entry} }`);
    expect(problem).toBe(`${place}: found a NUL character (\\0); remove it`);
  });
});

describe('a key that is not known', () => {
  const SERVER = 'servers: { a: { command: x } }\n';
  test.each([
    ['server: {}\n', '1:1 unknown key `server`', 'did you mean `servers`?'],
    ['servers:\n  f: { command: x, timout: 6s }\n', '2:20 servers.f: unknown key `timout`', 'did you mean `timeout`?'],
    [
      'servers:\n  a: { command: x, restart: { maxdelay: 1s } }\n',
      '2:31 servers.a.restart: unknown key `maxdelay`',
      'did you mean `maxDelay`?',
    ],
    [
      `${SERVER}defaults: { x1: x }\n`,
      '2:13 defaults: unknown key `x1`',
      /^expected one of env, envFile, rules, interceptors, timeout, /,
    ],
    [
      `${SERVER}gateway: { port: 1 }\n`,
      '2:12 gateway: unknown key `port`',
      /^expected one of tracing, cluster, mode, startupWait, idleStop, /,
    ],
    [
      '{ "mcpServers": { "a": { "command": "x", "arg": [] } } }',
      '1:42 mcpServers.a: unknown key `arg`',
      'did you mean `args`?',
    ],
  ])('%j', (text, problem, hint) => {
    expect(problemsOf(text)).toStrictEqual([problem]);
    expect(errorOf(text).hint).toMatch(hint);
  });

  test('is not also reported as missing under its right name', () => {
    expect(problemsOf('servers:\n  a: { comand: x }\n')).toStrictEqual(['2:8 servers.a: unknown key `comand`']);
  });
});

describe('a key of a server', () => {
  test.each([
    { key: 'a b', fault: 'this is not a valid server key', hint: 'did you mean `a-b`?' },
    { key: 'a__b', fault: 'this is not a valid server key', hint: 'did you mean `a-b`?' },
    { key: '-a', fault: 'this is not a valid server key', hint: 'did you mean `a`?' },
    { key: 'é', fault: 'this is not a valid server key', hint: undefined },
    {
      key: 'a'.repeat(300),
      fault: 'has 300 characters; expected at most 24',
      hint: `did you mean \`${'a'.repeat(24)}\`?`,
    },
    { key: 'Trunkline', fault: "reserved for Trunkline's own tools, such as trunkline__status", hint: undefined },
    { key: '../x', fault: 'this is not a valid server key', hint: 'did you mean `x`?' },
    { key: 'CON', fault: 'this key is the name of a device on Windows', hint: undefined },
    { key: 'com1', fault: 'this key is the name of a device on Windows', hint: undefined },
  ])('F54: cannot be $key', ({ key, fault, hint }) => {
    const error = errorOf(`servers:\n  ${key}: { command: x }\n`);
    expect(error).toMatchObject({ line: 2, column: 3, hint });
    expect(error.message).toContain(`servers.${key}: `);
    expect(error.message).toContain(fault);
  });

  test('cannot differ from another one only in case', () => {
    expect(problemsOf('servers:\n  files: { command: x }\n  Files: { command: x }\n')).toStrictEqual([
      '3:3 servers.Files: this key differs from `files` only in upper and lower case; choose another key',
    ]);
  });

  test('is checked for remote servers as well', () => {
    expect(problemsOf('{ "mcpServers": { "a b": { "url": "x" } } }')).toStrictEqual([
      expect.stringContaining('1:19 mcpServers.a b: this is not a valid server key'),
    ]);
  });
});

describe('a value of the wrong kind', () => {
  const DURATION = 'expected a duration with a unit, such as 500ms, 60s, 2m or 1h';
  const COUNT = 'expected a whole number from 1 to 1024';

  test.each([
    ['timeout: 60', `4:14 servers.a.timeout: found the number 60 without a unit; ${DURATION}`],
    ['timeout: "60"', `4:14 servers.a.timeout: found the string "60" without a unit; ${DURATION}`],
    ['timeout: soon', `4:14 servers.a.timeout: found the string "soon"; ${DURATION}`],
    ['timeout: 0s', '4:14 servers.a.timeout: found the string "0s"; expected a duration from 1ms to 24h'],
    [
      'maxFrame: 64',
      '4:15 servers.a.maxFrame: found the number 64 without a unit; expected a size with a unit, such as 512KiB, 4MB or 64MiB',
    ],
    ['maxFrame: 1GiB', '4:15 servers.a.maxFrame: found the string "1GiB"; expected a size from 1KiB to 256MiB'],
    ['concurrency: 0', `4:18 servers.a.concurrency: found the number 0; ${COUNT}`],
    ['concurrency: 1.5', `4:18 servers.a.concurrency: found the number 1.5; ${COUNT}`],
    ['disabled: yes', '4:15 servers.a.disabled: found the string "yes"; expected true or false'],
    ['type: stdoi', '4:11 servers.a.type: found the string "stdoi"; expected stdio, http, sse or streamable-http'],
    [
      'prefix: b',
      '4:13 servers.a.prefix: found the string "b"; expected "", which means no prefix; leave it out to use the key as the prefix',
    ],
    ['args: x', '4:11 servers.a.args: found a string; expected a list of strings'],
    ['args: [a, 8080]', '4:15 servers.a.args[1]: found a number; expected a string; put it in quotes'],
    ['env: { PORT: 8080 }', '4:18 servers.a.env.PORT: found a number; expected a string; put it in quotes'],
    ['env: [A]', '4:10 servers.a.env: found a list; expected a map of environment variables'],
    [
      'env: { "": a }',
      '4:12 servers.a.env.…: this is not a valid variable name; expected a name that is not empty and has no `=`',
    ],
    [
      'tools: x',
      '4:12 servers.a.tools: found a string; expected a map with `allow`, `deny`, `rename`, `describe`, `params`, `annotate`, `pin` or `keywords`',
    ],
    [
      'limits: { memory: 512 }',
      '4:23 servers.a.limits.memory: found the number 512 without a unit; expected a size with a unit, such as 512KiB, 4MB or 64MiB',
    ],
    ['cwd: 1', '4:10 servers.a.cwd: found a number; expected the path of a folder'],
    ['cwd: ', '4:5 servers.a.cwd: found no value; expected the path of a folder'],
    ['bin: x', '4:5 servers.a.bin: found `bin` without `package`; add `package` or remove `bin`'],
    ['package: x', '3:5 servers.a.command: found both `package` and `command`; remove one of them'],
    ['url: "https://a.test"', '4:5 servers.a.url: found both `command` and `url`; remove one of them'],
    [
      'headers: { A: b }',
      '4:5 servers.a.headers: found `headers`, which a server with `command` does not have; remove it',
    ],
    ['type: http', '4:5 servers.a.type: found the type of a remote server without `url`; add `url` or remove `type`'],
    [
      'sandbox: "yes"',
      '4:14 servers.a.sandbox: found a string; expected true, false, or a map with `read`, `write`, `network` or `unixSockets`',
    ],
    [
      'sharing: profile\n    placement: one',
      '4:5 servers.a.sharing: found `placement: one`, which implies `sharing: all`, beside another `sharing`; remove `sharing`',
    ],
    ['sandbox: { unixSockets: [x] }', '4:29 servers.a.sandbox.unixSockets: found a list; expected true or false'],
    ['sandbox: { network: a.example }', '4:25 servers.a.sandbox.network: found a string; expected a list of strings'],
    ...['https://a.example', 'a.example:99999', '*.*.example', 'a.example/x'].map((name) => [
      `sandbox: { network: ["${name}"] }`,
      `4:26 servers.a.sandbox.network[0]: found the string "${name}"; expected a name such as api.github.com or *.github.com, an address, or one of them with a port, such as db.example.com:5432`,
    ]),
  ])('%s', (setting, problem) => {
    const text = `servers:\n  a:\n    command: x\n    ${setting}\n`;
    expect(problemsOf(text)).toStrictEqual([problem]);
  });

  test.each([
    ['type: stdio', '4:5 servers.a.type: found `type: stdio` with `url`; remove `type`'],
    ['package: x', '3:5 servers.a.url: found both `package` and `url`; remove one of them'],
    ...[
      'args: [a]',
      'cwd: x',
      'env: { A: b }',
      'limits: { processes: 2 }',
      'leaveRunning: true',
      'bin: x',
      'sandbox: true',
      'placement: one',
    ].map((setting) => {
      const key = setting.replace(/:.*/, '');
      return [setting, `4:5 servers.a.${key}: found \`${key}\`, which a server with \`url\` does not have; remove it`];
    }),
    ['transport: stdio', '4:16 servers.a.transport: found the string "stdio"; expected auto, http or sse'],
    ['headers: { "a b": c }', '4:16 servers.a.headers.a b: this is not a valid name of an HTTP header'],
    [
      'headers: { Mcp-Session-Id: c }',
      '4:16 servers.a.headers.Mcp-Session-Id: Trunkline sets this header itself; remove it',
    ],
    ['headers: { A: 1 }', '4:19 servers.a.headers.A: found a number; expected a string; put it in quotes'],
  ])('of a remote server: %s', (setting = '', problem = '') => {
    const text = `servers:\n  a:\n    url: https://a.test/mcp\n    ${setting}\n`;
    expect(problemsOf(text)).toStrictEqual([problem]);
  });

  test.each([
    ['servers: []\n', '1:10 servers: found a list; expected a map of servers'],
    ['servers: { a: node }\n', '1:15 servers.a: found a string; expected a map with `package`, `command` or `url`'],
    ['servers: { a: {} }\n', '1:12 servers.a: found nothing to run; add `package`, `command` or `url`'],
    ['servers: { a: { command: x } }\ndefaults: 1\n', '2:11 defaults: found a number; expected a map of settings'],
    [
      'servers: { a: { command: x } }\ndefaults: { timeout: 5 }\n',
      `2:22 defaults.timeout: found the number 5 without a unit; ${DURATION}`,
    ],
    [
      'servers: { a: { command: x } }\ngateway: { http: { maxSessions: 0 } }\n',
      '2:33 gateway.http.maxSessions: found the number 0; expected a whole number from 1 to 10000',
    ],
  ])('%j', (text, problem) => {
    expect(problemsOf(text)).toStrictEqual([problem]);
  });
});

describe('the error', () => {
  const TEXT = 'servers:\n  b: { command: x, timeout: 3 }\n  a: { command: x, timout: 3s }\n  c: {}\n';

  test('tells every mistake in the order of the file, and the first one as its message', () => {
    const error = errorOf(TEXT);
    const file = error.file;
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({ code: 'config-invalid', line: 2, column: 29, hint: undefined });
    expect(error.message).toMatch(
      /trunkline\.yaml:2:29: servers\.b\.timeout: found the number 3 without a unit; expected /,
    );
    expect(error.report.split('\n')).toStrictEqual([
      error.message,
      `${file}:3:20: servers.a: unknown key \`timout\``,
      '  did you mean `timeout`?',
      `${file}:4:3: servers.c: found nothing to run; add \`package\`, \`command\` or \`url\``,
    ]);
  });

  test.each([
    'servers:\n  a: { command: x, env: { KEY: [hunter2] } }\n',
    'servers:\n  a: { command: x, env: { KEY:hunter2 } }\n',
    'servers:\n  a: { command: x, env: hunter2 }\n',
    'servers:\n  a: { command: x, args: hunter2 }\n',
    'servers:\n  a: { command: x, args: [{ a: hunter2 }] }\n',
    'servers:\n  a: { command: x, env: { KEY: "a" hunter2 } }\n',
    'servers:\n  a: { command: x, env: { KEY: "\\hunter2" } }\n',
    'servers:\n  a: { command: x, env: { KEY: @hunter2 } }\n',
    'servers:\n  a: { command: x, args: [*hunter2] }\n',
  ])('does not tell what may be a secret in %j', (text) => {
    expect(errorOf(text).report).not.toContain('hunter2');
  });
});
