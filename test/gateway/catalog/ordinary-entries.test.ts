import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LIST_KINDS, type ListKind } from '../../../src/wire/mcp/methods.js';
import { exposing } from '../../support/exposing.js';
import { repetitions } from '../../support/repetitions.js';

/** The same entry with one letter of its last key escaped, so that the text is not ordinary. */
const unusual = (text: string) => text.replace(/"x-last":1\}$/, '"x-l\\u0061st":1}');

/** The meaning of the exposed entries, whatever their notation. */
function meaning(kind: ListKind, texts: readonly string[]) {
  const { entries, ...rest } = exposing(texts, { kind, deny: ['denied'] });
  const read = entries.map(({ entry, ui, ...names }) => ({
    ...names,
    entry: entry && JSON.parse(Buffer.from(entry).toString().replace('\\u0061', 'a')),
    text: entry && Buffer.from(entry).toString().replace('\\u0061', 'a'),
    ui: ui?.map(({ uri, alias }) => ({ uri, alias })),
  }));
  return { entries: read, ...rest };
}

const text = fc.constantFrom(
  'a',
  'b\nc',
  '\u200b',
  'é',
  'ui://x/y',
  '"',
  '\\u0041',
  'x'.repeat(60),
  'denied',
  '',
  '\u0007',
);
const name = fc.oneof({ weight: 5, arbitrary: fc.constantFrom('read', 'write', 'a.b', 'a b', 'a"b', 'a\\b') }, text);
const { schema } = fc.letrec((tie) => ({
  schema: fc.record(
    {
      type: fc.constantFrom('object', 'string'),
      properties: fc.dictionary(fc.constantFrom('name', 'limit', '$ref'), tie('schema'), { maxKeys: 2 }),
      $ref: fc.constantFrom('#', '#/properties/name', 'x'),
      allOf: fc.array(tie('schema'), { maxLength: 2 }),
      description: text,
    },
    { requiredKeys: ['type'], noNullPrototype: true },
  ),
}));
const deep = fc.nat({ max: 40 }).map((levels) => {
  let value: object = { type: 'object' };
  for (let level = 1; level < levels; level += 1) value = { type: 'object', not: value };
  return value;
});
const members: Record<string, fc.Arbitrary<unknown>> = {
  description: text,
  title: fc.oneof(text, fc.constant(null)),
  annotations: fc.constantFrom({ readOnlyHint: true }, { name: 'x' }),
  outputSchema: fc.oneof(schema, deep),
  _meta: fc.record({ ui: fc.record({ resourceUri: text }), name: text }),
  execution: fc.constantFrom({ taskSupport: 'required' }, 1),
  size: fc.nat(),
};
/** The text of an entry. The name is the first member, a later one, or there twice. */
const entry = fc
  .tuple(
    fc.constantFrom('name', 'uri', 'uriTemplate'),
    name,
    fc.shuffledSubarray(Object.keys(members), { maxLength: 3 }),
    fc.oneof(schema, deep),
    fc.constantFrom('first', 'later', 'twice'),
  )
  .chain(([identity, value, keys, inputSchema, place]) =>
    fc.tuple(...keys.map((key) => members[key] ?? fc.constant(1))).map((values) => {
      const rest = [...keys.map((key, at) => [key, values[at]]), ['inputSchema', inputSchema], ['name', 'n']];
      if (identity === 'name') rest.pop();
      const own = [identity, value];
      const all = place === 'first' ? [own, ...rest] : place === 'later' ? [...rest, own] : [own, ...rest, own];
      return `{${[...all, ['x-last', 1]].map(([key, each]) => `${JSON.stringify(key)}:${JSON.stringify(each)}`).join()}}`;
    }),
  );

describe('an ordinary entry', () => {
  it('is checked and renamed just as one with an escaped letter', () => {
    const numRuns = repetitions({ full: 5_000, short: 100 });
    fc.assert(
      fc.property(fc.constantFrom(...LIST_KINDS), fc.array(entry, { maxLength: 4 }), (kind, texts) => {
        expect(texts.every((each) => each !== unusual(each))).toBe(true);
        expect(meaning(kind, texts)).toEqual(meaning(kind, texts.map(unusual)));
      }),
      { numRuns },
    );
  });
});
