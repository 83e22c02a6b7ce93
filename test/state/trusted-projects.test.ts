import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readTrusted, trustedList, trustedProject } from '../../src/state/trusted-projects.js';
import { folderWith } from '../config/files.js';
import { IS_WINDOWS } from '../support/platform.js';

const ONE = trustedProject('/src/shop/trunkline.yaml', 'servers: {}\n');

function listWith(text: string): string {
  const file = join(folderWith(), 'trusted.json');
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

describe('the list of trusted projects', () => {
  it('has the accepted texts, and is empty without a file', () => {
    expect(readTrusted(listWith(trustedList([ONE])))).toEqual([ONE]);
    expect(readTrusted(join(folderWith(), 'trusted.json'))).toEqual([]);
  });

  it.each([
    ['is cut off', trustedList([ONE]).slice(0, -4)],
    ['is empty', ''],
    ['has a text that nobody has accepted', trustedList([{ ...ONE, text: 'servers: { evil: { command: sh } }' }])],
    ['is of another version', trustedList([ONE]).replace('"format":1', '"format":2')],
  ])('trusts nothing if it %s', (_, text) => {
    expect(() => readTrusted(listWith(text))).toThrow('it is damaged, or of another version');
  });

  it.skipIf(IS_WINDOWS)('trusts nothing if others can write it', () => {
    const file = listWith(trustedList([ONE]));
    chmodSync(file, 0o666);
    expect(() => readTrusted(file)).toThrow();
  });

  it('refuses to become larger than it may be when it is read', () => {
    expect(() => trustedList([trustedProject('/a', 'x'.repeat(17 * 1024 * 1024))])).toThrow(RangeError);
  });
});
