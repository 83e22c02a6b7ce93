import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { printable, printableLines } from '../../wire/json/printable.js';

/** Severity of a line of a log by its own level; `unknown` if it names none. */
export type LineLevel = 'error' | 'warning' | 'info' | 'unknown';

/**
 * Reads one line of a program's output: removes colors, and turns the records of loggers that write JSON (pino, bunyan,
 * winston and others) into text. Removing escapes can complete a secret, so remove secrets from the result.
 */
export function readLogLine(line: string): { readonly text: string; readonly level: LineLevel } {
  const text = line.replace(TERMINAL_CODES, '').trimEnd();
  const record = readLogRecord(text);
  if (record === undefined) return { text, level: levelNamedIn(text) };
  const level = levelOf(record.level);
  const label = level === 'error' ? 'ERROR: ' : '';
  return { text: label + record.message.replaceAll(/\s+/g, ' ').trim(), level };
}

/**
 * Colors, cursor movements and titles; what is left of other control characters is escaped when the line is shown. Node's
 * `stripVTControlCharacters` also removes a bell that follows a color.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these sequences begin with a control character.
const TERMINAL_CODES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]{0,300}(?:\u0007|\u001b\\)/g;

export interface LogRecord {
  /** A word, or a number of pino or bunyan. `undefined` if the record has none. */
  readonly level: unknown;
  /** The message, the reason and the error, as far as there are any, in one text. */
  readonly message: string;
  readonly server: string | undefined;
}

/** Reads a JSON record of a logger. `undefined` if the line is text, a record that was cut, or JSON without a message. */
function readLogRecord(line: string): LogRecord | undefined {
  const record = line.startsWith('{') ? parseJson(line) : undefined;
  if (!isRecord(record)) return undefined;
  const fault = [record.err, record.error, record.exception].map(messageOf).find(Boolean);
  const parts = [record.msg, record.message, record.reason, fault].flatMap((part) => messageOf(part) ?? []);
  if (parts.length === 0) return undefined;
  return {
    level: record.level ?? record.severity,
    message: [...new Set(parts)].join(': '),
    server: typeof record.server === 'string' ? record.server : undefined,
  };
}

function messageOf(value: unknown): string | undefined {
  const text = isRecord(value) ? value.message : value;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
}

/** Numbers are those of pino and bunyan. */
function levelOf(level: unknown): LineLevel {
  if (typeof level === 'number') return level >= 50 ? 'error' : level >= 40 ? 'warning' : 'info';
  return typeof level === 'string' ? levelOfWord(level) : 'unknown';
}

function levelOfWord(word: string): LineLevel {
  if (/^(?:err|fatal|crit|alert|emerg|panic)/i.test(word)) return 'error';
  if (/^warn/i.test(word)) return 'warning';
  return /^(?:info|notice|debug|trace|verbose|silly|http)/i.test(word) ? 'info' : 'unknown';
}

/** The first level that a logger named before the message: `[INFO]`, `error:`, `2026-01-01 00:00:00 WARN server`. */
const NAMED_LEVEL =
  /^.{0,60}?(?:\b(ERROR|FATAL|CRITICAL|WARN|WARNING|INFO|NOTICE|DEBUG|TRACE|VERBOSE)\b|\b([Ee]rror|[Ff]atal|[Ww]arn|[Ww]arning|[Ii]nfo|debug|trace|verbose)(?=[\]:|]))/;

function levelNamedIn(text: string): LineLevel {
  const [, loud, quiet] = NAMED_LEVEL.exec(text) ?? [];
  return levelOfWord(loud ?? quiet ?? '');
}

type Members = Readonly<Record<string, unknown>>;

const LEVELS = new Map([
  [10, 'trace'],
  [20, 'debug'],
  [30, 'info'],
  [40, 'warn'],
  [50, 'error'],
  [60, 'fatal'],
]);

/** Column of the text, after the time and the level. Further lines of a record are indented to it. */
const INDENT = ' '.repeat('12:00:01 error '.length);

/**
 * A record of the log as text for a person at a terminal: `12:00:01 warn  files: server parked: it exited (restarts 4)`,
 * then the lines that name the cause, its stack or its hint, each on a line of its own.
 */
export function toText({
  level,
  time,
  server,
  msg,
  message,
  reason,
  line,
  err,
  hint,
  cause,
  ...facts
}: Members): string {
  const error = isRecord(err) ? err : {};
  // `line` is a line of a server, or the number of a line of the configuration file.
  const said = typeof line === 'string' ? readableLine(line) : undefined;
  const sentence = [server, msg ?? message, reason ?? said ?? error.message].filter((part) => part !== undefined);
  // `cause` has lines of a failed server, or is the word for why Trunkline ends.
  const lines = Array.isArray(cause) ? cause : undefined;
  const rest = { ...(typeof line === 'number' && { line }), ...(lines === undefined && { cause }), ...facts };
  const more = Object.entries(rest).flatMap(([name, value]) => describe(name, value) ?? []);
  const isBug = Number(level) >= 50 && typeof error.stack === 'string';
  const below = [
    ...(isBug ? [String(error.stack)] : []),
    ...(lines ?? []).map((each) => `| ${readableLine(String(each))}`),
    ...[hint ?? error.hint].flatMap((next) => (next === undefined ? [] : [String(next)])),
  ];
  const head = sentence.join(': ') + (more.length === 0 ? '' : ` (${more.join(', ')})`);
  const name = (LEVELS.get(Number(level)) ?? 'info').padEnd(5);
  const at = new Date(String(time)).toTimeString().slice(0, 8);
  return `${at} ${name} ${printableLines([head, ...below].join('\n')).replaceAll('\n', `\n${INDENT}`)}\n`;
}

/** One fact, such as `pid 123`. Absent values, empty lists and what the sentence says already are left out. */
function describe(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === false || name === 'state' || name === 'column')
    return undefined;
  if (value === true) return name;
  if (Array.isArray(value)) return value.length === 0 ? undefined : `${name} ${value.join(' ')}`;
  return `${name} ${isRecord(value) ? JSON.stringify(value) : String(value)}`;
}

/**
 * A line of a server's log for a person. Loggers such as pino and winston write records as JSON; of such a line, the level
 * and the message are shown. Every other line stays as it is.
 */
export function readableLine(line: string): string {
  const record = readLogRecord(line);
  if (record?.level === undefined) return line;
  const { server, message } = record;
  const level = LEVELS.get(Number(record.level)) ?? String(record.level);
  return printable(`${level} ${server === undefined ? '' : `${server}: `}${message}`);
}
