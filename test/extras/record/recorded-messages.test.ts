import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { matchesRedacted, matchKey, messagesIn, replaceToken } from '../../../src/extras/record/recorded-messages.js';
import { requestOf } from '../../support/wire.js';

const keyOf = (params?: unknown) => matchKey(requestOf({ jsonrpc: '2.0', id: 1, method: 'm', params }));

describe('the key of a request', () => {
  it('does not depend on the order of members, on spaces or on `_meta`', () => {
    const [one, other] = ['{"a":[1,{"b":2,"c":3}],"d":4}', '{ "_meta":{"x":1}, "d":4, "a":[1, {"c":3,"b":2}] }'].map(
      (params) => matchKey(requestOf(`{"jsonrpc":"2.0","id":1,"method":"m","params":${params}}`)),
    );
    expect(one).toBe(other);
  });

  it('differs if a value differs', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        fc.pre(JSON.stringify(a) !== JSON.stringify(b) && typeof a !== 'object');
        expect(keyOf({ a })).not.toBe(keyOf({ a: b }));
      }),
    );
  });

  it('is the same without parameters, with empty ones, and with nothing but `_meta`', () => {
    expect([undefined, {}, { _meta: { progressToken: 1 } }].map(keyOf)).toEqual(Array(3).fill('m'));
  });

  it('keeps the `_meta` of what is inside of the parameters', () => {
    expect(keyOf({ a: { _meta: 1 } })).not.toBe(keyOf({ a: {} }));
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
    expect(replaceToken(message, message.id, '"x"')).toBe(
      '{ "jsonrpc":"2.0", "result":{"n":9007199254740993, "f":1.0}, "id" : "x" }',
    );
  });
});
