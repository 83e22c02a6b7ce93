import { describe, expect, it } from 'vitest';
import { entriesOf, Numbering, underOwnName } from './transcript.js';

describe('a transcript', () => {
  it('shows requests under numbers, in their order, and what belongs to them under the same', () => {
    const numbering = new Numbering();
    const shown = [
      '{"id":"x","method":"a","params":{"_meta":{"progressToken":7}}}',
      '{"params":{},"method":"b","id":7.0}',
      '{"method":"notifications/cancelled","params":{"requestId":"x"}}',
      '{"id":"x","method":"a"}',
    ].map((text) => numbering.of(text));
    expect(shown).toEqual([
      '{"id":<1>,"method":"a","params":{"_meta":{"progressToken":<token 1>}}}',
      '{"params":{},"method":"b","id":<2>}',
      '{"method":"notifications/cancelled","params":{"requestId":<1>}}',
      '{"id":<3>,"method":"a"}',
    ]);
  });

  it.each([
    '{"id":1,"result":{"id":2,"method":"x"}}',
    '{"jsonrpc":"2.0","id":"\\u0061","error":{}}',
    '{"method":"notifications/progress","params":{"progressToken":1,"requestId":1,"progress":1.0}}',
  ])('shows %s to the letter, for that has to come back as it was sent', (text) => {
    expect(new Numbering().of(text)).toBe(text);
  });

  it('tells long texts apart that begin and end alike', () => {
    const [one, other] = ['1', '2'].map((digit) => {
      const half = 'x'.repeat(10_000);
      return new Numbering().of(`{"id":1,"result":"${half}${digit}${half}"}`);
    });
    expect(one).not.toBe(other);
    expect(one?.length).toBeLessThan(10_000);
  });

  it('shows what a server lists under its own names, and nothing that is not its own', () => {
    const answer = '{"result":{"tools":[{"x":1.0,"name":"odd__a"},{"name":"trunkline__status"}]},"id":1}';
    const [entry = '', ...others] = entriesOf(answer, 'tools');
    expect(underOwnName(entry, 'odd__')).toBe('{"x":1.0,"name":"a"}');
    expect(underOwnName(entry, '')).toBe(entry);
    expect(others).toEqual([]);
  });
});
