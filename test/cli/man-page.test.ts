import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manPage } from '../../src/cli/man-page.js';
import { createProgram } from '../../src/cli/program.js';

const page = manPage(createProgram());

describe('the manual page', () => {
  it('is up to date, as `npm run generate` writes it, and a part of the package', () => {
    const root = join(import.meta.dirname, '../..');
    expect(readFileSync(join(root, 'docs/man/trunkline.1'), 'utf8')).toBe(page);
    const { man, files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect([man, files.includes('docs/man/trunkline.1')]).toEqual([['docs/man/trunkline.1'], true]);
  });

  it('has every command, also those in groups, and no line that troff would take for a request', () => {
    for (const usage of ['trunkline serve [options]', 'trunkline hub restart', 'trunkline secret set [options] <NAME>'])
      expect(page).toContain(`.B ${usage}`);
    const requests = page.split('\n').filter((line) => /^[.']/.test(line));
    const known = /^\.(?:\\"|TH|SH|SS|TP|PP|RS|RE|B|I|nf|fi|br)\b|^\.\\"/;
    expect(requests.filter((line) => !known.test(line))).toEqual([]);
  });
});
