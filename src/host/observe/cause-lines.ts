import { ERROR_CODE } from '../errors/error-text.js';
import { type LineLevel, readLogLine } from './log-line.js';

/** Number of lines to read from the end, because a server can write very many, and later ones are closer to the failure. */
const MAX_LINES = 2_000;
/** Number of the last lines without noise among which the cause is chosen, because the server survived earlier errors. */
const WINDOW = 60;
/** Characters of a line that are read, because its start decides its rank. */
const MAX_READ_CHARACTERS = 2_000;
const MAX_SHOWN_CHARACTERS = 500;
/** Most lines between the place of an error and the error itself. */
const MAX_EXCERPT_LINES = 8;

/** Value of a line for the question why a program ended. */
const RANK = {
  /** Stack frames, source excerpts, dumps of objects, usage texts. */
  noise: 0,
  plain: 1,
  /** Explains the error before it, or how to call the program. */
  near: 2,
  error: 3,
  /** The last line of a program, unless another line says more clearly why it ended. */
  last: 4,
  /** Output of a runtime when an error ends the program. */
  fatal: 5,
} as const;

type Rank = (typeof RANK)[keyof typeof RANK];

interface Line {
  readonly text: string;
  readonly level: LineLevel;
  rank: Rank;
}

/**
 * Picks the lines that name the cause of a failure from the output of a program that ended, in their order.
 *
 * A runtime prints the cause first and then stack frames, and many servers print their usage after it, so the last lines are the
 * wrong ones. Records of loggers that write JSON become text. Without a line that looks like an error, the last lines are returned.
 * Remove secrets from the lines, and escape them before they are shown, because a server wrote them.
 */
export function causeLines(output: readonly string[], max: number): string[] {
  const lines = withoutRepeats(rankLines(output.slice(-MAX_LINES)));
  const said = lines.filter(({ rank }) => rank > RANK.noise).slice(-WINDOW);
  const telling = said.filter(({ rank }) => rank > RANK.plain);
  if (telling.length === 0) return (said.length > 0 ? said : lines).slice(-max).map(({ text }) => text);
  raiseLast(said);
  const ranked = said.filter(({ rank }) => rank > RANK.plain).sort((one, other) => other.rank - one.rank);
  const chosen = new Set(ranked.slice(0, max));
  return said.filter((line) => chosen.has(line)).map(({ text }) => text);
}

/** Raises the last line, because a program often says there why it ends, in words that no list has. */
function raiseLast(said: readonly Line[]): void {
  const last = said.at(-1);
  if (last === undefined || last.rank >= RANK.error || last.level === 'info' || USAGE.test(last.text)) return;
  if (said.every(({ rank }) => rank !== RANK.fatal)) last.rank = RANK.last;
}

/** Reads the output from its beginning, since what a line means depends on the lines before it. */
function rankLines(output: readonly string[]): Line[] {
  const reading: Reading = { section: 'anywhere', excerptLines: 0, isAfterError: false };
  return output.map((line) => {
    const { text, level } = readLogLine(line);
    const rank = rankOf(text.slice(0, MAX_READ_CHARACTERS), level, reading);
    reading.isAfterError = rank >= RANK.error;
    return { text: shorten(text.trim()), level, rank };
  });
}

/** Context of the next line from the lines before it. */
interface Reading {
  /** The text of several lines that the next line is in. */
  section: 'anywhere' | 'excerpt' | 'uncaught' | 'frames' | 'python-frames' | 'usage';
  excerptLines: number;
  isAfterError: boolean;
}

function rankOf(line: string, level: LineLevel, reading: Reading): Rank {
  const text = line.replace(STDOUT_NOTE, '').replace(NPM_LABEL, '');
  const isIndented = /^\s/.test(text);
  if (text.trim() === '') return RANK.noise;
  if (SOURCE_PLACE.test(text)) {
    reading.excerptLines = 0;
    return enter(reading, 'excerpt');
  }
  if (MARKER.test(text)) return enter(reading, 'uncaught');
  if (reading.section === 'excerpt') {
    reading.excerptLines += 1;
    if (!ERROR_NAME.test(text) && reading.excerptLines <= MAX_EXCERPT_LINES) return RANK.noise;
    reading.section = 'anywhere';
  }
  if (FRAME.test(text)) return enter(reading, 'frames');
  if (PYTHON_TRACEBACK.test(text)) return enter(reading, 'python-frames');
  if (reading.section === 'python-frames') {
    if (isIndented) return RANK.noise;
    reading.section = 'anywhere';
    return RANK.fatal;
  }
  if (reading.section === 'uncaught') {
    reading.section = 'anywhere';
    return RANK.fatal;
  }
  if (reading.section === 'frames' && !isIndented) reading.section = 'anywhere';
  if (FATAL.test(text)) return RANK.fatal;
  if (USAGE.test(text)) {
    reading.section = 'usage';
    return RANK.near;
  }
  if (NOISE.some((pattern) => pattern.test(text))) return RANK.noise;
  const isError = level === 'error' || (level === 'unknown' && ERROR.some((pattern) => pattern.test(text)));
  if (reading.section === 'usage') {
    if (isIndented || !isError) return RANK.noise;
    reading.section = 'anywhere';
  }
  if (isError) return RANK.error;
  if (level !== 'unknown') return RANK.plain;
  // Lines behind an error continue its message, or say what to do about it.
  return reading.isAfterError && reading.section === 'anywhere' ? RANK.near : RANK.plain;
}

function enter(reading: Reading, section: Reading['section']): Rank {
  reading.section = section;
  return RANK.noise;
}

/** Prefix of lines that a server wrote to stdout, in the log of Trunkline. */
const STDOUT_NOTE = /^stdout \([^)]{0,100}\): /;
const NPM_LABEL = /^npm (?:error|ERR!|warn|WARN) ?/;
/** Place of an error in Node's output, before the line of the source. */
const SOURCE_PLACE = /^(?:file:\/\/|node:|\/|[A-Za-z]:[\\/])\S*:\d+$/;
/** Marks the place in the line of the source above. */
const MARKER = /^\s*[\^~]+\s*$/;
const FRAME = /^\s+at \S/;
const PYTHON_TRACEBACK = /^\s*(?:Traceback \(most recent call last\):|File ".{1,300}", line \d+)/;
const ERROR_NAME = /^(?:Uncaught |\[)?(?:[A-Z]\w{0,60})?(?:Error|Exception)\b/;
const FATAL = /^(?:Uncaught |Unhandled|thread '.{0,100}' panicked|panic: |Exception in thread |fatal\b)/i;
const USAGE = /^\s*usage:/i;

/** Names of errors, codes of systems and of Node, and words for something that a server lacks. */
const ERROR: readonly RegExp[] = [
  ERROR_NAME,
  /\b(?:error|fatal|panic|exception|ERR!)(?=[:!\]\s]|$)/i,
  /\b[A-Za-z]{1,60}(?:Error|Exception)\b/,
  ERROR_CODE,
  /\b(?:is|are|not|no|was|were) (?:required|missing|set|provided|specified|found|defined|configured|valid|allowed|accessible|supported|recognized)\b/i,
  /\b(?:required|missing|invalid|unknown|unsupported|refused|rejected|denied|unauthorized|forbidden|expired|failed|failure|cannot|couldn't|can't|unable to|could not|must|mandatory)\b/i,
  /\b(?:please|you need to) (?:set|provide|specify|configure|pass|install|supply|add|run|define)\b/i,
  /\b(?:api[ _-]?key|access[ _-]?token|certificate|no such file|already in use|timed out|out of memory|permission)\b/i,
];

/** Lines that belong to a stack, to a dumped object, or to the program that ran the server. */
const NOISE: readonly RegExp[] = [
  /^Node\.js v\d/,
  /^\(Use `node --trace/,
  /^\(node:\d+\) (?:\[DEP|ExperimentalWarning|Warning|DeprecationWarning)/,
  /^[\s[\]{}(),;]*$/,
  // A path and nothing else.
  /^\s*[^\w\s/]?\s*['"]?(?:file:\/\/)?(?:[A-Za-z]:)?[\\/][^\s'"]*['"]?,?$/,
  // A member of an object that `util.inspect` or `JSON.stringify` printed, unless it says something.
  /^\s+(?:(?!\[cause\]|["']?message)['"]?[\w$[\]-]+['"]?): .{0,2000}(?:[,{[]|['"\d}\]])$/,
  /^\s+['"][\w$.-]{1,60}['"],?$/,
  /^Require stack:|^(?:During handling of the|The) above exception|\b(?:0|no) errors?\b/i,
  // Lines that npm adds to its errors.
  /^A complete log of this run|Note that you can also install from a$|tarball, folder, http url, or git url\.$|^\d+\s*$/,
];

function shorten(text: string): string {
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}

/** Servers repeat themselves with each attempt and each restart, with another time or number. The clearest one stays. */
function withoutRepeats(lines: readonly Line[]): Line[] {
  const best = new Map<string, Line>();
  for (const line of lines) {
    const key = keyOf(line.text);
    const known = best.get(key);
    if (known === undefined || line.rank > known.rank) best.set(key, line);
  }
  return lines.filter((line) => line.text !== '' && best.get(keyOf(line.text)) === line);
}

function keyOf(text: string): string {
  return text.replace(STDOUT_NOTE, '').replace(LABELS, '').replaceAll(/\d+/g, '#').toLowerCase().trim();
}

/** Prefixes of lines with the same message. */
const LABELS = /^(?:(?:Uncaught |\[?[A-Z]?[A-Za-z]{0,60}(?:Error|ERROR|Exception)\]?)(?: \[\w{1,60}\])?:? )+/;
