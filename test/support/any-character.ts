import fc from 'fast-check';

/** Code points of halves of pairs, which are no characters. */
const [FIRST_HALF, AFTER_HALVES] = [0xd800, 0xe000];
const HALVES = AFTER_HALVES - FIRST_HALF;

/**
 * Any character, for `unit` of `fc.string`. The unit `binary` of fast-check has the same characters, and takes half a second of every worker,
 * because it lists all of them.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - HALVES })
  .map((point) => String.fromCodePoint(point < FIRST_HALF ? point : point + HALVES));
