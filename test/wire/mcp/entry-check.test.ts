import { describe, expect, it } from 'vitest';
import { checkEntry } from '../../../src/wire/mcp/entry-check.js';
import { cpuMsOf } from '../../support/cpu-time.js';

const schema = { type: 'object' };
const tool = (members: Record<string, unknown> = {}) => ({ name: 'read', inputSchema: schema, ...members });

function nested(levels: number): unknown {
  let value: unknown = {};
  for (let level = 1; level < levels; level += 1) value = { inner: value };
  return value;
}

/** A schema with this number of levels. */
function deepSchema(levels: number): unknown {
  return { type: 'object', properties: nested(levels - 1) };
}

const named = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, {}]));

/** Places of subschemas. Each function makes a schema with `count` of them. */
const SPREADS: [string, (count: number) => object][] = [
  ['by name', (count) => ({ properties: named(count) })],
  ['in a list', (count) => ({ anyOf: Array.from({ length: count }, () => ({})) })],
  ['that are true or false', (count) => ({ allOf: Array.from({ length: count }, () => true) })],
  ['below definitions', (count) => ({ $defs: { all: { items: { properties: named(count - 2) } } } })],
  ['called like keywords', (count) => ({ properties: { items: {}, not: { dependentSchemas: named(count - 2) } } })],
];

describe('a sound tool', () => {
  it.each([
    ['has only a name and a schema', {}],
    ['has every member there is', fullTool()],
    ['has members that nobody knows', { 'x-vendor': null, category: 7 }],
    ['has a schema with a reference to itself', { inputSchema: { ...schema, properties: { a: { $ref: '#' } } } }],
    ['has a schema with a pattern that no machine should run', { inputSchema: { ...schema, pattern: '^(a+)+$' } }],
    ['has a schema as deep as allowed', { inputSchema: deepSchema(32) }],
    ['has a schema of almost 64 KiB', { inputSchema: { ...schema, description: 'x'.repeat(65_000) } }],
  ])('%s', (_, members) => {
    expect(checkEntry('tools', tool(members))).toEqual(sound('read'));
  });

  it.each(SPREADS)('has a schema with a thousand subschemas, %s', (_, spread) => {
    expect(checkEntry('tools', tool({ inputSchema: { ...schema, ...spread(1_000) } })).kind).toBe('sound');
  });

  it('has a schema with more than a thousand objects that are no schemas', () => {
    const values = Array.from({ length: 1_200 }, () => ({ properties: { a: {} } }));
    const members = { enum: values, examples: values.slice(1_000), properties: { a: { default: { items: [{}] } } } };
    const inputSchema = { ...schema, ...members, required: Array.from({ length: 1_001 }, () => 'a') };
    expect(checkEntry('tools', tool({ inputSchema })).kind).toBe('sound');
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'a b', '😀'])('may be called %s', (name) => {
    expect(checkEntry('tools', tool({ name }))).toMatchObject({ kind: 'sound', name });
  });

  it('may have members and properties called like those of every object', () => {
    const text =
      '{"name":"t","__proto__":{"title":1},"constructor":null,"inputSchema":{"type":"object","properties":{"__proto__":{},"constructor":{}},"required":["__proto__"]}}';
    expect(checkEntry('tools', JSON.parse(text))).toEqual(sound('t'));
  });

  it.each(['title', 'description', 'outputSchema', 'annotations', 'icons', 'execution', '_meta'])(
    'may have a %s that is null, which is to be left out',
    (member) => {
      expect(checkEntry('tools', tool({ [member]: null }))).toEqual(sound('read', { [member]: undefined }));
    },
  );

  it.each([
    ['tools', 'Name'],
    ['tools', 'DESCRIPTION'],
    ['tools', 'InputSchema'],
    ['tools', 'deſcription'],
    ['tools', '_META'],
    ['prompts', 'Arguments'],
    ['resources', 'Uri'],
    ['resources', 'MimeType'],
    ['templates', 'URITEMPLATE'],
  ] as const)('of %s has no %s, because clients that ignore case take the last one', (list, member) => {
    const entry = {
      name: 'n',
      uri: 'u:u',
      uriTemplate: 'u:u',
      inputSchema: { type: 'object' },
      [member]: 'x',
      other: 1,
    };
    expect(checkEntry(list, entry)).toMatchObject({ kind: 'sound', changes: new Map([[member, undefined]]) });
  });
});

describe('an unsound tool', () => {
  it.each([
    [null, 'is not an object'],
    ['read', 'is not an object'],
    [[], 'is not an object'],
    [{}, 'has no name'],
    [{ name: '' }, 'has no name'],
    [{ name: 7, inputSchema: schema }, 'has no name'],
    [{ name: null }, 'has no name'],
  ])('without a name is %j, which %s', (value, reason) => {
    expect(checkEntry('tools', value)).toEqual({ kind: 'unsound', name: undefined, reason });
  });

  it.each([
    [{ inputSchema: undefined }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: null }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: true }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: { type: 'array' } }, 'inputSchema is not a schema of type "object"'],
    [{ outputSchema: { type: 'array' } }, 'outputSchema is not a schema of type "object"'],
    [{ outputSchema: { type: ['object', 'array'] } }, 'outputSchema is not a schema of type "object"'],
  ])('with %j: %s', (members, reason) => {
    expect(checkEntry('tools', tool(members))).toEqual({ kind: 'unsound', name: 'read', reason });
  });

  it.each([33, 400])('has a schema of %i levels', (levels) => {
    const reason = 'inputSchema nests deeper than 32';
    expect(checkEntry('tools', tool({ inputSchema: deepSchema(levels) }))).toEqual({
      kind: 'unsound',
      name: 'read',
      reason,
    });
  });

  it.each(SPREADS)('has a schema with more than a thousand subschemas, %s', (_, spread) => {
    const fault = { kind: 'unsound', name: 'read', reason: 'outputSchema has more than 1000 subschemas' };
    expect(checkEntry('tools', tool({ outputSchema: { ...schema, ...spread(1_001) } }))).toEqual(fault);
  });

  it('has a schema of more than 64 KiB', () => {
    const verdict = checkEntry('tools', tool({ inputSchema: { ...schema, description: 'x'.repeat(66_000) } }));
    expect(verdict).toMatchObject({ kind: 'unsound', reason: 'inputSchema is larger than 65536 bytes' });
  });

  it('has a schema whose bytes, and not its characters, are more than 64 KiB', () => {
    const verdict = checkEntry('tools', tool({ inputSchema: { ...schema, description: '猫'.repeat(30_000) } }));
    expect(verdict).toMatchObject({ kind: 'unsound', reason: 'inputSchema is larger than 65536 bytes' });
  });

  it('is found in a moment, however hostile its schema', () => {
    const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`p${index}`, { type: 'string' }]));
    const hostile = tool({ inputSchema: { ...schema, properties: wide } });
    expect(cpuMsOf(() => expect(checkEntry('tools', hostile).kind).toBe('unsound'))).toBeLessThan(1_000);
  });
});

describe('a sound entry of another list', () => {
  it.each([
    ['prompts', { name: 'p' }],
    ['prompts', { name: 'p', arguments: [] }],
    [
      'prompts',
      { name: 'p', title: '', description: '', icons: [], _meta: {}, arguments: [{ name: 'a', required: true }] },
    ],
    ['prompts', { name: 'p', inputSchema: 7, uri: 7, 'x-vendor': null }],
    ['resources', { uri: 'p', name: 'n' }],
    ['resources', { uri: 'p', name: '', mimeType: 'text/plain', size: 0, annotations: {}, icons: [], _meta: {} }],
    ['resources', { uri: 'p', name: 'n', uriTemplate: 7, 'x-vendor': null }],
    ['templates', { uriTemplate: 'p', name: 'n' }],
    ['templates', { uriTemplate: 'p', name: 'n', mimeType: 'x', annotations: {}, title: '', size: 'any' }],
  ] as const)('of %s is %j', (list, entry) => {
    expect(checkEntry(list, entry)).toEqual(sound('p'));
  });

  it.each([
    ['prompts', { name: 'p' }, ['title', 'description', 'icons', '_meta', 'arguments']],
    [
      'resources',
      { uri: 'p', name: 'n' },
      ['title', 'description', 'icons', '_meta', 'mimeType', 'annotations', 'size'],
    ],
    [
      'templates',
      { uriTemplate: 'p', name: 'n' },
      ['title', 'description', 'icons', '_meta', 'mimeType', 'annotations'],
    ],
  ] as const)('of %s may have members that are null, which are to be left out', (list, entry, members) => {
    const nulls = Object.fromEntries(members.map((member) => [member, null]));
    const changes = Object.fromEntries(members.map((member) => [member, undefined]));
    expect(checkEntry(list, { ...entry, ...nulls, 'x-vendor': null })).toEqual(sound('p', changes));
  });

  it.each(['resources', 'templates'] as const)('of %s goes by its URI, whatever its name', (list) => {
    const uri = 'x://a b/{é}';
    expect(checkEntry(list, { uri, uriTemplate: uri, name: 'other' })).toMatchObject({ kind: 'sound', name: uri });
  });
});

describe('an unsound entry of another list', () => {
  it.each([
    ['prompts', {}, 'has no name'],
    ['prompts', { name: '' }, 'has no name'],
    ['prompts', { uri: 'p' }, 'has no name'],
    ['resources', { name: 'n' }, 'has no uri'],
    ['resources', { uri: null, name: 'n' }, 'has no uri'],
    ['resources', { uriTemplate: 'p', name: 'n' }, 'has no uri'],
    ['templates', { uri: 'p', name: 'n' }, 'has no uriTemplate'],
    ['templates', { uriTemplate: 7, name: 'n' }, 'has no uriTemplate'],
    ['templates', [], 'is not an object'],
    ['resources', null, 'is not an object'],
    ['prompts', 'p', 'is not an object'],
  ] as const)('of %s that nothing identifies is %j, which %s', (list, entry, reason) => {
    expect(checkEntry(list, entry)).toEqual({ kind: 'unsound', name: undefined, reason });
  });

  it.each([
    [{}, 'arguments is not a list'],
    [['a'], 'arguments[0] is not an object'],
    [[{ name: 'a' }, {}], 'arguments[1].name is not a string'],
    [[{ name: null }], 'arguments[0].name is not a string'],
  ])('of prompts with the arguments %j: %s', (args, reason) => {
    expect(checkEntry('prompts', { name: 'p', arguments: args })).toEqual({ kind: 'unsound', name: 'p', reason });
  });
});

describe('a malformed part of a tool', () => {
  const within = (members: object) => ({ inputSchema: { ...schema, ...members } });
  it.each([
    [{ title: 1 }, { title: undefined }, 'title is not a string'],
    [{ description: {} }, { description: undefined }, 'description is not a string'],
    [{ annotations: [] }, { annotations: undefined }, 'annotations is not an object'],
    [{ icons: {} }, { icons: undefined }, 'icons is not a list'],
    [{ execution: 'sync' }, { execution: undefined }, 'execution is not an object'],
    [{ _meta: 0 }, { _meta: undefined }, '_meta is not an object'],
    [{ outputSchema: true }, { outputSchema: undefined }, 'outputSchema is not an object'],
    [{ outputSchema: { a: 1 } }, { outputSchema: { a: 1, ...schema } }, 'outputSchema has no type "object"'],
    [{ outputSchema: { type: ['object', 'null'] } }, { outputSchema: schema }, 'outputSchema has no type "object"'],
    [{ inputSchema: {} }, { inputSchema: schema }, 'inputSchema has no type "object"'],
    [{ inputSchema: [] }, { inputSchema: schema }, 'inputSchema has no type "object"'],
    [{ inputSchema: { type: ['object', 'array'] } }, { inputSchema: schema }, 'inputSchema has no type "object"'],
    [within({ properties: [] }), { inputSchema: schema }, 'inputSchema.properties is not an object'],
    [within({ required: true }), { inputSchema: schema }, 'inputSchema.required is not a list'],
    [within({ required: [1] }), { inputSchema: schema }, 'inputSchema.required[0] is not a string'],
    [within({ required: ['a', 1] }), within({ required: ['a'] }), 'inputSchema.required[1] is not a string'],
    [within({ $schema: 7 }), { inputSchema: schema }, 'inputSchema.$schema is not a string'],
    [
      within({ properties: { a: 'string' } }),
      within({ properties: { a: {} } }),
      'inputSchema.properties.a is not an object',
    ],
    [
      within({ properties: { a: false } }),
      within({ properties: { a: { not: {} } } }),
      'inputSchema.properties.a is not an object',
    ],
    [
      within({ properties: { a: { items: [{ maximum: Number.POSITIVE_INFINITY, minimum: -1 }] } } }),
      within({ properties: { a: { items: [{ maximum: Number.MAX_VALUE, minimum: -1 }] } } }),
      'inputSchema.properties.a has a number that is too large',
    ],
    [
      { icons: [{ src: 'a', sizes: 'any', x: 1 }, { src: 7 }] },
      { icons: [{ src: 'a', x: 1 }] },
      'icons[0].sizes is not a list, and 1 more',
    ],
    [
      { annotations: { title: 7, readOnlyHint: true, idempotentHint: null, x: null } },
      { annotations: { readOnlyHint: true, x: null } },
      'annotations.title is not a string',
    ],
  ])('is left out or replaced: %j becomes %j, because %s', (members, changes, reason) => {
    expect(checkEntry('tools', tool(members))).toEqual(sound('read', changes, reason));
  });

  it('is said in few words, however long its path is', () => {
    const verdict = checkEntry('tools', tool(within({ properties: { ['x'.repeat(5_000)]: 1 } })));
    expect(verdict).toMatchObject({ repaired: expect.stringMatching(/^inputSchema\.properties\.x{100,180}…$/) });
  });

  it('that is null is left out without a word, at any depth', () => {
    const members = { icons: [{ src: 'a', mimeType: null }], inputSchema: { ...schema, properties: null } };
    expect(checkEntry('tools', tool(members))).toEqual(sound('read', { icons: [{ src: 'a' }], inputSchema: schema }));
  });

  it('may be the output of a modern server only if it is no schema', () => {
    for (const outputSchema of [{ type: 'array' }, { anyOf: [] }, { type: ['object', 'array'] }])
      expect(checkEntry('tools', tool({ outputSchema }), true)).toEqual(sound('read'));
    expect(checkEntry('tools', tool({ outputSchema: { type: 'array', $schema: 1 } }), true)).toMatchObject({
      changes: new Map([['outputSchema', { type: 'array' }]]),
    });
  });
});

describe('a malformed part of an entry of another list', () => {
  const annotated = (annotations: object) => ({ annotations });
  it.each([
    ['prompts', { title: 1 }, { title: undefined }, 'title is not a string'],
    ['prompts', { icons: {} }, { icons: undefined }, 'icons is not a list'],
    [
      'prompts',
      { arguments: [{ name: 'a', required: 1, description: 2, title: 3 }] },
      { arguments: [{ name: 'a', title: 3 }] },
      'arguments[0].description is not a string, and 1 more',
    ],
    ['resources', { name: undefined }, { name: 'p' }, 'name is not a string'],
    ['resources', { name: 7, title: 't' }, { name: 't' }, 'name is not a string'],
    ['resources', { size: '7' }, { size: undefined }, 'size is not a number'],
    ['resources', { size: Number.POSITIVE_INFINITY }, { size: undefined }, 'size is not a number'],
    ['resources', { mimeType: [] }, { mimeType: undefined }, 'mimeType is not a string'],
    ['resources', annotated([]), { annotations: undefined }, 'annotations is not an object'],
    [
      'resources',
      annotated({ audience: ['all', 'user'] }),
      annotated({ audience: ['user'] }),
      'annotations.audience[0] is not "user" or "assistant"',
    ],
    [
      'resources',
      annotated({ audience: ['all'] }),
      annotated({}),
      'annotations.audience[0] is not "user" or "assistant"',
    ],
    ['resources', annotated({ priority: 1.1 }), annotated({}), 'annotations.priority is not a number from 0 to 1'],
    ['resources', { _meta: 0 }, { _meta: undefined }, '_meta is not an object'],
    ['templates', { name: null }, { name: 'p' }, 'name is not a string'],
    ['templates', { description: 7 }, { description: undefined }, 'description is not a string'],
    ['templates', annotated('x' as never), { annotations: undefined }, 'annotations is not an object'],
  ] as const)('of %s is left out or replaced: %j becomes %j, because %s', (list, members, changes, reason) => {
    const entry = { name: 'p', ...(list === 'resources' ? { uri: 'p' } : { uriTemplate: 'p' }), ...members };
    expect(checkEntry(list, entry)).toEqual(sound('p', changes, reason));
  });

  it.each([
    ['2024-02-29T23:59:59Z', true],
    ['2024-02-29T23:59:59.123456789+14:00', true],
    ['0000-02-29T00:00:00-23:59', true],
    ...['2023-02-29T00:00:00Z', '2024-04-31T00:00:00Z', '2024-13-01T00:00:00Z', '2024-00-01T00:00:00Z'].map(no),
    ...['2024-01-01', '2024-01-01T00:00:00', '2024-01-01T00:00Z', '2024-01-01 00:00:00Z', '2024-01-01T24:00:00Z'].map(
      no,
    ),
    ...['2024-01-01T00:00:60Z', '2024-01-01T00:00:00+24:00', '2024-01-01T00:00:00.Z', '2024-01-01T00:00:00z', ''].map(
      no,
    ),
  ] as const)('is no time of the last change: %s is one: %s', (lastModified, isOne) => {
    const entry = { uri: 'p', name: 'n', annotations: { lastModified } };
    const changes = isOne ? {} : { annotations: {} };
    const reason = isOne ? undefined : 'annotations.lastModified is not a time with date and offset';
    expect(checkEntry('resources', entry)).toEqual(sound('p', changes, reason));
  });
});

function no(value: string): readonly [string, boolean] {
  return [value, false];
}

/** The verdict on an entry that is sound, or becomes so by changes. */
function sound(name: string, changes: object = {}, repaired?: string) {
  return { kind: 'sound', name, changes: new Map(Object.entries(changes)), repaired };
}

function fullTool(): Record<string, unknown> {
  return {
    title: '',
    description: '',
    outputSchema: { type: 'object', properties: {}, required: [] },
    annotations: {},
    icons: [],
    execution: { taskSupport: 'optional' },
    _meta: {},
  };
}

describe('a schema that refers to itself', () => {
  const within = (inputSchema: object) => checkEntry('tools', tool({ inputSchema: { ...schema, ...inputSchema } }));
  const endless = { kind: 'unsound', name: 'read', reason: 'inputSchema refers to itself without end' };

  it.each([
    ['at once', { $ref: '#' }],
    ['twice over', { allOf: [{ $ref: '#' }, { $ref: '#' }] }],
    [
      'by way of definitions',
      { $ref: '#/$defs/a', $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } } },
    ],
    ['within a property', { properties: { a: { oneOf: [{ $ref: '#/properties/a' }] } } }],
    ['under an escaped name', { $defs: { 'a/b~c': { $ref: '#/$defs/a~1b~0c' } } }],
  ])('%s is withheld: a validation by it never ends', (_, inputSchema) => {
    expect(within(inputSchema)).toEqual(endless);
  });

  it('over more steps than anybody needs is withheld as well', () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 900 }, (_, index) => [`d${index}`, { $ref: `#/$defs/d${index + 1}` }]),
    );
    expect(within({ $defs })).toEqual(endless);
  });

  it.each([
    ['a tree', { properties: { children: { type: 'array', items: { $ref: '#' } } } }],
    [
      'a list',
      {
        $defs: { node: { properties: { next: { $ref: '#/$defs/node' } } } },
        properties: { head: { $ref: '#/$defs/node' } },
      },
    ],
    ['shared definitions', { $defs: { a: {} }, allOf: [{ $ref: '#/$defs/a' }, { $ref: '#/$defs/a' }] }],
    ['what is not there', { $ref: '#/$defs/none' }],
    ['what is elsewhere', { $ref: 'https://example.org/schema.json' }],
    ['a name of every object', { $ref: '#/__proto__/constructor' }],
  ])('as %s does is sound', (_, inputSchema) => {
    expect(within(inputSchema).kind).toBe('sound');
  });
});

describe('F41: what stalls those who look too closely', () => {
  it.each([
    ['a pattern that takes exponential time', { properties: { a: { type: 'string', pattern: '^(a+)+$' } } }, 'sound'],
    ['a reference to itself', { allOf: [{ $ref: '#' }, { $ref: '#' }] }, 'unsound'],
    ['512 levels', { properties: nested(512) }, 'unsound'],
    [
      'a thousand alternatives in each other',
      { anyOf: Array.from({ length: 999 }, () => ({ anyOf: [{}] })) },
      'unsound',
    ],
  ])('is looked at for less than a second: %s', (_, members, kind) => {
    const entry = tool({ inputSchema: { ...schema, ...members } });
    checkEntry('tools', entry);
    expect(cpuMsOf(() => expect(checkEntry('tools', entry).kind).toBe(kind))).toBeLessThan(1_000);
  });
});

describe('a name that hides characters', () => {
  it.each([
    ['tools', tool({ name: 'read\u200b' }), 'its name hides characters'],
    ['prompts', { name: '\u202epmorp' }, 'its name hides characters'],
    ['resources', { uri: 'x://\u{e0041}', name: 'x' }, 'its uri hides characters'],
    ['resources', { uri: 'x://y', name: '\u001b[31mred' }, 'its name hides characters'],
    ['templates', { uriTemplate: 'x://{y}', name: 'a\nb' }, 'its name hides characters'],
  ] as const)('is no name of %s', (list, entry, reason) => {
    expect(checkEntry(list, entry)).toMatchObject({ kind: 'unsound', reason });
  });

  it('is none that merely is no plain text', () => {
    expect(checkEntry('resources', { uri: 'x://é/猫', name: 'My ❤️ files 👩‍💻' }).kind).toBe('sound');
    expect(checkEntry('tools', tool({ description: 'hid\u200bden' })).kind).toBe('sound');
  });
});
