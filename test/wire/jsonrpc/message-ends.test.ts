import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { LineDecoder, type OversizedLine } from '../../../src/wire/io/line-decoder.js';
import { readMessageEnds } from '../../../src/wire/jsonrpc/message-ends.js';
import { anyCharacter } from '../../support/any-character.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';

/** What the decoder leaves of a line that it drops. */
function fragmentsOf(line: string): OversizedLine {
  const dropped: OversizedLine[] = [];
  const losses = { oversized: (fragment: OversizedLine) => dropped.push(fragment), evicted: () => {} };
  copyInto(new LineDecoder({ sink: { line: () => {} }, dropped: losses, maxLineBytes: 16 }), Buffer.from(`${line}\n`));
  const [fragment] = dropped;
  if (fragment === undefined) throw new Error('Not dropped');
  return fragment;
}

/** The id of the answer, or of the request, in the line. */
function find(line: string, wanted: 'request' | 'response' = 'response'): unknown {
  const { kind, id } = readMessageEnds(fragmentsOf(line));
  return kind === wanted && id !== undefined ? JSON.parse(Buffer.from(id).toString()) : undefined;
}

const id = fc.nat();
const space = fc.constantFrom('', '', ' ', '\t ', '\r');
/** Strings that try to look like an id. */
const text = fc.oneof(
  fc.string({ maxLength: 2_000, unit: anyCharacter }),
  fc
    .constantFrom(',"id":99}', '"id":99,', ',"id":99,"jsonrpc":"2.0"}', '\\",\\"id\\":99}', '{"id":99,')
    .chain((imitation) => fc.nat(1_500).map((length) => 'x'.repeat(length) + imitation)),
);
const payload = fc.oneof(
  text,
  fc.array(text, { maxLength: 3 }),
  fc.record({ id: fc.constantFrom(99, '99'), text }),
  fc.record({ text, id: fc.constant(99) }),
  fc.record({ text, inner: fc.record({ text, id: fc.constant(99) }) }),
);
const filler = 'x'.repeat(1_200);

describe('the id of an answer that was too long', () => {
  it('is found where answers begin with it', () => {
    fc.assert(
      fc.property(id, space, payload, fc.constantFrom('result', 'error'), (number, gap, value, member) => {
        const rest = `"${member}":${JSON.stringify([value, filler])}}`;
        expect(find(`${gap}{${gap}"id"${gap}:${gap}${number}${gap},${rest}`)).toBe(number);
        expect(find(`{"jsonrpc":${gap}"2.0"${gap},"id":${number},${rest}`)).toBe(number);
      }),
      { numRuns: 300 },
    );
  });

  it('is found where answers end with it', () => {
    fc.assert(
      fc.property(id, space, payload, fc.constantFrom('result', 'error'), (number, gap, value, member) => {
        const rest = `"${member}":${JSON.stringify([filler, value])}`;
        expect(find(`{${rest}${gap},${gap}"id"${gap}:${gap}${number}${gap}}${gap}`)).toBe(number);
        expect(find(`{${rest},"id":${number},"jsonrpc"${gap}:"2.0"}`)).toBe(number);
        expect(find(`{"jsonrpc":"2.0",${rest},"id":${number}}`)).toBe(number);
      }),
      { numRuns: 300 },
    );
  });

  it('is never taken from within the payload', () => {
    fc.assert(
      fc.property(payload, payload, (first, last) => {
        const value = JSON.stringify([first, filler, last]);
        expect(find(`{"jsonrpc":"2.0","result":${value}}`)).toBeUndefined();
        expect(find(`{"result":${value},"jsonrpc":"2.0"}`)).toBeUndefined();
        expect(find(`{"result":{"id":99,"x":${value}}}`)).toBeUndefined();
        expect(find(`{"result":{"x":${value},"id":99}}`)).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['null', `{"jsonrpc":"2.0","id":null,"error":"${filler}"}`],
    ['true', `{"result":"${filler}","id":true}`],
    ['another one at the end', `{"jsonrpc":"2.0","id":1,"result":"${filler}","id":2}`],
    ['missing', `${filler}`],
  ])('is none when it is %s', (_, line) => {
    expect(find(line)).toBeUndefined();
  });

  it.each([
    ['at the start', `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":"${filler}"}`],
    ['at the end', `{"jsonrpc":"2.0","method":"sampling/createMessage","params":"${filler}","id":1}`],
  ])("is none when the line is a request of the child's own, with its id %s", (_, line) => {
    expect(find(line)).toBeUndefined();
  });

  it('is found quickly in a line made to be slow to search', () => {
    expect(find(`{"result":"${filler}"${' '.repeat(90)},"id":5${' '.repeat(90)}}${' '.repeat(90)}`)).toBe(5);
    const growth = growthOf((times) => {
      const line = `{${' '.repeat(1.5 * times)}${',"id":'.repeat(times)}${'1'.repeat(1.5 * times)}`;
      expect(find(line)).toBeUndefined();
    }, 100);
    expect(growth).toBeLessThan(LINEAR);
  });
});

describe('the id of a request that was too long', () => {
  const ids = fc.oneof(
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
    fc.uuid(),
    fc.string({ maxLength: 60, unit: 'grapheme' }).filter((string) => !/["\\\p{Cc}]/u.test(string)),
  );

  it('is found where requests begin with it, in any order of their members', () => {
    fc.assert(
      fc.property(
        ids,
        space,
        payload,
        fc.shuffledSubarray(['jsonrpc', 'id', 'method'], { minLength: 3 }),
        (...args) => {
          const [id, gap, value, order] = args;
          const members = { jsonrpc: '2.0', id, method: 'tools/call' } as Record<string, unknown>;
          const head = order
            .map((name) => `${gap}"${name}"${gap}:${gap}${JSON.stringify(members[name])}${gap},`)
            .join('');
          expect(find(`${gap}{${head}"params":${JSON.stringify([value, filler])}}`, 'request')).toEqual(id);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is found where requests end with it, in any order of their members', () => {
    fc.assert(
      fc.property(
        ids,
        space,
        payload,
        fc.shuffledSubarray(['jsonrpc', 'id', 'method'], { minLength: 2 }),
        (...args) => {
          const [id, gap, value, order] = args;
          const members = { jsonrpc: '2.0', id, method: 'tools/call' } as Record<string, unknown>;
          const tail = order
            .map((name) => `${gap},${gap}"${name}"${gap}:${gap}${JSON.stringify(members[name])}`)
            .join('');
          const line = `{"params":${JSON.stringify([filler, value])}${tail}${gap}}${gap}`;
          expect(find(line, 'request')).toEqual(order.includes('id') ? id : undefined);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is never taken from within the params, nor from an answer or a batch', () => {
    fc.assert(
      fc.property(payload, payload, (first, last) => {
        const value = JSON.stringify([first, filler, last]);
        for (const line of [
          `{"jsonrpc":"2.0","method":"notifications/x","params":${value}}`,
          `{"method":"x","params":{"id":99,"x":${value}}}`,
          `{"method":"x","params":{"x":${value},"id":99}}`,
          `{"jsonrpc":"2.0","id":7,"result":${value}}`,
          `{"error":${value},"jsonrpc":"2.0","id":7}`,
          `[{"jsonrpc":"2.0","id":7,"method":"x","params":${value}}]`,
        ]) {
          expect(find(line, 'request'), line).toBeUndefined();
        }
      }),
      { numRuns: 300 },
    );
  });

  it('is found with escapes at the beginning', () => {
    expect(find(`{"id":"a\\"b\\\\","method":"x","params":"${filler}"}`, 'request')).toBe('a"b\\');
  });
});
