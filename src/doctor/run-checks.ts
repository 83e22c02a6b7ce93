import { errorMessage } from '../errors/error-text.js';
import { type Finding, finding } from './finding.js';

/** One check. Returns findings and changes nothing. */
export interface Check {
  /** The subject of the check, for the message when it fails or does not end in time. */
  readonly about: string;
  readonly run: () => Promise<readonly Finding[]> | readonly Finding[];
  /** How long it may take. */
  readonly limitMs?: number;
}

/** Leaves time for the rest within the five seconds that a run without servers may take. */
const LIMIT_MS = 4_000;

/** Runs all checks at the same time. Findings come in the order of the checks. Never rejects. */
export async function runChecks(checks: readonly Check[]): Promise<readonly Finding[]> {
  return (await Promise.all(checks.map(runCheck))).flat();
}

async function runCheck({ about, run, limitMs = LIMIT_MS }: Check): Promise<readonly Finding[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly Finding[]>((resolve) => {
    const text = `the check of ${about} did not end within ${limitMs / 1_000} s`;
    timer = setTimeout(() => resolve([finding('TL-DOCTOR-TIMEOUT', text)]), limitMs);
  });
  try {
    // A check that throws at once rejects here, too.
    return await Promise.race([Promise.resolve().then(run), late]);
  } catch (error) {
    return [finding('TL-DOCTOR-FAILED', `the check of ${about} failed`, { evidence: [errorMessage(error)] })];
  } finally {
    clearTimeout(timer);
  }
}
