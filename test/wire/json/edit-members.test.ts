import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editMembers, type MemberChanges, REMOVED, rewriteObject } from '../../../src/wire/json/edit-members.js';
import { readText, toBytes } from '../../../src/wire/json/json-text.js';
import { splice } from '../../../src/wire/json/splice.js';
import { bytesOf } from '../../support/wire.js';

function edited(object: string, changes: MemberChanges): string {
  const bytes = toBytes(` ${object} `);
  const span = { start: 1, end: bytes.length - 1 };
  const out = splice({ bytes, span, edits: editMembers(bytes, span, changes) });
  return readText(out, { start: 0, end: out.length });
}

const removes = (name: string) => name.startsWith('x');

describe('edits of the members of an object', () => {
  it.each([
    ['{"x":1}', '{}'],
    ['{ "x" : 1 }', '{  }'],
    ['{"a":1,"x":2}', '{"a":1}'],
    ['{"x":1,"a":2}', '{"a":2}'],
    ['{"a":1, "x":{"b":[1]}, "x2":3 ,"c":4}', '{"a":1, "c":4}'],
    ['{"x":1,"a":2,"x":3}', '{"a":2}'],
    ['{"a":1.0}', '{"a":1.0}'],
    ['{}', '{}'],
  ])('remove members from %s', (before, after) => {
    expect(edited(before, { removes })).toBe(after);
  });

  it('add members at the end', () => {
    const add = toBytes('"n":1');
    expect(edited('{}', { add })).toBe('{"n":1}');
    expect(edited('{"a":1}', { add })).toBe('{"a":1,"n":1}');
    expect(edited('{"x":1,"y":2}', { removes, add })).toBe('{"y":2,"n":1}');
    expect(edited('{"x":1}', { removes, add })).toBe('{"n":1}');
  });
});

const SPACE = fc.constantFrom('', '', ' ', '\n\t', ' \r ');

/** Names that are short enough to meet, some of them with escapes. */
const NAME = fc.constantFrom(
  ...[
    ['a', '"a"'],
    ['a', '"\\u0061"'],
    ['b', '"b"'],
    ['é"', '"\\u00e9\\""'],
    ['é"', '"é\\u0022"'],
    ['', '""'],
    ['__proto__', '"__proto__"'],
  ],
) as fc.Arbitrary<[string, string]>;

const VALUE = fc.oneof(fc.json(), fc.constantFrom('9007199254740993', '1.0', '1E400', '{"a":1, "a":2}', '[ ]', '"}"'));

/** An object as some client writes it: its text, and its members with their own text. */
const WRITTEN = fc
  .tuple(SPACE, fc.array(fc.tuple(NAME, SPACE, SPACE, VALUE, SPACE, SPACE), { maxLength: 6 }))
  .map(([inside, members]) => {
    const texts = members.map(([[name, key], a, b, value]) => ({ name, text: `${key}${a}:${b}${value}`, value }));
    const body = members.map(
      ([, , , , after, before], index) => `${index === 0 ? inside : before}${texts[index]?.text}${after}`,
    );
    return { text: `{${members.length === 0 ? inside : body.join(',')}}`, members: texts };
  });

/** The members of an object in their order, duplicates included, each with the text that it has. */
function membersIn(text: string): string[] {
  const found: string[] = [];
  const bytes = bytesOf(text);
  rewriteObject(
    bytes,
    { start: 0, end: bytes.length },
    {
      change: (name, { start, end }) => {
        found.push(`${name}=${Buffer.from(bytes.subarray(start, end))}`);
        return undefined;
      },
    },
  );
  return found;
}

function rewritten(
  text: string,
  removed: readonly string[],
  added: readonly (readonly [string, string])[] = [],
): string {
  const before = '{"x":';
  const bytes = bytesOf(`${before}${text}}`);
  const out = rewriteObject(
    bytes,
    { start: before.length, end: bytes.length - 1 },
    {
      change: (name) => (removed.includes(name) ? REMOVED : undefined),
      insert: () => added.map(([name, value]) => toBytes(`${JSON.stringify(name)}:${value}`)),
    },
  );
  return Buffer.from(out).toString();
}

describe('an object with other members', () => {
  it('stays as it is without a change, byte for byte', () => {
    fc.assert(
      fc.property(WRITTEN, ({ text }) => {
        expect(rewritten(text, [])).toBe(text);
      }),
    );
  });

  it('is JSON with the members that were added, then those that were kept, each as it was written', () => {
    const added = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'n', 'é"'), fc.json()), { selector: ([name]) => name });
    fc.assert(
      fc.property(
        WRITTEN,
        fc.subarray(['a', 'é"', '', '__proto__', 'x']),
        added,
        ({ text, members }, removed, news) => {
          const out = rewritten(text, removed, news);
          expect(() => JSON.parse(out)).not.toThrow();
          const kept = members.filter(({ name }) => !removed.includes(name));
          expect(membersIn(out)).toEqual([
            ...news.map(([name, value]) => `${name}=${value}`),
            ...kept.map(({ name, value }) => `${name}=${value}`),
          ]);
          // Key, colon and white space between them belong to a member.
          let at = 0;
          for (const each of kept) {
            at = out.indexOf(each.text, at);
            expect(at).toBeGreaterThan(0);
            at += each.text.length;
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it.each([
    ['{"a":1}', '{}'],
    ['{ "a":1 , "b" : 2 }', '{ "b" : 2 }'],
    ['{"b":2 ,\n"a":1}', '{"b":2}'],
    ['{"b":2, "a":1, "c":3,"\\u0061":4 }', '{"b":2, "c":3 }'],
  ])('loses a member with its comma: %s', (text, expected) => {
    expect(rewritten(text, ['a'])).toBe(expected);
  });

  it('gets a value in place of each of its values of that name', () => {
    const bytes = bytesOf('{"a": 1,"b":2, "a" :3}');
    const out = rewriteObject(
      bytes,
      { start: 0, end: bytes.length },
      { change: (name) => (name === 'a' ? toBytes('true') : undefined) },
    );
    expect(Buffer.from(out).toString()).toBe('{"a": true,"b":2, "a" :true}');
  });
});
