import { again, end, get, I64, i8x16, i32, i64, ifTrue, loop, set, tee, V128, wasmModule } from './wasm.js';

type Code = readonly number[];
/** From sixteen bytes to as many of which the top bit is the answer. */
type Test = (bytes: Code) => Code;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const LETTER_U = 0x75;

const POSITION = 0;
/** Sixteen bytes each. */
const QUARTERS = [1, 2, 3, 4];
/** What follows has a bit for each of the 64 bytes, the first one's lowest. */
const BACKSLASHES = 5;
/** Backslashes that begin an escape, and what stands behind them. */
const ESCAPES = 6;
const ESCAPED = 7;
const DIGITS = 8;
/** What ends the search, as far as is known. */
const SPECIAL = 9;
/** Whether the first byte is escaped by the one before it: 1 or 0. */
const CARRIED = 10;
/** The place of one byte. */
const FOUND = 11;
const LOCALS = [V128, V128, V128, V128, I64, I64, I64, I64, I64, I64, I64];

/**
 * A search in a string literal, 64 bytes at a time: from a position in the memory to that of the first quote, control
 * character, or backslash that begins no escape. There has to be one.
 *
 * Escapes are found by arithmetic and not one by one, since a processor guesses wrong where the next one is.
 */
export function searchModule(pages: number): Uint8Array<ArrayBuffer> {
  return wasmModule({ pages, locals: LOCALS, code: search() });
}

const search = () => [
  loop,
  ...QUARTERS.map((quarter, index) => [get(POSITION), i8x16.load(16 * index), set(quarter)].flat()),
  ...[bitsOf(is(QUOTE)), set(SPECIAL), bitsOf(is(BACKSLASH)), set(BACKSLASHES), i64.constant(0n), set(ESCAPED)],
  ...[get(BACKSLASHES), get(CARRIED), i64.or, ...unlessZero(judgeEscapes())],
  ...[get(SPECIAL), isAnyControl(), i64.ofI32, i64.or, i64.isZero],
  ...[ifTrue, get(POSITION), i32.constant(64), i32.add, set(POSITION), again(1), end],
  ...[get(SPECIAL), bitsOf(isControl), i64.or, i64.trailingZeros, set(FOUND)],
  // What is escaped is looked at once more from its backslash on: its digits may not have been among the 64.
  ...[get(POSITION), get(POSITION), get(FOUND), i64.toI32, i32.add],
  ...[get(ESCAPED), get(FOUND), i64.shiftRight, i64.toI32, i32.constant(1), i32.and, i32.subtract, tee(POSITION)],
  ...[i32.notEqual, get(POSITION), i32.loadByte(0), i32.constant(BACKSLASH), i32.equal, i32.and],
  ...[ifTrue, i64.constant(0n), set(CARRIED), again(1), end],
  end,
  get(POSITION),
];

/** An escaped quote is not special, and what is escaped and no escape is. */
const judgeEscapes = () => [
  ...findEscapes(),
  ...[get(SPECIAL), get(ESCAPED), not(), i64.and, set(SPECIAL)],
  ...[get(ESCAPED), bitsOf(isSimpleEscape()), not(), i64.and, tee(FOUND)],
  ...unlessZero([get(SPECIAL), get(FOUND), i64.or, set(SPECIAL), ...judgeLettersU()]),
];

/** Of backslashes in a row, every other one begins an escape. */
const findEscapes = () => [
  // Without one that is escaped itself. Of the rows that are left, adding its beginning clears each that begins at an
  // even place, and so tells it from the others.
  ...[get(BACKSLASHES), get(CARRIED), not(), i64.and, tee(BACKSLASHES)],
  ...[get(BACKSLASHES), get(BACKSLASHES), i64.constant(1n), i64.shiftLeft, not(), i64.and, EVEN, i64.and, i64.add],
  ...[not(), get(BACKSLASHES), i64.and],
  ...[EVEN, i64.xor, not(), get(BACKSLASHES), i64.and, tee(ESCAPES)],
  ...[i64.constant(1n), i64.shiftLeft, get(CARRIED), i64.or, set(ESCAPED)],
  ...[get(ESCAPES), i64.constant(63n), i64.shiftRight, set(CARRIED)],
];

/** Every other bit, the first included. */
const EVEN = i64.constant(0x5555_5555_5555_5555n);

/** A `u` is not special if four digits follow; those that are not among the 64 are as if they were none. */
const judgeLettersU = () => [
  ...[bitsOf(isHexDigit()), set(DIGITS)],
  ...[get(SPECIAL), get(ESCAPED), bitsOf(is(LETTER_U)), i64.and],
  ...[1n, 2n, 3n, 4n].flatMap((by) => [get(DIGITS), i64.constant(by), i64.shiftRight, i64.and]),
  ...[not(), i64.and, set(SPECIAL)],
];

const unlessZero = (code: readonly Code[]) => [i64.isZero, i32.isZero, ifTrue, ...code, end];

const not = () => [...i64.constant(-1n), ...i64.xor];

/** The bits of those of the 64 bytes that pass the test. */
function bitsOf(test: Test): Code {
  return QUARTERS.flatMap((quarter, index) => {
    const bits = [test(get(quarter)), i8x16.topBits, i64.ofI32, i64.constant(BigInt(16 * index)), i64.shiftLeft];
    return [...bits, ...(index === 0 ? [] : [i64.or])].flat();
  });
}

function isAnyControl(): Code {
  const tested = QUARTERS.flatMap((quarter, index) => [isControl(get(quarter)), ...(index === 0 ? [] : [i8x16.or])]);
  return [...tested, i8x16.isAny].flat();
}

function is(byte: number): Test {
  return (bytes) => [bytes, i8x16.all(byte), i8x16.equal].flat();
}

const isControl: Test = (bytes) => [bytes, i8x16.all(SPACE), i8x16.less].flat();

/** `"`, `/`, `\`, `b`, `f`, `n`, `r` and `t`. */
const isSimpleEscape = () => areRelated({ 2: 1, 5: 2, 6: 4, 7: 8 }, { 2: 13, 4: 8, 6: 4, 12: 2, 14: 4, 15: 1 });
const isHexDigit = () =>
  areRelated({ 3: 1, 4: 2, 6: 2 }, { 0: 1, 1: 3, 2: 3, 3: 3, 4: 3, 5: 3, 6: 3, 7: 1, 8: 1, 9: 1 });

/** Whether the upper and the lower half of a byte have a bit in common in these tables. */
function areRelated(upper: Readonly<Record<number, number>>, lower: Readonly<Record<number, number>>): Test {
  return (bytes) =>
    [
      ...[i8x16.constant(upper), bytes, i32.constant(4), i8x16.shiftRight, i8x16.lookUp],
      ...[i8x16.constant(lower), bytes, i8x16.all(0x0f), i8x16.and, i8x16.lookUp],
      ...[i8x16.and, i8x16.all(0), i8x16.notEqual],
    ].flat();
}
