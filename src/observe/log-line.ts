import { isRecord } from '../json/is-record.js';

/** How bad a line of a log is by its own level; `unknown` if it names none. */
export type LogLevel = 'error' | 'warning' | 'info' | 'unknown';

interface LogLine {
  readonly text: string;
  readonly level: LogLevel;
}

/**
 * Reads one line of a program's output: removes colors, and turns the records of loggers that write JSON (pino, bunyan,
 * winston and others) into text. Removing escapes can complete a secret, so remove secrets from the result.
 */
export function readLogLine(line: string): LogLine {
  const text = line.replace(TERMINAL_CODES, '').trimEnd();
  const record = text.startsWith('{') ? readRecord(text) : undefined;
  return record ?? { text, level: levelNamedIn(text) };
}

/** Colors, cursor movements and titles; what is left of other control characters is escaped when the line is shown. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these sequences begin with a control character.
const TERMINAL_CODES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]{0,300}(?:\u0007|\u001b\\)/g;

function readRecord(json: string): LogLine | undefined {
  let record: unknown;
  try {
    record = JSON.parse(json);
  } catch {
    // Text that begins with a brace, or a record that was cut.
    return undefined;
  }
  if (!isRecord(record)) return undefined;
  const fault = [record.err, record.error, record.exception].map(messageOf).find(Boolean);
  const parts = [record.msg, record.message, fault].flatMap((part) => messageOf(part) ?? []);
  if (parts.length === 0) return undefined;
  const level = levelOf(record.level ?? record.severity);
  const label = level === 'error' ? 'ERROR: ' : '';
  return { text: label + [...new Set(parts)].join(': ').replaceAll(/\s+/g, ' ').trim(), level };
}

function messageOf(value: unknown): string | undefined {
  const text = isRecord(value) ? value.message : value;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
}

/** Numbers are those of pino and bunyan. */
function levelOf(level: unknown): LogLevel {
  if (typeof level === 'number') return level >= 50 ? 'error' : level >= 40 ? 'warning' : 'info';
  return typeof level === 'string' ? levelOfWord(level) : 'unknown';
}

function levelOfWord(word: string): LogLevel {
  if (/^(?:err|fatal|crit|alert|emerg|panic)/i.test(word)) return 'error';
  if (/^warn/i.test(word)) return 'warning';
  return /^(?:info|notice|debug|trace|verbose|silly|http)/i.test(word) ? 'info' : 'unknown';
}

/** The first level that a logger named before the message: `[INFO]`, `error:`, `2026-01-01 00:00:00 WARN server`. */
const NAMED_LEVEL =
  /^.{0,60}?(?:\b(ERROR|FATAL|CRITICAL|WARN|WARNING|INFO|NOTICE|DEBUG|TRACE|VERBOSE)\b|\b([Ee]rror|[Ff]atal|[Ww]arn|[Ww]arning|[Ii]nfo|debug|trace|verbose)(?=[\]:|]))/;

function levelNamedIn(text: string): LogLevel {
  const [, loud, quiet] = NAMED_LEVEL.exec(text) ?? [];
  return levelOfWord(loud ?? quiet ?? '');
}
