import fc from 'fast-check';

/** How a value is written. Each number is read modulo what there is to choose from. */
type Style = Iterator<number, never>;

/**
 * Texts of these values in the notations that people use: indented, in brackets, with and without quotes and comments. Some
 * have a few characters changed, so that they are YAML of another meaning, or no YAML.
 */
export function writtenYaml(value: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const change = fc.record({
    at: fc.nat(),
    length: fc.nat({ max: 2 }),
    text: fc.constantFrom(...CHANGES),
  });
  return fc
    .tuple(value, fc.infiniteStream(fc.nat({ max: 1_000 })), fc.array(change, { maxLength: 3 }), fc.boolean())
    .map(([each, style, changes, isChanged]) => {
      const text = write(each, style as Style);
      return isChanged ? changes.reduce(changed, text) : text;
    });
}

const CHANGES = [
  ...[
    '',
    ' ',
    '  ',
    '\n',
    '\n\n',
    '\n  ',
    '\t',
    '\r\n',
    '# x',
    ' # x\n',
    ':',
    ': ',
    ':\n',
    '- ',
    '-',
    '---\n',
    '...\n',
  ],
  ...[
    '"',
    "'",
    '""',
    '\\',
    '\\u0041',
    '\\x41',
    '[',
    ']',
    '{',
    '}',
    ',',
    ', ',
    '&a ',
    '*a',
    '!',
    '|',
    '>',
    '%',
    '@',
    '?',
  ],
  ...[
    '0',
    '1e3',
    '0x1f',
    '.5',
    '-1',
    '1_000',
    'null',
    '~',
    'true',
    'no',
    '<<',
    'a: b',
    '__proto__',
    'ä',
    '\u00a0',
    '\u2028',
  ],
];

function changed(text: string, { at, length, text: added }: { at: number; length: number; text: string }): string {
  const place = at % (text.length + 1);
  return text.slice(0, place) + added + text.slice(place + length);
}

function write(value: unknown, style: Style): string {
  const among = pick(style);
  if (among(4) === 0) return JSON.stringify(value, null, oneOf([0, 1, 2, 4], style));
  const text = block(value, 0, style);
  return among(8) === 0 ? text.replaceAll('\n', '\r\n') : text;
}

function oneOf<T>(choices: readonly T[], style: Style): T {
  return choices[style.next().value % choices.length] as T;
}

const BRACKETS: readonly (readonly [start: string, between: string, end: string])[] = [
  ['', ', ', ''],
  [' ', ' , ', ' '],
  ['', ',', ''],
  ['\n      ', ',\n      ', '\n      '],
];

function pick(style: Style): (count: number) => number {
  return (count) => style.next().value % count;
}

function block(value: unknown, indent: number, style: Style): string {
  const among = pick(style);
  const deeper = indent + oneOf([2, 2, 2, 4, 1], style);
  const pad = ' '.repeat(indent);
  const end = () => oneOf(['', '', '', '', ' ', ' # why', '\n', `\n${pad}# why`, '\n# why'], style);
  const rest = (each: unknown, isItem: boolean): string => {
    const isNested = typeof each === 'object' && each !== null && Object.keys(each).length > 0 && among(4) > 0;
    if (!isNested) return ` ${flow(each, style, true)}${end()}\n`;
    // The items of a list may have the indentation of their key.
    const at = Array.isArray(each) && !isItem && among(3) === 0 ? indent : deeper;
    return `${end()}\n${block(each, at, style)}`;
  };
  if (Array.isArray(value)) return value.map((each) => `${pad}-${rest(each, true)}`).join('');
  return Object.entries(value as object)
    .map(([key, each]) => `${pad}${scalar(key, style, false)}:${rest(each, false)}`)
    .join('');
}

function flow(value: unknown, style: Style, isInBlock = false): string {
  const _among = pick(style);
  if (typeof value !== 'object' || value === null) return scalar(value, style, !isInBlock);
  const [start, between, end] = oneOf(BRACKETS, style);
  const parts = Array.isArray(value)
    ? value.map((each) => flow(each, style))
    : Object.entries(value).map(([key, each]) => `${scalar(key, style, true)}: ${flow(each, style)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}${start}${parts.join(between)}${end}${close}`;
}

function scalar(value: unknown, style: Style, isInFlow: boolean): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  const among = pick(style);
  const isPlain = isInFlow ? /^[A-Za-z./$~-][\w./$@-]*$/ : /^[A-Za-z./$~-](?:[^\n:#"'\\\t\r]*[^\s:#"'\\])?$/;
  if (isPlain.test(value) && among(4) > 0) return value;
  return among(2) === 0 && !value.includes('\n') ? `'${value.replaceAll("'", "''")}'` : JSON.stringify(value);
}
