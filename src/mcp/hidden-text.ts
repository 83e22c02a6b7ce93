/**
 * Whether a text contains characters that its reader cannot see or is misled by, such as controls, zero-width and tag
 * characters, or direction overrides.
 *
 * Characters that scripts and emoji need are allowed: joiners and a variation selector within an emoji, flags made of
 * tag characters, joiners between letters of scripts that join, and direction marks beside letters of right-to-left
 * scripts.
 */
export function hidesCharacters(text: string): boolean {
  if (PLAIN.test(text)) return false;
  patterns ??= makePatterns();
  if (!patterns.invisible.test(text)) return false;
  const rest = patterns.rightToLeft.test(text) ? text.replace(MARKS, '') : text;
  for (const { groups } of rest.matchAll(patterns.neededOrNot)) if (groups?.hidden !== undefined) return true;
  return false;
}

/** Whether any text within a JSON value hides characters. Line breaks and tabs are allowed. */
export function hidesCharactersWithin(value: unknown): boolean {
  if (typeof value === 'string') return hidesCharacters(value.replace(/[\t\r\n]/g, ' '));
  if (Array.isArray(value)) return value.some(hidesCharactersWithin);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, inner]) => hidesCharactersWithin(key) || hidesCharactersWithin(inner));
}

/** The text without the characters that `hidesCharacters` finds, and without byte order marks. Line breaks and tabs stay. */
export function withoutHiddenCharacters(text: string): string {
  return text
    .replaceAll('\ufeff', '')
    .split(/\r\n?|\n/)
    .map((line) => line.split('\t').map(visibleOnly).join('\t'))
    .join('\n');
}

function visibleOnly(text: string): string {
  if (!hidesCharacters(text)) return text;
  patterns ??= makePatterns();
  const needsMarks = patterns.rightToLeft.test(text);
  return text.replace(patterns.neededOrNot, (...match) => {
    const [character, groups] = [match[0] as string, match.at(-1) as { readonly hidden?: string }];
    const isNeeded = groups.hidden === undefined || (needsMarks && MARK.test(character));
    return isNeeded ? character : '';
  });
}

/** Matches most texts, and saves compiling Unicode classes for them. */
const PLAIN = /^[ -~]*$/;

let patterns: ReturnType<typeof makePatterns> | undefined;

function makePatterns() {
  return {
    invisible: new RegExp(INVISIBLES, 'u'),
    rightToLeft: new RegExp(RIGHT_TO_LEFT, 'u'),
    neededOrNot: new RegExp(`${NEEDED}|(?<hidden>${INVISIBLES})`, 'gu'),
  };
}

/** Except the soft hyphen, which marks where a word may break. */
const INVISIBLES = String.raw`(?!\u00ad)[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]`;

/** Direction marks, which right-to-left text needs. */
const MARKS = /[\u200e\u200f\u061c]/gu;
const MARK = /^[\u200e\u200f\u061c]$/u;
const RIGHT_TO_LEFT = String.raw`[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}]`;

const EMOJI = String.raw`\p{Emoji}\p{Emoji_Modifier}?(?:\ufe0e|\ufe0f\u20e3?)?`;
const COMPOSED_EMOJI = String.raw`(?=\p{Emoji}\p{Emoji_Modifier}?[\u200d\ufe0e\ufe0f])${EMOJI}(?:\u200d${EMOJI})*`;
/** England, Scotland and Wales: a black flag, the region in tag characters, and the cancel tag. */
const FLAG = String.raw`\u{1f3f4}[\u{e0061}-\u{e007a}]{5}\u{e007f}`;
/** As in Persian and in the scripts of India, where a joiner decides the form of two letters. */
const JOINER = String.raw`(?<=[\p{L}\p{M}])(?<![A-Za-z])[\u200c\u200d](?=\p{L})(?![A-Za-z])`;
const IDEOGRAPH = String.raw`(?<=\p{Ideographic})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]`;
const BYTE_ORDER_MARK = String.raw`^\ufeff`;

const NEEDED = [FLAG, COMPOSED_EMOJI, JOINER, IDEOGRAPH, BYTE_ORDER_MARK].join('|');
