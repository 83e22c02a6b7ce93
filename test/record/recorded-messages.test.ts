import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isRecord } from '../../src/json/json-value.js';
import { canonical, matchesRedacted, matchKey, messagesIn, withToken } from '../../src/record/recorded-messages.js';

/** The same value with the members of all objects in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, each]) => [key, reversed(each)]),
  );
}

describe('the key of a request', () => {
  it('does not depend on the order of members, on spaces or on `_meta`', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (params, meta) => {
        const { _meta, ...rest } = params;
        const key = matchKey('tools/call', rest);
        expect(matchKey('tools/call', { ...(reversed(rest) as object), _meta: meta })).toBe(key);
        expect(matchKey('tools/call', JSON.parse(JSON.stringify(rest, undefined, 2)))).toBe(key);
      }),
    );
  });

  it('differs if a value differs', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const isSame = JSON.stringify(reversed(reversed(one))) === JSON.stringify(reversed(reversed(other)));
        fc.pre(!isSame && canonical(one) !== canonical(other));
        expect(matchKey('m', { a: one })).not.toBe(matchKey('m', { a: other }));
      }),
    );
  });

  it('is JSON that means the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonical(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('is the same without parameters, with empty ones, and with nothing but `_meta`', () => {
    expect([undefined, {}, { _meta: { progressToken: 1 } }].map((params) => matchKey('tools/list', params))).toEqual(
      Array(3).fill('tools/list'),
    );
  });

  it('keeps the `_meta` of what is inside of the parameters', () => {
    expect(matchKey('m', { a: { _meta: 1 } })).not.toBe(matchKey('m', { a: {} }));
  });
});

describe('a removed secret', () => {
  it('stands for any text, and only in its place', () => {
    const matches = (recorded: string, text: string) => matchesRedacted(recorded, text, '[redacted]');
    expect(matches('a [redacted] b [redacted]', 'a 1 b 2')).toBe(true);
    expect(matches('[redacted]', '')).toBe(true);
    expect(matches('a [redacted] b', 'a 1 c')).toBe(false);
    expect(matches('ab[redacted]ba', 'aba')).toBe(false);
    expect(matches('a', 'b')).toBe(false);
  });
});

describe('the messages of a line', () => {
  it('are those of a batch, or one, or none', () => {
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    expect(messagesIn(ping)).toHaveLength(1);
    expect(messagesIn(`[${ping},${ping}]`)).toHaveLength(2);
    expect(messagesIn('no message')).toEqual([]);
  });

  it('keep everything but the token that is replaced', () => {
    const [message] = messagesIn('{ "jsonrpc":"2.0", "result":{"n":9007199254740993, "f":1.0}, "id" : 7 }');
    if (message?.kind !== 'response') throw new Error('This is a response');
    expect(withToken(message, message.id, '"x"')).toBe(
      '{ "jsonrpc":"2.0", "result":{"n":9007199254740993, "f":1.0}, "id" : "x" }',
    );
  });
});
