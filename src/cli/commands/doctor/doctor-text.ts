import type { Finding } from '../../../doctor/finding.js';
import { AREAS, type Code, type Level } from '../../../errors/codes.js';
import { plural } from '../../../gateway/status/status-text.js';
import { type Look, paint } from '../../terminal.js';

/** A finding as `--json` prints it. */
export type ReportedFinding = Omit<Finding, 'repair'>;

const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Level, string>;
const INDENT = '      ';
/** Evidence can be the output of a server. */
const MAX_LINES = 20;

/** The findings by area, each with its evidence and its remedy, and a line that counts them. */
export function findingsText(findings: readonly ReportedFinding[], look: Look): string {
  const sections = AREAS.flatMap(({ title, codes }) => {
    const own = findings.filter(({ code }) => Object.hasOwn(codes, code));
    return own.length === 0 ? [] : [[title, ...own.map((one) => findingText(one, look))].join('\n')];
  });
  return [...sections, summaryText(findings)].join('\n\n');
}

function findingText({ level, code, sentence, evidence, remedy }: ReportedFinding, look: Look): string {
  const word = level.padEnd(4);
  const head = `${paint(look, STYLES[level], word)}  ${code}  ${sentence}`;
  const below = evidence.slice(0, MAX_LINES).flatMap((each) => each.split('\n').map((line) => `${INDENT}| ${line}`));
  return [head, ...below, ...(remedy === '' ? [] : [`${INDENT}${remedy}`])].join('\n');
}

/** How many findings of each level there are. */
export function countsOf(findings: readonly ReportedFinding[]): Readonly<Record<Level, number>> {
  const count = (level: Level) => findings.filter((each) => each.level === level).length;
  return { ok: count('ok'), warn: count('warn'), fail: count('fail') };
}

function summaryText(findings: readonly ReportedFinding[]): string {
  const { warn, fail } = countsOf(findings);
  if (warn + fail === 0) return 'Everything is fine.';
  const parts = [fail > 0 && plural(fail, 'problem'), warn > 0 && plural(warn, 'warning')].filter(
    (part) => part !== false,
  );
  return `${parts.join(' and ')}.`;
}

/** One row of `--codes`. */
export interface ListedCode {
  readonly area: string;
  readonly code: Code;
  readonly level: Level;
  readonly means: string;
  readonly remedy: string;
}

/** All codes, in the order of their areas. */
export function listedCodes(): ListedCode[] {
  return AREAS.flatMap(({ title, codes }) =>
    Object.entries(codes).map(([code, entry]) => ({ area: title, code: code as Code, ...entry })),
  );
}
