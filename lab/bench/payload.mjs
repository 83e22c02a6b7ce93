/** Texts as tools have them: lines of prose with quotes, in one alphabet and in several. */
const LINES = {
  text: 'A line of a source file, with "a string" in it and some forty words to go before it ends here.\n',
  'non-Latin text': 'Съешь же ещё этих мягких французских булок, да выпей чаю; 漢字かな交じり文 — «😀»\n',
};

export const TEXT_KINDS = Object.keys(LINES);

/** Others, which are full of what has to be escaped or have nothing of it. */
const MORE_LINES = {
  JSON: '{"id":4711,"name":"trunkline","tags":["a","b"],"path":"src/index.ts","ok":true},',
  paths: 'C:\\Users\\name\\a folder\\file.txt; ',
  'base 64': 'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w',
};

export const ALL_KINDS = [...TEXT_KINDS, ...Object.keys(MORE_LINES)];

/** A text that takes about so many bytes as JSON. */
export function textOf(kind, byteLength) {
  const line = LINES[kind] ?? MORE_LINES[kind];
  return line.repeat(Math.max(1, Math.floor(byteLength / (Buffer.byteLength(JSON.stringify(line)) - 2))));
}
