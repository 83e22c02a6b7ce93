import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { errorsPage } from '../../../scripts/errors.mjs';
import { listedCodes } from '../../../src/cli/commands/doctor/doctor.js';
import { REASONS } from '../../../src/downstream/failure.js';
import { AREAS, CODES } from '../../../src/host/errors/codes.js';

const ROOT = join(import.meta.dirname, '../../..');

describe('the codes', () => {
  it('have the form TL-AREA-NAME, and each has a meaning and a remedy in sentences', () => {
    for (const [code, { means, remedy }] of Object.entries(CODES)) {
      expect(code).toMatch(/^TL(?:-[A-Z]+){2,4}$/);
      expect(means).toMatch(/^[A-Z`].*\.$/);
      expect(remedy).toMatch(/^[A-Z`].*\.$/);
    }
  });

  it('are each in one area', () => {
    const all = AREAS.flatMap(({ codes }) => Object.keys(codes));
    expect(new Set(all).size).toBe(all.length);
  });

  it('are all on the page, as `npm run generate` writes it', () => {
    expect(readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')).toBe(errorsPage(listedCodes()));
  });

  it('are each provoked by a test', () => {
    const folder = import.meta.dirname;
    const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts') && name !== 'codes.test.ts');
    const tests = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
    const ofCalls = new Set<string>([
      ...Object.values(REASONS).map(({ code }) => code),
      'TL-CALL-HUB-EXITED',
      'TL-CALL-INSTANCE-LOST',
      'TL-CALL-INTERNAL',
    ]);
    const unprovoked = Object.keys(CODES).filter((code) => !ofCalls.has(code) && !tests.includes(`'${code}'`));
    expect(unprovoked).toEqual([]);
  });
});
