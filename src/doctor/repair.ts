import { errorMessage } from '../errors/error-text.js';
import { type Finding, finding } from './finding.js';

/** Applies the repairs of the findings. A repaired finding gets the level `ok`, and a finding behind it says what was done. */
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
      const evidence = [errorMessage(error)];
      result.push(rest, finding('TL-FIX-FAILED', `${found.code} could not be mended`, { evidence }));
    }
  }
  return result;
}
