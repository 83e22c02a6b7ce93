import { isRecord } from '../json/json-value.js';
import { printable, printableLines } from '../json/printable.js';
import { readLogRecord } from './log-line.js';

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
    ...(hint === undefined ? [] : [String(hint)]),
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
