import { searchModule } from './simd-search.js';

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
 * A scan of 64 bytes at a time, in WebAssembly: they are copied to its memory, and looked at there. `undefined`
 * where the platform has none, or the processor or the address space are not enough for it.
 */
export function createSimdScan(): SimdScan | undefined {
  const instance = instantiate();
  if (instance === undefined) return undefined;
  const { run } = instance;
  const memory = new Uint8Array(instance.memory.buffer);
  return (bytes, at, length) => {
    const size = Math.min(length, WINDOW_BYTES);
    memory.set(new Uint8Array(bytes.buffer, bytes.byteOffset + at, size));
    memory[size] = STOP;
    return at + run(0);
  };
}

/** A control character behind what was copied ends every search and every escape: nothing behind it is ever believed. */
const STOP = 0;

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
    const module = new WebAssembly.Module(searchModule(PAGES));
    return new WebAssembly.Instance(module).exports as Exports;
  } catch {
    // Nothing is lost but speed: the same is found byte by byte.
    return undefined;
  }
}

/** With room for 64 bytes from the end of the window on. */
const PAGES = 2;
