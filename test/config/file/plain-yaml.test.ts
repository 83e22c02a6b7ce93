import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { ConfigError } from '../../../src/config/file/config-error.js';
import { parsePlainYaml } from '../../../src/config/file/plain-yaml.js';
import { parseYaml } from '../../../src/config/file/yaml-source.js';
import { repetitions } from '../../support/repetitions.js';
import { writtenYaml } from '../written-yaml.js';

const EXAMPLES = join(import.meta.dirname, '../../../config');

const DOLLAR = '$';
const word = fc.constantFrom(
  ...[
    'a',
    'b-c',
    'echo',
    '$schema',
    'null',
    'true',
    '1',
    '0x1f',
    '1.5',
    '30s',
    '1.5MiB',
    '~',
    '-y',
    '--to',
    '@a/b',
    './x',
  ],
  ...[
    `${DOLLAR}{HOME}/x`,
    `${DOLLAR}{A:-b}`,
    'http://x:1/y',
    'a b',
    'a  #b',
    'a: b',
    "it's",
    'say "a"',
    'C:\\x',
    '',
    ' ',
    '-',
    'ä',
    '😀',
    '<<',
    '.',
  ],
  ...[
    '__proto__',
    'a\nb',
    '2024-01-01',
    '1e3',
    '.inf',
    '+1',
    '012',
    'a#b',
    'a:b',
    '[a]',
    '{a}',
    'a,b',
    '\u00a0',
    'a\u00a0',
  ],
);
const scalar = fc.oneof({ weight: 4, arbitrary: word }, fc.integer(), fc.boolean(), fc.constant(null), fc.double());
const { map } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 3, arbitrary: scalar },
    tie('map'),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
  map: fc.dictionary(word, tie('value'), { minKeys: 1, maxKeys: 4 }),
}));

function parsedByLibrary(text: string): unknown {
  try {
    return parseYaml(text, 'trunkline.yaml').value;
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

describe('what the plain parser returns', () => {
  it('is what the YAML library returns, for any text', () => {
    const numRuns = repetitions({ full: 100_000, short: 5_000 });
    fc.assert(
      fc.property(writtenYaml(map), (text) => {
        const value = parsePlainYaml(text);
        if (value !== undefined) expect(value).toStrictEqual(parsedByLibrary(text));
      }),
      { numRuns },
    );
  });
});

describe('the plain parser', () => {
  const usual = `
# My servers
servers:
  files:   # two of them
    package: "@modelcontextprotocol/server-filesystem"
    args: ["\${HOME}/notes", --verbose]
    env:
      TOKEN: 'it''s'
      URL: http://localhost:8080/#top
    restart: { budget: 3, firstDelay: 500ms }

  time:
    command: uvx
    args:
    - mcp-server-time
    - -v
    disabled: true
    cwd:
gateway:
  maxQueued: 10
`;

  it.each([
    ['lines, brackets and comments', usual],
    ['the line ends of Windows', usual.replaceAll('\n', '\r\n')],
    ['JSON on one line', '{"mcpServers":{"a":{"command":"x","args":["\\"\\u00e4\\n"]}}}'],
    [
      'JSON on many lines',
      '{\n  "servers": {\n    "a": {\n      "command": "x",\n      "args": [],\n      "env": {}\n    }\n  }\n}\n',
    ],
  ])('parses %s', (_, text) => {
    expect(parsePlainYaml(text)).toStrictEqual(parsedByLibrary(text));
    expect(parsePlainYaml(text)).toBeDefined();
  });

  it.each([
    ['an anchor', 'a: &x 1\nb: *x\n'],
    ['a text of many lines', 'a: |\n  x\n'],
    ['a text that goes on below', 'a: x\n  y\n'],
    ['a tag', 'a: !!str 1\n'],
    ['a merge of maps', '<<: {a: 1}\n'],
    ['a second document', 'a: 1\n---\nb: 1\n'],
    ['a key twice', 'a: 1\na: 2\n'],
    ['a fraction', 'a: 1.5\n'],
    ['a tab', 'a:\t1\n'],
    ['maps in maps, very deep', '{a: '.repeat(50)],
    ['nothing', ''],
    ['a text that is long', `a: ${'x'.repeat(100_000)}`],
  ])('leaves %s to the library', (_, text) => {
    expect(parsePlainYaml(text)).toBeUndefined();
  });

  test.each(readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml')))('parses the example %s', (name) => {
    const text = readFileSync(join(EXAMPLES, name), 'utf8');
    expect(parsePlainYaml(text)).toStrictEqual(parsedByLibrary(text));
    expect(parsePlainYaml(text)).toBeDefined();
  });
});
