import {
  add,
  again,
  and,
  bytesOf,
  constant,
  end,
  equal,
  equalBytes,
  get,
  I32,
  ifTrue,
  lessBytes,
  loadByte,
  loadBytes,
  loop,
  orBytes,
  set,
  tee,
  topBits,
  trailingZeros,
  V128,
  wasmModule,
} from './wasm.js';

/**
 * The first position from `at` on that takes a closer look: a quote, a control character, a backslash that begins no
 * escape, or one whose escape is not all there; or else `at + length`.
 *
 * `at` must be inside a string literal and outside of escapes, and `length` bytes must be there. All before the
 * position is valid, but for the bytes above 0x7F, of which nothing is said.
 */
export type SimdScan = (bytes: Uint8Array, at: number, length: number) => number;

/** The most that is looked at in one go, of however great a `length`. */
export const WINDOW_BYTES = 64 * 1024;

/**
 * A scan of sixteen bytes at a time, in WebAssembly: they are copied to its memory, and looked at there. `undefined`
 * where the platform has none, or the processor or the address space are not enough for it.
 */
export function createSimdScan(): SimdScan | undefined {
  const instance = instantiate();
  if (instance === undefined) return undefined;
  const { run } = instance;
  const memory = new Uint8Array(instance.memory.buffer);
  for (const digit of '0123456789abcdefABCDEF') memory[digit.charCodeAt(0)] = HEX_DIGIT;
  // Two of which are digits as well.
  for (const letter of '"\\/bfnrt') memory[letter.charCodeAt(0)] = (memory[letter.charCodeAt(0)] ?? 0) | SIMPLE_ESCAPE;
  return (bytes, at, length) => {
    const size = Math.min(length, WINDOW_BYTES);
    memory.set(new Uint8Array(bytes.buffer, bytes.byteOffset + at, size), WINDOW);
    memory[WINDOW + size] = STOP;
    return at + run(WINDOW) - WINDOW;
  };
}

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly run: (at: number) => number;
}

/** What is used of the global of this name, for which the types of Node have none. */
declare const WebAssembly:
  | {
      readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
      readonly Instance: new (module: object) => { readonly exports: unknown };
    }
  | undefined;

function instantiate(): Exports | undefined {
  if (typeof WebAssembly === 'undefined') return undefined;
  try {
    const module = wasmModule({ pages: PAGES, locals: [I32, V128], code: search() });
    return new WebAssembly.Instance(new WebAssembly.Module(module)).exports as Exports;
  } catch {
    // Nothing is lost but speed: the same is found byte by byte.
    return undefined;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const LETTER_U = 0x75;

/** The memory begins with what each byte may be in an escape. */
const HEX_DIGIT = 1;
const SIMPLE_ESCAPE = 2;
const WINDOW = 256;
/** A control character behind what was copied ends every search and every escape: nothing behind it is ever believed. */
const STOP = 0;
/** With room for sixteen bytes from the end of the window on. */
const PAGES = 2;

const POSITION = 0;
const FOUND = 1;
const BYTES = 2;

const move = (by: number) => [...get(POSITION), ...constant(by), ...add, ...set(POSITION)];
/** What the table at the beginning says of the byte so far behind the position. */
const kindOf = (offset: number) => [...get(POSITION), ...loadByte(offset), ...loadByte(0)];

/** Made when it is needed: nobody who starts should wait for it. */
const search = () => [
  loop,
  // Which of sixteen bytes are a quote, a backslash or a control character? If none is: on to the next sixteen.
  ...[get(POSITION), loadBytes, tee(BYTES), bytesOf(QUOTE), equalBytes],
  ...[get(BYTES), bytesOf(BACKSLASH), equalBytes, orBytes],
  ...[get(BYTES), bytesOf(SPACE), lessBytes, orBytes],
  ...[topBits, tee(FOUND), constant(0), equal, ifTrue, move(16), again(1), end],
  // The first of them is what was looked for, if it is no backslash.
  ...[get(POSITION), get(FOUND), trailingZeros, add, tee(POSITION), loadByte(0), constant(BACKSLASH), equal, ifTrue],
  // An escape of two bytes, or a `u` and four digits: on behind it.
  ...[kindOf(1), constant(SIMPLE_ESCAPE), and, ifTrue, move(2), again(2), end],
  ...[get(POSITION), loadByte(1), constant(LETTER_U), equal],
  ...[kindOf(2), and, kindOf(3), and, kindOf(4), and, kindOf(5), and, ifTrue, move(6), again(2), end],
  end,
  end,
  get(POSITION),
];
