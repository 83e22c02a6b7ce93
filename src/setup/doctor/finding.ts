import { setTimeout } from 'node:timers/promises';
import { CODES, type Code, type Level } from '../../host/errors/codes.js';
import { errorMessage } from '../../host/errors/error-text.js';
import { explain } from '../../host/errors/file-error.js';

export interface Finding extends ReportedFinding {
  /** Repair that `--fix` carries out. Absent if none is safe. */
  readonly repair?: Repair;
}

export interface ReportedFinding {
  readonly level: Level;
  readonly code: Code;
  readonly sentence: string;
  /** Paths, versions or lines of output that support the sentence. Never the value of a variable. */
  readonly evidence: readonly string[];
  /** The command or the edit that mends it. Empty if there is nothing to do. */
  readonly remedy: string;
}

export interface Repair {
  /** Description of the finished repair, in the past tense, without a period. */
  readonly done: string;
  readonly apply: () => Promise<void>;
}

/** A finding with the level of its code, and with the remedy in the table of codes unless another one is given. */
export function finding(
  code: Code,
  sentence: string,
  evidence: readonly string[] = [],
  { remedy, repair }: { readonly remedy?: string | undefined; readonly repair?: Repair | undefined } = {},
): Finding {
  const { level, remedy: usual } = CODES[code];
  const found = { level, code, sentence, evidence, remedy: level === 'ok' ? '' : (remedy ?? usual) };
  return repair === undefined ? found : { ...found, repair };
}

/** Age of the oldest events that count. Older ones belong to another problem. */
export const RECENT_MS = 24 * 60 * 60 * 1_000;

/** Applies the repairs of the findings. A repaired finding gets the level `ok`; the finding after it describes the repair. */
export async function repair(findings: readonly Finding[]): Promise<readonly Finding[]> {
  const result: Finding[] = [];
  for (const found of findings) {
    const { repair: offered, ...rest } = found;
    if (offered === undefined) {
      result.push(found);
      continue;
    }
    try {
      await offered.apply();
      result.push({ ...rest, level: 'ok', remedy: '' }, finding('TL-FIX-DONE', `${found.code}: ${offered.done}`));
    } catch (error) {
      const evidence = [explain(error)];
      result.push(rest, finding('TL-FIX-FAILED', `${found.code} could not be mended`, evidence));
    }
  }
  return result;
}

/** Checks by their subjects, which the message names when a check fails or does not end in time. They change nothing. */
export type Checks = Readonly<Record<string, () => Promise<readonly Finding[]> | readonly Finding[]>>;

/** Time limit of a check, which leaves time for the rest within the five seconds that a run without servers may take. */
const LIMIT_MS = 4_000;

/** Runs all checks at the same time. Findings come in the order of the checks. Never rejects. */
export async function runChecks(checks: Checks, limitMs = LIMIT_MS): Promise<readonly Finding[]> {
  const all = Object.entries(checks).map(([about, run]) => runCheck(about, run, limitMs));
  return (await Promise.all(all)).flat();
}

async function runCheck(about: string, run: Checks[string], limitMs: number): Promise<readonly Finding[]> {
  const late = finding('TL-DOCTOR-TIMEOUT', `the check of ${about} did not end within ${limitMs / 1_000} s`);
  try {
    // `then` makes a check that throws at once reject, too.
    return await Promise.race([Promise.resolve().then(run), setTimeout(limitMs, [late])]);
  } catch (error) {
    return [finding('TL-DOCTOR-FAILED', `the check of ${about} failed`, [errorMessage(error)])];
  }
}
