import { CODES, type Code, type Level } from '../errors/codes.js';

/** One line of the doctor: what a check has found. */
export interface Finding {
  readonly level: Level;
  readonly code: Code;
  readonly sentence: string;
  /** What the sentence relies on: paths, versions, lines of output. Never the value of a variable. */
  readonly evidence: readonly string[];
  /** The command or the edit that mends it. Empty if there is nothing to do. */
  readonly remedy: string;
  /** What `--fix` does about it. Absent if that is not safe. */
  readonly repair?: Repair;
}

export interface Repair {
  /** What was done, in the past tense, without a period. */
  readonly done: string;
  readonly apply: () => Promise<void>;
}

interface Details {
  readonly evidence?: readonly string[];
  /** Default: what the table of codes says. */
  readonly remedy?: string | undefined;
  readonly repair?: Repair | undefined;
}

/** A finding with the level of its code. */
export function finding(code: Code, sentence: string, { evidence = [], remedy, repair }: Details = {}): Finding {
  const { level, remedy: usual } = CODES[code];
  return {
    level,
    code,
    sentence,
    evidence,
    remedy: level === 'ok' ? '' : (remedy ?? usual),
    ...(repair && { repair }),
  };
}

/** `1 tool`, `2 tools`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `files`, or `files and 2 more`. */
export function someOf(names: readonly string[], max = 5): string {
  const shown = names.slice(0, max).join(', ');
  return names.length > max ? `${shown} and ${names.length - max} more` : shown;
}
