/**
 * Whether a text holds what its reader cannot see or is misled by, such as controls, zero-width and tag characters, or
 * overrides of direction.
 *
 * What scripts and emoji need is no such thing: joiners and a variation selector within an emoji, flags spelt in tag
 * characters, joiners between letters of scripts that join, and marks of direction beside letters written from right to
 * left.
 */
export function hidesCharacters(text: string): boolean {
  if (PLAIN.test(text)) return false;
  patterns ??= makePatterns();
  if (!patterns.invisible.test(text)) return false;
  const rest = patterns.rightToLeft.test(text) ? text.replace(MARKS, '') : text;
  for (const { groups } of rest.matchAll(patterns.neededOrNot)) if (groups?.hidden !== undefined) return true;
  return false;
}

/** Whether any text within a JSON value does; line ends and tabs are what texts of several lines are made of. */
export function hidesCharactersWithin(value: unknown): boolean {
  if (typeof value === 'string') return hidesCharacters(value.replace(/[\t\r\n]/g, ' '));
  if (Array.isArray(value)) return value.some(hidesCharactersWithin);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => hidesCharactersWithin(key) || hidesCharactersWithin(inner));
}

/** As most texts are; for those, nobody has to wait until classes of Unicode are looked up. */
const PLAIN = /^[ -~]*$/;

interface Patterns {
  readonly invisible: RegExp;
  readonly rightToLeft: RegExp;
  readonly neededOrNot: RegExp;
}

let patterns: Patterns | undefined;

function makePatterns(): Patterns {
  return {
    invisible: new RegExp(INVISIBLES, 'u'),
    rightToLeft: new RegExp(RIGHT_TO_LEFT, 'u'),
    neededOrNot: new RegExp(`${NEEDED}|(?<hidden>${INVISIBLES})`, 'gu'),
  };
}

/** A soft hyphen is left out: it shows where a word may be broken. */
const INVISIBLES = String.raw`(?!\u00ad)[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]`;

/** Where text runs from right to left, they say which way the characters beside them run. */
const MARKS = /[\u200e\u200f\u061c]/gu;
const RIGHT_TO_LEFT = String.raw`[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}]`;

const EMOJI = String.raw`\p{Emoji}\p{Emoji_Modifier}?(?:\ufe0e|\ufe0f\u20e3?)?`;
const COMPOSED_EMOJI = String.raw`(?=\p{Emoji}\p{Emoji_Modifier}?[\u200d\ufe0e\ufe0f])${EMOJI}(?:\u200d${EMOJI})*`;
/** England, Scotland and Wales: a black flag, the region in tag characters, and their end. */
const FLAG = String.raw`\u{1f3f4}[\u{e0061}-\u{e007a}]{5}\u{e007f}`;
/** As in Persian and in the scripts of India, where it tells how two letters stand together. */
const JOINER = String.raw`(?<=[\p{L}\p{M}])(?<![A-Za-z])[\u200c\u200d](?=\p{L})(?![A-Za-z])`;
const IDEOGRAPH = String.raw`(?<=\p{Ideographic})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]`;
const BYTE_ORDER_MARK = String.raw`^\ufeff`;

const NEEDED = [FLAG, COMPOSED_EMOJI, JOINER, IDEOGRAPH, BYTE_ORDER_MARK].join('|');
