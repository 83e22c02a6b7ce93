import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { entryFor, missingPlatforms } from '../../scripts/lock-platforms.mjs';

const { packages } = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8'));

describe('the lock file', () => {
  it('has the packages of all platforms, so that `npm ci` works on each; if not, run `npm run lock:complete`', () => {
    expect(missingPlatforms(packages)).toEqual([]);
  });

  it('names no addresses, so that every registry can be used', () => {
    // Only a workspace may have `resolved`, which names its folder.
    const resolved = Object.entries<{ resolved?: string }>(packages).filter(([, entry]) => 'resolved' in entry);
    expect(resolved).toEqual([
      ['node_modules/trunkline-lab', { resolved: 'lab', link: true }],
      ['node_modules/trunkline-tests', { resolved: 'test', link: true }],
    ]);
  });
});

describe('a lock file that npm has written for one platform', () => {
  it('lacks the optional packages that are in no entry', () => {
    const optionalDependencies = { 'tool-linux-x64': '1.2.0', 'tool-darwin-arm64': '1.2.0', 'tool-win32-x64': '1.2.0' };
    const found = missingPlatforms({
      'node_modules/tool': { optionalDependencies },
      'node_modules/tool-linux-x64': {},
      'node_modules/tool/node_modules/tool-win32-x64': {},
    });
    expect(found).toEqual([{ name: 'tool-darwin-arm64', version: '1.2.0' }]);
  });

  it.each([
    ['@biomejs/cli-darwin-arm64', { cpu: ['arm64'], os: ['darwin'] }],
    ['@biomejs/cli-linux-x64-musl', { cpu: ['x64'], libc: ['musl'], os: ['linux'] }],
    ['@oxc-parser/binding-linux-riscv64-gnu', { cpu: ['riscv64'], libc: ['glibc'], os: ['linux'] }],
    ['@oxc-parser/binding-win32-x64-msvc', { cpu: ['x64'], os: ['win32'] }],
  ])('gets an entry for %s with the platform that the name tells', (name, platform) => {
    expect(entryFor({ name, version: '1.2.0' })).toEqual({ version: '1.2.0', dev: true, optional: true, ...platform });
  });
});
