import { describe, expect, it } from 'vitest';
import { checkEntry } from '../../src/mcp/entry-check.js';
import { cpuMsOf } from '../support/cpu-time.js';

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
    expect(checkEntry('tools', tool(members))).toEqual({ kind: 'sound', name: 'read', nullMembers: [] });
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
    expect(checkEntry('tools', JSON.parse(text))).toEqual({ kind: 'sound', name: 't', nullMembers: [] });
  });

  it.each(['title', 'description', 'outputSchema', 'annotations', 'icons', 'execution', '_meta'])(
    'may have a %s that is null, which is to be left out',
    (member) => {
      expect(checkEntry('tools', tool({ [member]: null }))).toEqual({
        kind: 'sound',
        name: 'read',
        nullMembers: [member],
      });
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
    expect(checkEntry(list, entry)).toMatchObject({ kind: 'sound', nullMembers: [member] });
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
    [{ inputSchema: {} }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: [] }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: true }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: { type: ['object'] } }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: { type: 'array' } }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: { ...schema, properties: [] } }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: { ...schema, properties: null } }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: { ...schema, required: true } }, 'inputSchema is not a schema of type "object"'],
    [{ inputSchema: { ...schema, required: [1] } }, 'inputSchema is not a schema of type "object"'],
    [{ outputSchema: { type: 'array' } }, 'outputSchema is not a schema of type "object"'],
    [{ title: 1 }, 'title is not a string'],
    [{ description: {} }, 'description is not a string'],
    [{ annotations: [] }, 'annotations is not an object'],
    [{ icons: {} }, 'icons is not a list'],
    [{ execution: 'sync' }, 'execution is not an object'],
    [{ _meta: 0 }, '_meta is not an object'],
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
    expect(checkEntry(list, entry)).toEqual({ kind: 'sound', name: 'p', nullMembers: [] });
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
    expect(checkEntry(list, { ...entry, ...nulls, 'x-vendor': null })).toEqual({
      kind: 'sound',
      name: 'p',
      nullMembers: members,
    });
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
    ['prompts', { title: 1 }, 'title is not a string'],
    ['prompts', { arguments: {} }, 'arguments is not a list of named ones'],
    ['prompts', { arguments: ['a'] }, 'arguments is not a list of named ones'],
    ['prompts', { arguments: [{ name: 'a' }, {}] }, 'arguments is not a list of named ones'],
    ['prompts', { arguments: [{ name: null }] }, 'arguments is not a list of named ones'],
    ['prompts', { icons: {} }, 'icons is not a list'],
    ['resources', { name: undefined }, 'name is not a string'],
    ['resources', { name: null }, 'name is not a string'],
    ['resources', { size: '7' }, 'size is not a number'],
    ['resources', { mimeType: [] }, 'mimeType is not a string'],
    ['resources', { annotations: [] }, 'annotations is not an object'],
    ['resources', { _meta: 0 }, '_meta is not an object'],
    ['templates', { name: null }, 'name is not a string'],
    ['templates', { description: 7 }, 'description is not a string'],
    ['templates', { annotations: 'x' }, 'annotations is not an object'],
  ] as const)('of %s with %j: %s', (list, members, reason) => {
    const entry = { name: 'p', ...(list === 'resources' ? { uri: 'p' } : { uriTemplate: 'p' }), ...members };
    expect(checkEntry(list, entry)).toEqual({ kind: 'unsound', name: 'p', reason });
  });
});

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
