import { isRecord } from '../json/json-value.js';
import { REDACTED } from '../observe/redact.js';
import { matchesRedacted } from './recorded-messages.js';

/** A difference between a recorded and a new value. */
export interface Difference {
  /** Such as `result.content[0].text`. */
  readonly path: string;
  readonly recorded: unknown;
  readonly now: unknown;
}

/** Stands for a missing value. */
const ABSENT = Symbol('absent');

/** Dates and times as programs write them. */
const TIME = /\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?/g;

/**
 * The differences between two answers. Times in texts do not count, nor do `_meta` and members with one of the names in
 * `ignored`. A secret that was removed from the recording equals everything.
 */
export function differences(recorded: unknown, now: unknown, ignored: ReadonlySet<string>, path = ''): Difference[] {
  if (Array.isArray(recorded) && Array.isArray(now)) {
    const length = Math.max(recorded.length, now.length);
    return Array.from({ length }, (_, at) => at).flatMap((at) =>
      differences(itemAt(recorded, at), itemAt(now, at), ignored, `${path}[${at}]`),
    );
  }
  if (isRecord(recorded) && isRecord(now)) {
    const keys = new Set([...Object.keys(recorded), ...Object.keys(now)]);
    return [...keys].flatMap((key) =>
      key === '_meta' || ignored.has(key)
        ? []
        : differences(memberOf(recorded, key), memberOf(now, key), ignored, path === '' ? key : `${path}.${key}`),
    );
  }
  if (Object.is(recorded, now)) return [];
  if (typeof recorded === 'string' && typeof now === 'string') {
    const [before, after] = [recorded.replaceAll(TIME, '<time>'), now.replaceAll(TIME, '<time>')];
    if (before === after || matchesRedacted(before, after, REDACTED)) return [];
  }
  return recorded === REDACTED ? [] : [{ path, recorded, now }];
}

function itemAt(items: readonly unknown[], at: number): unknown {
  return at < items.length ? items[at] : ABSENT;
}

function memberOf(value: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : ABSENT;
}

const LONGEST_VALUE = 100;
/** Length of the common part that is shown of two long texts. */
const SHOWN_BEFORE = 20;

/** Such as `result.content[0].text: "a" is now "b"`. */
export function differenceText({ path, recorded, now }: Difference): string {
  const [before, after] = [valueText(recorded), valueText(now)];
  let same = 0;
  while (same < before.length && before[same] === after[same]) same += 1;
  const start = before.length > LONGEST_VALUE && same > SHOWN_BEFORE ? same - SHOWN_BEFORE : 0;
  return `${path}: ${excerpt(before, start)} is now ${excerpt(after, start)}`;
}

function valueText(value: unknown): string {
  return value === ABSENT ? 'absent' : JSON.stringify(value);
}

function excerpt(text: string, start: number): string {
  const end = start + LONGEST_VALUE;
  return `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`;
}
