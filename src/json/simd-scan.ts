import { SEARCH_MODULE } from './simd-search.js';

/**
 * Returns the first position from `at` on that needs a closer look: a quote, a control character, a backslash that
 * begins no escape, or a backslash whose escape is incomplete. Returns `at + length` if there is none.
 *
 * `at` must be inside a string literal and outside of escapes, and `bytes` must have `length` bytes from there on. All
 * bytes before the returned position are valid, except that bytes above 0x7F are not checked.
 */
export type SimdScan = (bytes: Uint8Array, at: number, length: number) => number;

/**
 * Limit of the bytes that one call searches, however large `length` is. The memory in `simd-search.wat` has space for
 * them.
 */
export const WINDOW_BYTES = 64 * 1024;

/**
 * A scan of 64 bytes at a time in WebAssembly, which copies the bytes to its memory and searches them there. Returns
 * `undefined` if the platform has no WebAssembly, the processor lacks the instructions, or the address space is too
 * small.
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

/**
 * A control character behind the copied bytes. It ends every search and every escape, so older bytes behind it have no
 * effect.
 */
const STOP = 0;

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly run: (at: number) => number;
}

/** The parts of the global `WebAssembly` that are used here. The types of Node do not declare it. */
declare const WebAssembly:
  | {
      readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
      readonly Instance: new (module: object) => { readonly exports: unknown };
    }
  | undefined;

function instantiate(): Exports | undefined {
  if (typeof WebAssembly === 'undefined') return undefined;
  try {
    const bytes = Uint8Array.from(atob(SEARCH_MODULE), (character) => character.charCodeAt(0));
    return new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as Exports;
  } catch {
    // Only speed is lost: the caller finds the same position byte by byte.
    return undefined;
  }
}
