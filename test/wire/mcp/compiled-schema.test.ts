import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { findCompileFault } from '../../../src/wire/mcp/compiled-schema.js';
import { repetitions } from '../../support/repetitions.js';

/** Whether clients on the first generation of the official SDK compile the schema. */
function compiles(schema: object): boolean {
  // Ajv warns of unknown formats.
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  try {
    new AjvJsonSchemaValidator().getValidator(schema as never);
    return true;
  } catch {
    return false;
  } finally {
    warn.mockRestore();
  }
}

const SCHEMA_KEYWORDS = ['not', 'if', 'then', 'else', 'propertyNames', 'additionalProperties', 'contains', 'items'];
const LIST_KEYWORDS = ['allOf', 'anyOf', 'oneOf', 'items'];
const MAP_KEYWORDS = ['properties', 'patternProperties', 'dependencies', '$defs', 'definitions'];
const OTHER_KEYWORDS = [
  ...['type', 'nullable', 'enum', 'const', 'pattern', 'format', 'formatMinimum', 'required', 'uniqueItems', 'maximum'],
  ...[
    'minLength',
    'maxItems',
    'minProperties',
    'multipleOf',
    'exclusiveMinimum',
    'id',
    '$ref',
    '$anchor',
    '$dynamicAnchor',
    'title',
    'x-y',
    'examples',
  ],
];
const VALUE = fc.constantFrom<unknown>(
  ...[null, true, false, 0, 1.5, '', 'x', '[', 'a-z', '\\-', 'string', 'object', 'null', 'date', 'email', [], {}],
  ...[['string'], ['string', 'null'], ['x'], [1], [null], { a: 1 }, { a: null }],
  ...[
    '#',
    '#/',
    '#/$defs/a',
    '#/definitions/b',
    '#/properties/a',
    '#/items',
    '#/none',
    '#none',
    'other',
    'http://json-schema.org/draft-07/schema#',
  ],
);
const NAME = fc.constantFrom('a', 'b', 'x y', '[');

const { schema: SCHEMA } = fc.letrec<{ schema: object; inner: unknown }>((tie) => ({
  inner: fc.oneof({ maxDepth: 3 }, { weight: 6, arbitrary: tie('schema') }, { weight: 1, arbitrary: VALUE }),
  schema: fc
    .array(
      fc.oneof(
        { maxDepth: 3 },
        { weight: 4, arbitrary: fc.tuple(fc.constantFrom(...OTHER_KEYWORDS), VALUE) },
        { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...SCHEMA_KEYWORDS), tie('inner')) },
        { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...LIST_KEYWORDS), fc.array(tie('inner'), { maxLength: 3 })) },
        {
          weight: 2,
          arbitrary: fc.tuple(fc.constantFrom(...MAP_KEYWORDS), fc.dictionary(NAME, tie('inner'), { maxKeys: 2 })),
        },
      ),
      { maxLength: 3 },
    )
    .map((members) => Object.fromEntries(members)),
}));

describe('a schema', () => {
  it('has a fault exactly if clients do not compile it', () => {
    fc.assert(
      fc.property(SCHEMA, (schema) => {
        expect(findCompileFault(schema as never) === undefined).toBe(compiles(schema));
      }),
      { numRuns: repetitions({ short: 300, full: 20_000 }) },
    );
  });

  it.each([
    [{ properties: { a: { minimum: '1' } } }, 'has a malformed "minimum"'],
    [{ properties: { a: null } }, 'has null in place of a schema'],
    [{ properties: { a: { required: true } } }, 'has a malformed "required"'],
    [{ id: 'x' }, 'has a malformed "id"'],
    [{ $id: 7, type: 'object' }, 'has a malformed "$id"'],
    [{ anyOf: [{ type: 'text' }] }, 'has an unknown "type"'],
    [{ type: 'null', nullable: false }, 'has a "nullable" that does not fit its type'],
    [{ nullable: true, oneOf: [] }, 'has a "nullable" that does not fit its type'],
    [{ items: { enum: [] } }, 'has an empty "enum"'],
    [{ pattern: '[' }, 'has the pattern "[", which is not valid'],
    [{ pattern: '\\-' }, 'has the pattern "\\\\-", which is not valid'],
    [{ patternProperties: { '(': { type: 'string' } } }, 'has the pattern "(", which is not valid'],
    [{ patternProperties: { '(': {} }, additionalProperties: false }, 'has the pattern "(", which is not valid'],
    [{ properties: { a: { $ref: '#/$defs/a' } } }, 'refers to "#/$defs/a", which it does not have'],
    [{ $ref: 'https://example.org/a' }, 'refers to "https://example.org/a", which it does not have'],
    [{ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, 'refers to itself without end'],
    [{ $defs: { a: { $anchor: '#a' } } }, 'has the anchor "#a", which is not valid'],
    [{ items: [{ $anchor: 'a' }, { examples: { $dynamicAnchor: 'a' } }] }, 'has the anchor "a" twice'],
    [{ format: 'email', formatMinimum: 'a' }, 'has limits for a "format" without an order'],
    [{ formatMaximum: '2020-01-01' }, 'has limits for a "format" without an order'],
  ])('%j %s', (schema, fault) => {
    expect([findCompileFault(schema as never), compiles(schema)]).toEqual([fault, false]);
  });

  it.each([
    { $defs: { a: { minimum: '1' } } },
    { 'x-vendor': { pattern: '[' }, title: 7, examples: null },
    { anyOf: [{}, { minimum: '1' }] },
    { if: { minimum: '1' } },
    { patternProperties: { '(': {} } },
    { $ref: '#a', $defs: { x: { $anchor: 'a' } } },
    { $anchor: '#', default: { $anchor: '#' }, examples: [{ $anchor: '#' }], allOf: [{ $anchor: 7 }] },
    { $ref: '#/$defs/a~1b%20c', $defs: { 'a/b c': {} } },
    { $ref: 'http://json-schema.org/draft-07/schema#' },
    { $id: 'https://example.org/a', $ref: 'a#/$defs/b', $defs: { b: {} } },
    { properties: { children: { items: { $ref: '#' } } } },
    { format: 'date', formatMinimum: '2020-01-01' },
    { format: 'no format of any kind', formatMaximum: 'x' },
    { type: 'null', nullable: true },
  ])('%j has none', (schema) => {
    expect([findCompileFault(schema), compiles(schema)]).toEqual([undefined, true]);
  });

  it('runs no pattern', () => {
    const schema = { pattern: '^(a+)+$', examples: ['a'.repeat(100)], default: `${'a'.repeat(100)}b` };
    expect(findCompileFault(schema)).toBeUndefined();
  });
});
