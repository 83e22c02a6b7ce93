import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editMembers, type MemberChanges } from '../../src/json/edit-members.js';
import { readText, toBytes } from '../../src/json/json-text.js';
import { splice } from '../../src/json/splice.js';

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

  it('leave the members that stay as a parser sees them', () => {
    const name = fc.constantFrom('a', 'b', 'x', 'xx', 'c"', 'x\\');
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.json())), fc.boolean(), (members, adds) => {
        const text = (list: readonly (readonly [string, string])[]) =>
          `{${list.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join()}}`;
        const stay = members.filter(([key]) => !removes(key));
        const all: readonly (readonly [string, string])[] = adds ? [...stay, ['new', '1']] : stay;
        const result = edited(text(members), { removes, add: adds ? toBytes('"new":1') : undefined });
        expect(result).toBe(text(all));
      }),
    );
  });
});
