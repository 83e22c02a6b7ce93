/**
 * As much of the WebAssembly binary format as one small function takes, written as in the text format: each
 * instruction by its name, the operands before it. https://webassembly.github.io/spec/core/binary/
 */
type Code = readonly number[];

export const I32: Code = [0x7f];
export const V128: Code = [0x7b];

export const loop: Code = [0x03, 0x40];
export const ifTrue: Code = [0x04, 0x40];
export const end: Code = [0x0b];
/** To the beginning of the loop that is so many blocks further out. */
export const again = (depth: number): Code => [0x0c, depth];

export const get = (local: number): Code => [0x20, local];
export const set = (local: number): Code => [0x21, local];
/** Sets the local, and leaves the value. */
export const tee = (local: number): Code => [0x22, local];

export const constant = (value: number): Code => [0x41, ...signed(value)];
/** The byte so far behind the address. */
export const loadByte = (offset: number): Code => [0x2d, 0, ...unsigned(offset)];
export const equal: Code = [0x46];
export const trailingZeros: Code = [0x68];
export const add: Code = [0x6a];
export const and: Code = [0x71];

/** Sixteen bytes at the address, which need not be aligned. */
export const loadBytes: Code = [0xfd, 0x00, 0, 0];
/** The same byte sixteen times. */
export const bytesOf = (value: number): Code => [...constant(value), 0xfd, 0x0f];
export const equalBytes: Code = [0xfd, 0x23];
export const lessBytes: Code = [0xfd, 0x26];
export const orBytes: Code = [0xfd, 0x50];
/** The top bit of each of the sixteen bytes, the first one's lowest. */
export const topBits: Code = [0xfd, ...unsigned(0x64)];

export interface ModuleOptions {
  /** Memory in pages of 64 KiB, exported as `memory`. It never grows. */
  readonly pages: number;
  /** Of the function's own locals, which are numbered from its one parameter on. */
  readonly locals: readonly Code[];
  /** The function, exported as `run`: from an i32 to an i32. */
  readonly code: readonly Code[];
}

/** A module with a memory and one function. */
export function wasmModule({ pages, locals, code }: ModuleOptions): Uint8Array<ArrayBuffer> {
  const body = [...vector(locals.map((type) => [1, ...type])), ...code.flat(), ...end];
  return Uint8Array.from([
    ...[...text('\0asm'), 1, 0, 0, 0],
    ...section(1, [[0x60, ...vector([I32]), ...vector([I32])]]),
    ...section(3, [[0]]),
    ...section(5, [[1, ...unsigned(pages), ...unsigned(pages)]]),
    ...section(7, [
      [...name('memory'), 2, 0],
      [...name('run'), 0, 0],
    ]),
    ...section(10, [[...unsigned(body.length), ...body]]),
  ]);
}

function section(id: number, items: readonly Code[]): Code {
  const content = vector(items);
  return [id, ...unsigned(content.length), ...content];
}

function vector(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()];
}

function name(ascii: string): Code {
  return [...unsigned(ascii.length), ...text(ascii)];
}

function text(ascii: string): Code {
  return Array.from(ascii, (character) => character.charCodeAt(0));
}

/** LEB128: seven bits a byte, the lowest first; the top bit says that more follow. */
function unsigned(value: number): Code {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** The same; the last byte's second bit is the sign. */
function signed(value: number): Code {
  return value >= -0x40 && value < 0x40 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}
