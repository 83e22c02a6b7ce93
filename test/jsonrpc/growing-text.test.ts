import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { copyInto } from '../../src/jsonrpc/byte-reader.js';
import { CheckedStrings } from '../../src/jsonrpc/checked-strings.js';
import { GrowingText } from '../../src/jsonrpc/growing-text.js';
import { NOT_JSON } from '../../src/jsonrpc/json-string.js';
import { skipValue } from '../../src/jsonrpc/json-text.js';
import { LineDecoder } from '../../src/jsonrpc/line-decoder.js';
import { createScan } from '../../src/mcp/envelope.js';

const KIB = 1024;
const scan = createScan(isUtf8);

/** What the line comes to when it is read in pieces that end at these places. */
function readInPieces(line: Uint8Array, cuts: readonly number[]) {
  const lines: { readonly bytes: Uint8Array; readonly kind: string }[] = [];
  const sink = {
    line: (bytes: Uint8Array, start: number, end: number) => lines.push({ bytes, kind: scan(bytes, start, end).kind }),
    oversized: () => expect.fail('a line was dropped'),
  };
  const decoder = new LineDecoder({ sink, maxLineBytes: 64 * KIB * KIB });
  const all = Buffer.concat([line, Buffer.from('\n')]);
  const places = [0, ...cuts.map((cut) => cut % all.length).sort((a, b) => a - b), all.length];
  for (let index = 1; index < places.length; index += 1) {
    copyInto(decoder, all.subarray(places[index - 1], places[index]));
  }
  expect(lines).toHaveLength(1);
  return lines[0];
}

const answer = (...texts: string[]) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: texts.map((text) => ({ type: 'text', text })) } });

describe('a large message that is looked at while it comes', () => {
  it('is judged as if it had been there at once, whatever is wrong with it and wherever it is cut', () => {
    const part = fc.constantFrom('abc ', '"', '\\', '\n', '\u0001', 'é', '😀', 'C:\\x\\', '{"a":"b"}');
    const text = fc
      .tuple(fc.array(part, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 60 }))
      .map(([parts, kib]) => {
        const piece = parts.join('');
        return piece.repeat(Math.ceil((kib * KIB) / piece.length));
      });
    const fault = fc.constantFrom('', '', '', '"', '\\', '\\x', '\\u12', '\t', '"}', '\\"', '\\\\');
    const cuts = fc.array(fc.nat(), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 6 }), fault, fc.nat(), cuts, (texts, broken, where, at) => {
        const whole = answer(...texts);
        const place = where % whole.length;
        const line = Buffer.from(whole.slice(0, place) + broken + whole.slice(place));
        // A copy, of which nothing is known.
        expect(readInPieces(line, at)?.kind).toBe(scan(Buffer.from(line)).kind);
      }),
      { numRuns: 300 },
    );
  });

  it('has had all of its long strings checked when its end comes', () => {
    const line = Buffer.from(answer('a "b"\n'.repeat(30_000), 'short', 'c'.repeat(700 * KIB)));
    const cuts = Array.from({ length: 30 }, (_, index) => index * 32 * KIB);
    const { bytes = new Uint8Array(), kind } = readInPieces(line, cuts) ?? {};
    expect(kind).toBe('response');
    const latest = CheckedStrings.of(bytes)?.latest;
    expect(latest?.at).toBeGreaterThan(line.length - 701 * KIB);
    expect(latest?.end).toBeGreaterThan(line.length - 100);
  });

  it('is looked at from its beginning only as often as it has doubled', () => {
    // Each piece ends behind a long string that has just ended, so that the search begins anew each time.
    const item = `"${'a'.repeat(20 * KIB)}",${'[1],'.repeat(20 * KIB)}`;
    const growing = new GrowingText();
    const all = Buffer.from(`[${item.repeat(100)}`);
    const lengths = Array.from({ length: 99 }, (_, index) => 1 + item.length * index + 20 * KIB);
    const timeOf = (work: () => void) => {
      const startedAt = performance.now();
      work();
      return performance.now() - startedAt;
    };
    const once = timeOf(() => expect(skipValue(all, 0, 5)).toBe(NOT_JSON));
    const meanwhile = timeOf(() => {
      for (const length of lengths) growing.grown(all.subarray(0, length));
    });
    expect(meanwhile).toBeLessThan(10 * once);
  });

  it('leaves nothing behind that the next one could be taken for', () => {
    const growing = new GrowingText();
    const right = Buffer.from(`"${'a'.repeat(200 * KIB)}"`);
    growing.grown(right.subarray(0, 100 * KIB));
    growing.completed(right);
    const memory = new Uint8Array(right.buffer, right.byteOffset, right.length);
    right[50 * KIB] = 0x0a;
    expect(skipValue(memory, 0, 1)).toBe(NOT_JSON);
    growing.grown(memory.subarray(0, 100 * KIB));
    growing.completed(memory);
    expect(skipValue(memory, 0, 1)).toBe(NOT_JSON);
  });
});
