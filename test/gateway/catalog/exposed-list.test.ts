import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { exposeList } from '../../../src/gateway/catalog/exposed-list.js';
import { createToolPolicy } from '../../../src/gateway/catalog/tool-policy.js';
import { exposing } from '../../support/exposing.js';
import { sha256 } from '../../support/sha256.js';
import { bytesOf } from '../../support/wire.js';

function expose(texts: readonly string[], rules?: Parameters<typeof exposing>[1]) {
  const { entries: tools, ...rest } = exposing(texts, rules);
  const entries = tools.map(({ entry }) => (entry === undefined ? undefined : Buffer.from(entry).toString()));
  return { tools, entries, ...rest };
}

const SCHEMA = '"inputSchema":{"type":"object"}';

describe('an exposed tool', () => {
  it.each([
    `{"name":"read",${SCHEMA}}`,
    `{ "inputSchema" : { "type":"object" , "properties":{"n":{"maximum":9007199254740993,"minimum":-0,"x":1e300}} },\t"name": "read" }`,
    `{"name":"re\\u0061d","description":"\\u00e9 é \\ud83d\\ude00 \\"name\\":\\"x\\"",${SCHEMA},"x-vendor":null,"x-vendor":1.0}`,
    `{"annotations":{"name":"other","title":"x"},"n\\u0061me":"read","inputSchema":{"type":"object","name":"inner"}}`,
    `{"name":"read","inputSchema":{"type":"object","properties":{"name":{"type":"string"},"name":{}}},"__proto__":{"name":"x"}}`,
    `{\r"name"\r:\r"read"\r,\r${SCHEMA}\r}`,
  ])('is listed as the server wrote it, but for the name: %s', (entry) => {
    const { entries, tools } = expose([entry]);
    const expected = entry.replace(/("n(?:a|\\u0061)me"\s*:\s*)"re(?:a|\\u0061)d"/, '$1"k__read"');
    expect(entries).toEqual([expected]);
    expect(expected).not.toBe(entry);
    expect(tools[0]).toMatchObject({ exposed: 'k__read', original: 'read' });
  });

  it('keeps every byte of unknown members, whatever they hold', () => {
    const space = fc.constantFrom('', '', ' ', '\t');
    const value = fc.oneof(
      fc.json(),
      fc.constantFrom('9007199254740993', '1.0', '-0', '1E400', '"\\u0041"', '{"a":1,"a":2}', '[ ]'),
    );
    const member = fc.tuple(space, fc.string(), space, value, space);
    fc.assert(
      fc.property(fc.array(member, { maxLength: 5 }), fc.array(member, { maxLength: 5 }), (before, behind) => {
        const text = (members: typeof before) =>
          members.map(([a, key, b, json, c]) => `${a}${JSON.stringify(`x-${key}`)}${b}:${json}${c},`).join('');
        const entry = (name: string) => `{${text(before)}"name":"${name}",${text(behind)}${SCHEMA}}`;
        expect(expose([entry('read')]).entries).toEqual([entry('k__read')]);
      }),
      { numRuns: 300 },
    );
  });

  it('has one name even if the server gave several: the last, as JSON.parse reads it', () => {
    const { tools, entries } = expose([`{"name":"a",${SCHEMA},"name":"b"}`]);
    expect(tools[0]).toMatchObject({ exposed: 'k__b', original: 'b' });
    expect(entries).toEqual([`{"name":"k__b",${SCHEMA},"name":"k__b"}`]);
  });

  it.each(['read', 're\\u0061d'])('keeps its own name without a prefix, as it is written: %s', (name) => {
    const entry = `{"name":"${name}",${SCHEMA}}`;
    expect(expose([entry], { prefix: '' }).entries).toEqual([entry]);
  });

  it.each(['"a"', '7'])('has one name without a prefix, too, even if the server gave several: %s', (name) => {
    const { entries } = expose([`{"name":${name},${SCHEMA},"name":"\\u0062"}`], { prefix: '' });
    expect(entries).toEqual([`{"name":"b",${SCHEMA},"name":"\\u0062"}`]);
  });

  it.each(['__proto__', 'constructor', 'toString'])('may be called %s', (name) => {
    const { entries, withheld } = expose([`{"name":"${name}",${SCHEMA}}`]);
    expect(entries).toEqual([`{"name":"k__${name}",${SCHEMA}}`]);
    expect(withheld).toEqual([]);
  });

  it('with a name that no model API takes gets another one, which is JSON', () => {
    const { tools, entries } = expose([`{"name":"a \\"b\\" 猫",${SCHEMA}}`]);
    expect(tools[0]?.original).toBe('a "b" 猫');
    expect(JSON.parse(entries[0] ?? '').name).toBe(tools[0]?.exposed);
    expect(tools[0]?.exposed).toMatch(/^k__a_b__[0-9a-f]{8}$/);
  });
});

describe('members that are null and must not be', () => {
  it.each([
    [`{"name":"r","title":null,${SCHEMA}}`, `{"name":"k__r",${SCHEMA}}`],
    [`{"title":null,"name":"r",${SCHEMA}}`, `{"name":"k__r",${SCHEMA}}`],
    [`{"name":"r",${SCHEMA},"_meta":null}`, `{"name":"k__r",${SCHEMA}}`],
    [`{ "title" : null , "x" : 1.0 , "name" : "r" , ${SCHEMA} }`, `{ "x" : 1.0 , "name" : "k__r" , ${SCHEMA} }`],
    [
      `{"icons":null,"name":"r","execution":null,"annotations":null,"outputSchema":null,"description":null,${SCHEMA},"x":null}`,
      `{"name":"k__r",${SCHEMA},"x":null}`,
    ],
    [`{"titl\\u0065":null,"name":"r",${SCHEMA}}`, `{"name":"k__r",${SCHEMA}}`],
  ])('are left out of %s', (entry, expected) => {
    expect(expose([entry]).entries).toEqual([expected]);
  });
});

describe('a tool that some client would choke on', () => {
  it('F39: is withheld with the reason, hides no other, and can be called all the same', () => {
    const { tools, entries, withheld } = expose([
      `{"name":"a",${SCHEMA}}`,
      '{"name":"bad"}',
      '"not a tool"',
      '{"inputSchema":{}}',
      `{"name":"b",${SCHEMA}}`,
    ]);
    expect(entries).toEqual([`{"name":"k__a",${SCHEMA}}`, undefined, `{"name":"k__b",${SCHEMA}}`]);
    expect(tools[1]).toMatchObject({ exposed: 'k__bad', original: 'bad' });
    expect(withheld).toEqual([
      { name: 'bad', reason: 'inputSchema is not a schema of type "object"' },
      { name: '#3', reason: 'is not an object' },
      { name: '#4', reason: 'has no name' },
    ]);
  });

  it('is the first of two with one name, of which the second is sound', () => {
    const { tools, entries, withheld } = expose(['{"name":"a"}', `{"name":"a","x":2,${SCHEMA}}`, '{"name":"a"}']);
    expect([tools.length, entries]).toEqual([1, [`{"name":"k__a","x":2,${SCHEMA}}`]]);
    const reason = 'inputSchema is not a schema of type "object"';
    expect(withheld).toEqual([
      { name: 'a', reason },
      { name: 'a', reason },
    ]);
  });

  it('loses only its malformed parts, and is told of', () => {
    const { entries, repaired } = expose([
      '{"x" : 1.0, "name":"a","icons":7,"inputSchema":{ "properties":{"p":{"maximum":1.0}} } ,"\\u0061nnotations":[]}',
    ]);
    expect(entries).toEqual([
      '{"x" : 1.0, "name":"k__a","inputSchema":{"properties":{"p":{"maximum":1}},"type":"object"}}',
    ]);
    expect(repaired).toEqual([{ name: 'a', reason: 'icons is not a list, and 2 more' }]);
  });

  it('is the second of two with one name', () => {
    const { tools, entries, withheld } = expose([`{"name":"a","x":1,${SCHEMA}}`, `{"name":"a","x":2,${SCHEMA}}`]);
    expect(tools).toHaveLength(1);
    expect(entries[0]).toContain('"x":1');
    expect(withheld).toEqual([{ name: 'a', reason: 'the server lists this name twice; only the first entry is used' }]);
  });
});

describe('a tool that hides characters in what it says about itself', () => {
  it('is listed byte for byte, and told of', () => {
    const hidden = `{"name":"read","description":"a\\u200bb \u202e",${SCHEMA}}`;
    const deep = '{"name":"deep","inputSchema":{"type":"object","properties":{"p":{"description":"\\udb40\\udc41"}}}}';
    const { entries, withHiddenCharacters, withheld } = expose([
      hidden,
      deep,
      `{"name":"family","description":"👩‍👩‍👧‍👦 ❤️\\n",${SCHEMA}}`,
    ]);
    expect([withHiddenCharacters, withheld]).toEqual([['k__read', 'k__deep'], []]);
    expect(entries[0]).toBe(hidden.replace('read', 'k__read'));
  });
});

describe('an entry that is too large', () => {
  it('is withheld with the reason, and can be called all the same', () => {
    const list = { entries: [{ bytes: bytesOf('{"name":"large"}'), isTooLarge: true }], truncated: undefined };
    const policy = createToolPolicy({ deny: [] });
    const { entries, withheld } = exposeList('tools', list, { key: 'k', prefix: 'k', policy, sha256 });
    expect(withheld).toEqual([{ name: 'large', reason: 'is larger than 1048576 bytes' }]);
    expect(entries).toEqual([{ exposed: 'k__large', original: 'large', entry: undefined }]);
  });
});

describe('a tool that the configuration does not let through', () => {
  it('is not exposed at all, and told of', () => {
    const policy = createToolPolicy({ allow: ['a*'], deny: ['ab'] });
    const { tools, denied, withheld } = expose(
      ['a', 'ab', 'ac'].map((name) => `{"name":"${name}",${SCHEMA}}`).concat('{"name":"b"}'),
      { policy },
    );
    expect(tools.map(({ original }) => original)).toEqual(['a', 'ac']);
    expect(denied).toEqual(['ab', 'b']);
    expect(withheld).toEqual([]);
  });
});

describe('an exposed prompt', () => {
  it('gets the prefix of its server, and keeps all else, the names of its arguments too', () => {
    const { tools, entries } = expose(['{ "arguments":[{"name":"review"}], "name" : "review" ,"x":1.0}'], {
      kind: 'prompts',
    });
    expect(entries).toEqual(['{ "arguments":[{"name":"review"}], "name" : "k__review" ,"x":1.0}']);
    expect(tools[0]).toMatchObject({ exposed: 'k__review', original: 'review' });
  });

  it('is not subject to what is said of tools', () => {
    const policy = createToolPolicy({ allow: ['other'], deny: ['review'] });
    const { tools, denied } = expose(['{"name":"review"}'], { kind: 'prompts', policy });
    expect(tools.map(({ exposed }) => exposed)).toEqual(['k__review']);
    expect(denied).toEqual([]);
  });
});

describe.each([
  ['resources', 'uri'],
  ['templates', 'uriTemplate'],
] as const)('an entry of %s', (kind, member) => {
  it.each(['file:///a%20b', 'x://h/{id}', 'a__b', 'k__x', 'x'.repeat(300)])('keeps its URI %s and its name', (uri) => {
    const entry = `{ "name" : "n\\u0061me", "${member}" : ${JSON.stringify(uri)} ,"size":1.0}`;
    const { tools, entries } = expose([entry], { kind });
    expect(entries).toEqual([entry]);
    expect(tools[0]).toMatchObject({ exposed: uri, original: uri });
  });

  it('loses only members that must not be null', () => {
    const entry = `{"title":null,"${member}":"x:1", "name":"n","x":null,"mimeType":null}`;
    expect(expose([entry], { kind }).entries).toEqual([`{"${member}":"x:1", "name":"n","x":null}`]);
  });

  it('is listed once, however many names it has', () => {
    const { entries, withheld } = expose(
      [`{"${member}":"x:1","name":"a"}`, `{"${member}":"x:1","name":"b"}`, `{"${member}":"x:2","name":"a"}`],
      { kind },
    );
    expect(entries).toEqual([`{"${member}":"x:1","name":"a"}`, `{"${member}":"x:2","name":"a"}`]);
    expect(withheld).toEqual([
      { name: 'x:1', reason: 'the server lists this name twice; only the first entry is used' },
    ]);
  });

  it('is listed with its title or URI if it has no name', () => {
    const texts = [`{"${member}":"x:1", "x":1.0}`, `{"${member}":"x:2","name":7,"title":"t"}`];
    const { entries, repaired } = expose(texts, { kind });
    expect(entries).toEqual([
      `{"name":"x:1","${member}":"x:1", "x":1.0}`,
      `{"${member}":"x:2","name":"t","title":"t"}`,
    ]);
    expect(repaired.map(({ name }) => name)).toEqual(['x:1', 'x:2']);
  });

  it('is withheld with a name that hides characters, and still belongs to its server', () => {
    const { tools, withheld } = expose([`{"${member}":"x:1","name":"\\u200b"}`], { kind });
    expect(tools).toEqual([{ exposed: 'x:1', original: 'x:1', entry: undefined }]);
    expect(withheld).toEqual([{ name: 'x:1', reason: 'its name hides characters' }]);
  });
});
