import fc from 'fast-check';
import { stringify } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { Document } from 'yaml';
import { parseText } from '../../../../src/host/files/edit/parse-text.js';
import type { ClientLocation } from '../../../../src/setup/clients/files/found-server.js';
import { entryIn, withEntry, withoutEntry } from '../../../../src/setup/clients/files/read-servers.js';
import { repetitions } from '../../../support/repetitions.js';

const ENTRY = {
  command: '/usr/bin/node',
  args: ['/opt/trunkline/dist/cli.js', '--config', '/home/me/my "servers".yaml'],
};

function placeOf(format: ClientLocation['format'], path: string[], isList?: boolean): ClientLocation {
  const place = { client: 'x', title: 'X', scope: 'user', file: '/x', format, path } as const;
  return isList === true ? { ...place, isList } : place;
}
const JSON_PLACE = placeOf('jsonc', ['mcpServers']);
const TOML_PLACE = placeOf('toml', ['mcp_servers']);
const YAML_PLACE = placeOf('yaml', ['extensions']);
const LIST_PLACE = placeOf('yaml', ['mcpServers'], true);

/** The text after the entry was added, and after it was removed again. */
function thereAndBack(text: string, place: ClientLocation): [added: string, removed: string] {
  const entry = place.isList === true ? { name: 'trunkline', ...ENTRY } : ENTRY;
  const added = withEntry(text, place, 'trunkline', entry);
  expect(entryIn(added, place, 'trunkline')).toEqual(entry);
  return [added, withoutEntry(added, place, 'trunkline')];
}

describe('an entry of JSON with comments', () => {
  it('is added in the indentation of the file, and nothing else changes', () => {
    const text = '{\n\t// mine\n\t"a": [1,2,  3],\n\t"mcpServers": {\n\t\t"x": { "command": "x" }, // first\n\t},\n}';
    const [added, removed] = thereAndBack(text, JSON_PLACE);
    expect(added).toBe(
      '{\n\t// mine\n\t"a": [1,2,  3],\n\t"mcpServers": {\n\t\t"x": { "command": "x" },\n\t\t"trunkline": {\n' +
        '\t\t\t"command": "/usr/bin/node",\n\t\t\t"args": [\n\t\t\t\t"/opt/trunkline/dist/cli.js",\n' +
        '\t\t\t\t"--config",\n\t\t\t\t"/home/me/my \\"servers\\".yaml"\n\t\t\t]\n\t\t}, // first\n\t},\n}',
    );
    expect(removed).toBe(text);
  });

  it.each([
    '{"mcpServers":{"x":{"command":"x"}}}',
    '{ "mcpServers": { "x": { "command": "x" } } }',
    '{"mcpServers":{}}',
    '\ufeff{\r\n    "mcpServers": {\r\n        "x": {}\r\n    }\r\n}\r\n',
    '{\n  "mcpServers": {}\n}',
    '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    '{\n  "mcpServers": {"x": {} /* a, b */ },\n  "z": null\n}\n\n',
    '{\n  "mcpServers": {\n    "x": 1 // one\n    ,\n  }\n}',
  ])('is removed without a trace: %j', (text) => {
    expect(thereAndBack(text, JSON_PLACE)[1]).toBe(text);
  });

  it.each(['', '  \n', '{}', '{\n}\n', '{ "a": 1 }', '{\n  // nothing yet\n}', '{"mcpServers": null}'])(
    'gets the object that it needs: %j',
    (text) => {
      const [added, removed] = thereAndBack(text, JSON_PLACE);
      expect(parseText('jsonc', removed)).toEqual({ ...(parseText('jsonc', text) ?? {}), mcpServers: {} });
      expect(added).toContain('"trunkline"');
    },
  );

  it.each([
    ['{"mcpServers":{"trunkline":{},"b":{}}}', '{"mcpServers":{"b":{}}}'],
    ['{"mcpServers":{\n  "trunkline": {},\n  "b": {}\n}}', '{"mcpServers":{\n  "b": {}\n}}'],
    [
      '{"mcpServers":{\n  "a": 1, // about a\n  "trunkline": {}, // ours\n  "b": {}\n}}',
      '{"mcpServers":{\n  "a": 1, // about a // ours\n  "b": {}\n}}',
    ],
    ['{"mcpServers":{\n  "a": 1, // about a\n  "trunkline": {} }}', '{"mcpServers":{\n  "a": 1 // about a\n  }}'],
    ['{"mcpServers":{ // all\n  "trunkline": {} }}', '{"mcpServers":{ // all\n  }}'],
    ['{"mcpServers":{ /* all */ "trunkline": {} /* a */ } /* b */ , "z": 1}', '{"mcpServers":{}, "z": 1}'],
    ['{"mcpServers":{ /* all */ "trunkline": {}, }}', '{"mcpServers":{ /* all */ }}'],
  ])('that was moved is removed with its comma: %j', (text, expected) => {
    const place = JSON_PLACE;
    expect(parseText('jsonc', withoutEntry(text, place, 'trunkline'))).toEqual(parseText('jsonc', expected));
    expect(withoutEntry(text, place, 'trunkline')).toContain(text.includes('about a') ? 'about a' : 'mcpServers');
  });

  it('that exists is replaced in its place', () => {
    const text = '{\n  "mcpServers": {\n    "trunkline": {"command": "old"}, // ours\n    "b": {}\n  }\n}\n';
    const added = withEntry(text, JSON_PLACE, 'trunkline', { command: 'new' });
    expect(added).toBe(
      '{\n  "mcpServers": {\n    "trunkline": {\n      "command": "new"\n    }, // ours\n    "b": {}\n  }\n}\n',
    );
  });
});

describe('an entry of TOML', () => {
  it('is a block of its own, and nothing else changes', () => {
    const text =
      '# mine\nmodel = "x" # the model\n\n[mcp_servers.other]\ncommand = "a"\nargs = [\n  "[mcp_servers.no]",\n]\n';
    const [added, removed] = thereAndBack(text, TOML_PLACE);
    expect(added.startsWith(`${text}\n[mcp_servers.trunkline]\ncommand = "/usr/bin/node"\n`)).toBe(true);
    expect(removed).toBe(text);
  });

  it.each([
    '',
    '\n',
    '# nothing\n',
    '# nothing',
    'a = 1',
    'a = 1\n\n',
    'a = 1\r\nb = 2\r\n',
    '\ufeffa = 1\r\n[b]\r\nc = """\r\n[mcp_servers.trunkline]\r\n"""',
  ])('is removed without a trace: %j', (text) => {
    expect(thereAndBack(text, TOML_PLACE)[1]).toBe(text);
  });

  it('is removed with the tables below it, wherever it is and however its name is written', () => {
    const text = `a = 1

[ mcp_servers . "trunkline" ]
command = "x"
args = [
  "[b]",
]

[mcp_servers.trunkline.env]
KEY = '''
[c]
'''
# about the next one

[next]
d = 1
[[mcp_servers.trunkline.more]]
e = 1
`;
    expect(withoutEntry(text, TOML_PLACE, 'trunkline')).toBe('a = 1\n# about the next one\n\n[next]\nd = 1\n');
  });

  it('that exists is replaced in its place', () => {
    const text = '[mcp_servers.trunkline]\ncommand = "old"\n[mcp_servers.trunkline.env]\nA = "b"\n\n# next\n[n]\n';
    const added = withEntry(text, TOML_PLACE, 'trunkline', { command: 'new' });
    expect(added).toBe('[mcp_servers.trunkline]\ncommand = "new"\n\n# next\n[n]\n');
  });

  it.each(['mcp_servers = { a = { command = "x" } }\n', 'mcp_servers.trunkline.command = "x"\n'])(
    'is refused where the servers are written on one line: %j',
    (text) => {
      expect(() => withEntry(text, TOML_PLACE, 'trunkline', ENTRY)).toThrow('cannot edit');
    },
  );
});

describe('an entry of YAML', () => {
  it('is added in the indentation of the file, and nothing else changes', () => {
    const text = '# mine\nextensions:\n    files:   # first\n        cmd:   x\n# next\nmodel: "x"\n';
    const [added, removed] = thereAndBack(text, YAML_PLACE);
    expect(added).toBe(
      '# mine\nextensions:\n    files:   # first\n        cmd:   x\n    trunkline:\n        command: /usr/bin/node\n' +
        '        args: [/opt/trunkline/dist/cli.js, --config, /home/me/my "servers".yaml]\n# next\nmodel: "x"\n',
    );
    expect(removed).toBe(text);
  });

  it.each([
    'extensions:\n  a:\n    cmd: x',
    'extensions:\r\n  a: { cmd: x } # a\r\n\r\nb: 1\r\n',
    'extensions:\n  a:\n    about: |\n      two\n      lines\n\n  # the end\nb: 1\n',
    'extensions:\n  a:\n    about: |+\n      two\n\n\nb: 1\n',
    'extensions: {}\nb: 1\n',
    'extensions: {} # mine\nb: 1\n',
    'extensions: { a: { cmd: x } }\nb: 1\n',
    'b: 1\nextensions:\n  a:\n',
  ])('is removed without a trace: %j', (text) => {
    expect(thereAndBack(text, YAML_PLACE)[1]).toBe(text);
  });

  it.each(['', 'a: 1', 'a: 1\n', 'extensions:\nb: 1\n', 'extensions: # none\nb: 1\n', '# nothing\n'])(
    'gets the map that it needs: %j',
    (text) => {
      const removed = thereAndBack(text, YAML_PLACE)[1];
      expect(parseText('yaml', removed)).toEqual({ ...(parseText('yaml', text) ?? {}), extensions: {} });
    },
  );

  it('that is the only one leaves the comments around it', () => {
    const text = 'extensions: # mine\n  # above\n  trunkline:\n    cmd: x\n  # below\nb: 1\n';
    const removed = withoutEntry(text, YAML_PLACE, 'trunkline');
    expect(removed).toBe('extensions: {} # mine\n  # above\n  # below\nb: 1\n');
    expect(thereAndBack('extensions: # none\nb: 1\n', YAML_PLACE)[1]).toBe('extensions: {} # none\nb: 1\n');
  });

  it.each([
    'mcpServers:\n  - name: a\n    command: x\n  # end\nb: 1\n',
    'mcpServers:\n- name: a\n  command: x\n',
    'mcpServers: []\n',
    'name: mine\nmcpServers:\n  - { name: a, command: x }\n',
  ])('is an item where the servers are a list: %j', (text) => {
    expect(thereAndBack(text, LIST_PLACE)[1]).toBe(text);
  });

  it('that exists is replaced in its place', () => {
    const text = 'extensions:\n  trunkline:\n    cmd: old # ours\n  b:\n    cmd: x\n';
    expect(withEntry(text, YAML_PLACE, 'trunkline', { cmd: 'new' })).toBe(
      'extensions:\n  trunkline:\n    cmd: new\n  b:\n    cmd: x\n',
    );
  });
});

describe('an edit', () => {
  it.each([
    [JSON_PLACE, '{ "a": s3cret }'],
    [JSON_PLACE, '[]'],
    [JSON_PLACE, '{ "mcpServers": ["s3cret"] }'],
    [TOML_PLACE, 'a = s3cret'],
    [TOML_PLACE, 'mcp_servers = "s3cret"'],
    [YAML_PLACE, 'a: [s3cret'],
    [YAML_PLACE, 'extensions: s3cret'],
    [YAML_PLACE, 'a: 1\n---\nb: s3cret'],
  ])('of %j is refused without its content if it is broken or of another kind: %j', (place, text) => {
    let message = '';
    try {
      withEntry(text, place, 'trunkline', ENTRY);
    } catch (error) {
      message = error instanceof Error ? error.message : '';
    }
    expect(message).toMatch(/^(?:it is|what should hold the servers is)/);
    expect(message).not.toContain('s3cret');
  });

  it('that removes what is not there changes nothing', () => {
    for (const place of [JSON_PLACE, YAML_PLACE, TOML_PLACE]) expect(withoutEntry('', place, 'trunkline')).toBe('');
  });
});

const name = fc.string({
  unit: fc.constantFrom('a', 'B', '-', '_', '1', ' ', '"', '.', 'é', '#'),
  minLength: 1,
  maxLength: 6,
});
const scalar = fc.oneof(
  fc.integer({ min: -1_000, max: 1_000 }),
  fc.boolean(),
  fc.string({ unit: fc.constantFrom('a', ' ', '"', "'", '\\', '{', ']', ',', '#', '/', '*', ':', 'é', '[') }),
  fc.constantFrom('// no', '/* no */', '[mcp_servers.trunkline]', '"""', "'''", '- trunkline:', 'two\nlines\n'),
);
const tree = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, scalar, fc.array(scalar, { maxLength: 3 }), tie('object')),
  object: fc.dictionary(name, tie('value'), { maxKeys: 3 }),
})).object as fc.Arbitrary<Record<string, unknown>>;
const servers = fc.dictionary(name, tree, { minKeys: 1, maxKeys: 3 });
const file = fc.record({ before: tree, servers, after: tree });
const lineEnds = fc.constantFrom('\n', '\r\n');
/** The comments and blanks of a text, one number for each place where one is possible. */
const decoration = fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 30 });

/** The tree with the servers among its other members. */
function whole({ before, servers: own, after }: { before: object; servers: object; after: object }, key: string) {
  return {
    ...before,
    [key]: own,
    ...Object.fromEntries(Object.entries(after).map(([each, value]) => [`${each}z`, value])),
  };
}

function* cycle(numbers: readonly number[]): Generator<number, never> {
  for (let at = 0; ; at += 1) yield numbers[at % numbers.length] ?? 0;
}

/** Writes JSON with comments, blanks and trailing commas at random places. */
function writeJsonc(value: unknown, choice: Iterator<number, never>): string {
  const gap = () => ['', ' ', '\n', '\n\t', ' /* a, "b" */ ', ' // {c\n', '  ', '\n    '][choice.next().value];
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const items = Object.entries(value).map(([key, each]) => {
    const label = Array.isArray(value) ? '' : `${JSON.stringify(key)}${gap()}:`;
    return `${gap()}${label}${gap()}${writeJsonc(each, choice)}${gap()}`;
  });
  const trailing = items.length > 0 && choice.next().value % 2 === 0 ? `,${gap()}` : '';
  return `${open}${items.join(',')}${trailing}${close}`;
}

/** Adds comments and blank lines between the lines, but not inside texts of several lines. */
function commented(text: string, choice: Iterator<number, never>, isPlace: (line: string) => boolean): string {
  return text
    .split('\n')
    .map((line) => (isPlace(line) ? `${['', '', '', '# a comment\n', '\n'][choice.next().value] ?? ''}${line}` : line))
    .join('\n');
}

/** All that matters of an edit: the entry is there and gone again, everything else is as it was. */
function checkEdit(text: string, place: ClientLocation): void {
  const parsed = parseText(place.format, text);
  const [added, removed] = thereAndBack(text, place);
  const key = place.path[0] ?? '';
  const { [key]: own, ...others } = parsed as Record<string, object>;
  const { [key]: ownAfter, ...othersAfter } = parseText(place.format, added) as Record<string, object>;
  expect(othersAfter).toEqual(others);
  expect(ownAfter).toEqual({ ...own, trunkline: ENTRY });
  expect(removed).toBe(text);
}

const RUNS = repetitions({ full: 1_000, short: 15 });

describe('any file with comments', () => {
  it.each([
    [JSON_PLACE, writeJsonc],
    [
      TOML_PLACE,
      (content: object, choice: Iterator<number, never>) =>
        commented(stringify(content).trimEnd(), choice, (line) => /^\[/.test(line)),
    ],
    [
      YAML_PLACE,
      (content: object, choice: Iterator<number, never>) => {
        const indent = 2 + 2 * (choice.next().value % 2);
        const plain = new Document(content).toString({ indent, lineWidth: 0 }).trimEnd();
        return commented(plain, choice, (line) => /^\S/.test(line));
      },
    ],
  ] as const)('of %j is the same after an entry was added and removed', (place, write) => {
    fc.assert(
      fc.property(
        file,
        decoration,
        lineEnds,
        fc.boolean(),
        fc.nat({ max: 1 }),
        (content, choices, lineEnd, hasMark, ends) => {
          const text = write(whole(content, place.path[0] ?? ''), cycle(choices)) + '\n'.repeat(ends);
          checkEdit((hasMark && place === JSON_PLACE ? '\ufeff' : '') + text.replaceAll('\n', lineEnd), place);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('loses an entry that is anywhere among others, and nothing else, and it can be replaced', () => {
    const names = fc.shuffledSubarray(['a', 'b', 'trunkline', 'c']);
    const held = names.filter((all) => all.includes('trunkline'));
    const values = fc.array(fc.constantFrom<object>({ k: 'x' }, { k: 'l\n[x]\n', z: { q: { r: 1 } } }, { k: ['a'] }), {
      minLength: 4,
      maxLength: 4,
    });
    fc.assert(
      fc.property(held, values, decoration, lineEnds, fc.boolean(), (order, entries, choices, lineEnd, endsLine) => {
        const all = Object.fromEntries(order.map((each, at) => [each, entries[at]]));
        const { trunkline: _, ...others } = all;
        const around = (own: object, key: string) => ({ x: 1, [key]: own, y: { t: [2] } });
        const lines = (text: string) => (text.trimEnd() + (endsLine ? '\n' : '')).replaceAll('\n', lineEnd);
        const yaml = new Document(around(all, 'extensions'), { aliasDuplicateObjects: false });
        for (const [place, text] of [
          [JSON_PLACE, writeJsonc(around(all, 'mcpServers'), cycle(choices)).replaceAll('\n', lineEnd)],
          [TOML_PLACE, lines(stringify(around(all, 'mcp_servers')))],
          [YAML_PLACE, lines(yaml.toString({ lineWidth: 0 }))],
        ] as const) {
          const key = place.path[0] ?? '';
          const removed = parseText(place.format, withoutEntry(text, place, 'trunkline'));
          expect({ [key]: {}, ...(removed as object) }).toEqual(around(others, key));
          const replaced = parseText(place.format, withEntry(text, place, 'trunkline', ENTRY));
          expect(replaced).toEqual(around({ ...others, trunkline: ENTRY }, key));
        }
      }),
      { numRuns: RUNS },
    );
  });
});
