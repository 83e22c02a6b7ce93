import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  createSimdScan,
  NOT_JSON,
  type SimdScan,
  skipString,
  WINDOW_BYTES,
} from '../../../src/wire/json/json-string.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';
import { repetitions } from '../../support/repetitions.js';

const INSERTIONS = ['"', '\\', '\\n', '\\\\', '\\u00e9', '\\u00g9', '\n', '\u001f', '\u0000', 'é', '😀', '\u007f', '!'];
const KIB = 1024;
/** Shortened, each insertion is tried at every 13th position, and all insertions together at every position. */
const STEP = repetitions({ full: 1, short: 13 });

/** Another copy of the module, which finds no WebAssembly. */
async function loadWithoutWebAssembly(): Promise<typeof skipString> {
  vi.stubGlobal('WebAssembly', undefined);
  vi.resetModules();
  const copy = await import('../../../src/wire/json/json-string.js');
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
      { numRuns: repetitions({ full: 2_000, short: 100 }) },
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

const ALL_BYTES = Array.from({ length: 256 }, (_, byte) => byte);
/** All places among the 64, and some behind them. */
const LANES = Array.from({ length: 70 }, (_, lane) => lane);
/** Around where one sixteen or one 64 ends. */
const BORDERS = [0, 1, 15, 16, 47, 58, 59, 60, 61, 62, 63, 64, 65];

const scan = create();

function create(): SimdScan {
  const created = createSimdScan();
  if (created === undefined) throw new Error('The tests want a platform with WebAssembly');
  return created;
}

/** The same as it is written, byte by byte. */
function expected(bytes: Uint8Array, at: number, length: number): number {
  const end = at + length;
  let position = at;
  while (position < end) {
    const rest = Buffer.from(bytes.subarray(position, end)).toString('latin1');
    const passed = /^(?:[ !#-[\]-\xff]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})/.exec(rest)?.[0].length;
    if (passed === undefined) return position;
    position += passed;
  }
  return end;
}

/** Compares the two at some places inside of other bytes, which must make no difference. */
function checkScan(inside: Uint8Array): void {
  for (const before of [0, 1, 7]) {
    for (const around of ['"', '\\', 'a', '0']) {
      const bytes = Buffer.concat([Buffer.alloc(before, around), inside, Buffer.alloc(20, around)]);
      const found = scan(bytes, before, inside.length);
      if (found !== expected(bytes, before, inside.length)) {
        expect.fail(`${found} of ${JSON.stringify(bytes.toString('latin1'))}, ${inside.length} from ${before} on`);
      }
    }
  }
}

const plain = (length: number) => Buffer.alloc(length, 'a');
const escaped = (...bytes: number[]) => Buffer.from([0x5c, ...bytes]);

describe('scanning 64 bytes at a time', () => {
  it.each(BORDERS)('judges each byte by itself and behind a backslash, %i bytes from the beginning', (lane) => {
    for (const byte of ALL_BYTES) {
      checkScan(Buffer.concat([plain(lane), Buffer.from([byte]), plain(20)]));
      checkScan(Buffer.concat([plain(lane), escaped(byte), plain(20)]));
      checkScan(Buffer.concat([plain(lane), escaped(byte)]));
    }
  });

  it('takes four hexadecimal digits and nothing else behind \\u', () => {
    for (const place of [0, 1, 2, 3]) {
      for (const byte of ALL_BYTES) {
        const digits = Buffer.from('09aF');
        digits[place] = byte;
        for (const lane of BORDERS) checkScan(Buffer.concat([plain(lane), escaped(0x75, ...digits), plain(3)]));
      }
    }
  });

  it('tells from the length of a row of backslashes which byte is escaped', () => {
    for (const lane of LANES) {
      for (let count = 1; count <= 9; count += 1) {
        for (const behind of ['"', 'n', 'u00e9', 'u00g9', 'x', '', '"\\"']) {
          checkScan(Buffer.from(`${'a'.repeat(lane)}${'\\'.repeat(count)}${behind}`));
        }
      }
    }
    for (const length of [63, 64, 65, 127, 128, 129, 200]) checkScan(Buffer.from(`${'\\'.repeat(length)}"`));
  });

  it('finds what a look at each byte finds', () => {
    const parts = fc.oneof(
      { weight: 6, arbitrary: fc.string({ maxLength: 40 }).map((text) => Buffer.from(text)) },
      {
        weight: 4,
        arbitrary: fc.constantFrom('\\n', '\\"', '\\\\', '\\u00E9', 'é😀', ' ').map((text) => Buffer.from(text)),
      },
      { weight: 1, arbitrary: fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)) },
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 30 }), (pieces) => checkScan(Buffer.concat(pieces))),
      { numRuns: repetitions({ full: 2_000, short: 300 }) },
    );
  });

  it('looks at no more than its window holds, and tells how far that is', () => {
    const bytes = plain(WINDOW_BYTES + 100);
    expect(scan(bytes, 0, WINDOW_BYTES - 1)).toBe(WINDOW_BYTES - 1);
    expect(scan(bytes, 50, WINDOW_BYTES)).toBe(50 + WINDOW_BYTES);
    expect(scan(bytes, 50, WINDOW_BYTES + 50)).toBe(50 + WINDOW_BYTES);
    bytes.write('\\n', WINDOW_BYTES - 1);
    expect(scan(bytes, 0, bytes.length)).toBe(WINDOW_BYTES - 1);
    expect(scan(bytes, WINDOW_BYTES - 1, 100)).toBe(WINDOW_BYTES + 99);
  });
});

describe('a platform on which WebAssembly does not work', () => {
  afterEach(() => void vi.unstubAllGlobals());

  it('has no such scan', () => {
    vi.stubGlobal('WebAssembly', undefined);
    expect(createSimdScan()).toBeUndefined();
  });

  it('has none either where there is no address space for its memory', () => {
    const Instance = class {
      constructor() {
        throw new RangeError('WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory for new instance');
      }
    };
    vi.stubGlobal('WebAssembly', { Module: class {}, Instance });
    expect(createSimdScan()).toBeUndefined();
  });
});
