/**
 * As much of the WebAssembly binary format as one small function takes, written as in the text format: each
 * instruction by its name, the operands before it. https://webassembly.github.io/spec/core/binary/
 */
type Code = readonly number[];

const I32: Code = [0x7f];
export const I64: Code = [0x7e];
export const V128: Code = [0x7b];

export const loop: Code = [0x03, 0x40];
export const ifTrue: Code = [0x04, 0x40];
export const end: Code = [0x0b];
/** To the beginning of the loop that is so many blocks further out. */
export const again = (depth: number): Code => [0x0c, depth];

export const get = (local: number): Code => [0x20, ...unsigned(local)];
export const set = (local: number): Code => [0x21, ...unsigned(local)];
/** Sets the local, and leaves the value. */
export const tee = (local: number): Code => [0x22, ...unsigned(local)];

export const i32 = {
  constant: (value: number): Code => [0x41, ...signed(BigInt(value))],
  /** The byte so far behind the address. */
  loadByte: (offset: number): Code => [0x2d, 0, ...unsigned(offset)],
  isZero: [0x45],
  equal: [0x46],
  notEqual: [0x47],
  add: [0x6a],
  subtract: [0x6b],
  and: [0x71],
} as const;

/** Without signs. */
export const i64 = {
  constant: (value: bigint): Code => [0x42, ...signed(BigInt.asIntN(64, value))],
  isZero: [0x50],
  trailingZeros: [0x7a],
  add: [0x7c],
  and: [0x83],
  or: [0x84],
  xor: [0x85],
  shiftLeft: [0x86],
  shiftRight: [0x88],
  ofI32: [0xad],
  toI32: [0xa7],
} as const;

/** Sixteen bytes, each for itself. */
export const i8x16 = {
  /** At so far behind the address, which need not be aligned. */
  load: (offset: number): Code => [0xfd, 0x00, 0, ...unsigned(offset)],
  /** Given by their places; those that are not named are 0. */
  constant: (values: Readonly<Record<number, number>>): Code => [
    ...[0xfd, 0x0c],
    ...Array.from({ length: 16 }, (_, place) => values[place] ?? 0),
  ],
  /** The same byte sixteen times. */
  all: (value: number): Code => [...i32.constant(value), 0xfd, 0x0f],
  /** For each of the second sixteen, what stands in the first ones at that place; 0 if there is no such place. */
  lookUp: [0xfd, 0x0e],
  equal: [0xfd, 0x23],
  notEqual: [0xfd, 0x24],
  less: [0xfd, 0x26],
  and: [0xfd, 0x4e],
  or: [0xfd, 0x50],
  /** 1 if any bit of them is set, else 0. */
  isAny: [0xfd, 0x53],
  shiftRight: [0xfd, ...unsigned(0x6d)],
  /** The top bit of each, the first one's lowest. */
  topBits: [0xfd, ...unsigned(0x64)],
} as const;

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
function signed(value: bigint): Code {
  const low = Number(value & 0x7fn);
  return value >= -0x40n && value < 0x40n ? [low] : [low | 0x80, ...signed(value >> 7n)];
}
