import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { NOT_JSON, skipString } from '../../src/json/json-string.js';
import { growthOf, LINEAR } from '../support/cpu-time.js';
import { repetitions } from '../support/repetitions.js';

const INSERTIONS = ['"', '\\', '\\n', '\\\\', '\\u00e9', '\\u00g9', '\n', '\u001f', '\u0000', 'é', '😀', '\u007f', '!'];
const KIB = 1024;
/** Shortened, each insertion is tried at every seventh position, and all insertions together at every position. */
const STEP = repetitions({ full: 1, short: 7 });

/** Another copy of the module, which finds no WebAssembly. */
async function loadWithoutWebAssembly(): Promise<typeof skipString> {
  vi.stubGlobal('WebAssembly', undefined);
  vi.resetModules();
  const copy = await import('../../src/json/json-string.js');
  copy.skipString(Buffer.from(`"${'a'.repeat(20 * KIB)}"`), 0);
  vi.unstubAllGlobals();
  return copy.skipString;
}

type Skip = (bytes: Uint8Array, at: number) => number;

const WAYS: Record<string, Skip> = {
  'with WebAssembly': skipString,
  'without WebAssembly': await loadWithoutWebAssembly(),
};

describe.each(Object.entries(WAYS))('a string literal, %s,', (_, skip) => {
  it.each(INSERTIONS)('with %j about where one window ends and the next begins is read so, too', (insertion) => {
    // Windows are as long as what was passed before, from 1 or 16 KiB to 64 KiB, and begin some bytes behind the quote.
    const offset = INSERTIONS.indexOf(insertion) % STEP;
    for (const border of [1, 2, 4, 8, 16, 32, 64, 128, 192].map((kib) => kib * KIB)) {
      for (let position = border - 10 + offset; position < border + 150; position += STEP) {
        const text = `"${'a'.repeat(position)}${insertion}${'b'.repeat((position * 7) % 80)}"`;
        check(skip, text, position % 16, insertion === '"' ? position + 2 : undefined);
      }
    }
  });

  it('full of anything is read so, too', () => {
    const part = fc.oneof(
      {
        weight: 20,
        arbitrary: fc.string({ minLength: 1, maxLength: 60 }).map((text) => JSON.stringify(text).slice(1, -1)),
      },
      { weight: 10, arbitrary: fc.constantFrom('\\\\', '\\"', '\\u00e9', '\\ud83d', 'é', '😀') },
    );
    const parts = fc.array(part, { minLength: 5, maxLength: 40 });
    const fault = fc.constantFrom('', '', '"', '\\', '\n', '\\x', '\\u12', '\t', '\u0000');
    fc.assert(
      fc.property(parts, fc.nat(150), fault, fc.nat(), fc.nat(15), (pieces, times, broken, where, alignment) => {
        const body = pieces.join('').repeat(times + 1);
        const at = where % body.length;
        check(skip, `"${body.slice(0, at)}${broken}${body.slice(at)}"`, alignment);
      }),
      { numRuns: repetitions({ full: 2_000, short: 400 }) },
    );
  });

  it('that never ends is refused in a time that grows with its length only', () => {
    for (const inside of ['a', '\\n', '\\u00e9']) {
      const growth = growthOf((kib) => {
        expect(skip(unended(inside, kib), 0)).toBe(NOT_JSON);
      }, 512);
      expect(growth).toBeLessThan(LINEAR);
    }
  });
});

describe('strings one behind the other', () => {
  it('are each checked in a time that grows with their own length only', () => {
    const literal = `"${'a'.repeat(20 * KIB)}"`;
    const bytes = Buffer.from(literal.repeat(1_000));
    const growth = growthOf((literals) => {
      const end = literals * literal.length;
      let position = 0;
      while (position < end) position = skipString(bytes, position);
      expect(position).toBe(end);
    }, 60);
    expect(growth).toBeLessThan(LINEAR);
  });
});

const unendedTexts = new Map<string, Uint8Array>();

/** A literal of so many KiB that never ends; made once, so that making it is no part of what is measured. */
function unended(inside: string, kib: number): Uint8Array {
  const key = `${inside} ${kib}`;
  const made = unendedTexts.get(key) ?? Buffer.from(`"${inside.repeat((kib * KIB) / inside.length)}`);
  unendedTexts.set(key, made);
  return made;
}

/** Where the literal is broken, `endOfFirst` is where one ends that is whole, if there is one. */
function check(skip: Skip, text: string, alignment: number, endOfFirst?: number): void {
  const bytes = Buffer.from(`${' '.repeat(alignment)}${text}`).subarray(alignment);
  const end = skip(bytes, 0);
  if ((end === bytes.length) !== isJson(text)) expect.fail(`${end} for ${bytes.length} bytes: ${text.slice(0, 5_000)}`);
  if (end === bytes.length) return;
  if (endOfFirst !== undefined) expect(end).toBe(endOfFirst);
  // What ends before the text does was whole so far.
  else if (end !== NOT_JSON) expect(isJson(bytes.subarray(0, end).toString())).toBe(true);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // A text that JSON.parse rejects is no JSON; the test compares only that.
    return false;
  }
}
