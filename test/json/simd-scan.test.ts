import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createSimdScan, type SimdScan, WINDOW_BYTES } from '../../src/json/simd-scan.js';

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
function check(inside: Uint8Array): void {
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
      check(Buffer.concat([plain(lane), Buffer.from([byte]), plain(20)]));
      check(Buffer.concat([plain(lane), escaped(byte), plain(20)]));
      check(Buffer.concat([plain(lane), escaped(byte)]));
    }
  });

  it('takes four hexadecimal digits and nothing else behind \\u', () => {
    for (const place of [0, 1, 2, 3]) {
      for (const byte of ALL_BYTES) {
        const digits = Buffer.from('09aF');
        digits[place] = byte;
        for (const lane of BORDERS) check(Buffer.concat([plain(lane), escaped(0x75, ...digits), plain(3)]));
      }
    }
  });

  it('tells from the length of a row of backslashes which byte is escaped', () => {
    for (const lane of LANES) {
      for (let count = 1; count <= 9; count += 1) {
        for (const behind of ['"', 'n', 'u00e9', 'u00g9', 'x', '', '"\\"']) {
          check(Buffer.from(`${'a'.repeat(lane)}${'\\'.repeat(count)}${behind}`));
        }
      }
    }
    for (const length of [63, 64, 65, 127, 128, 129, 200]) check(Buffer.from(`${'\\'.repeat(length)}"`));
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
      fc.property(fc.array(parts, { maxLength: 30 }), (pieces) => check(Buffer.concat(pieces))),
      { numRuns: 2_000 },
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
