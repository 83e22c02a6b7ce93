import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LockedPackage } from '../../../src/servers/packages/lock-file.js';
import { Installing } from './installing.js';

let place: Installing;
beforeEach(async () => {
  place = await Installing.open();
});
afterEach(() => place.registry.close());

/** Makes a repository with these files, and returns its URL as a dependency has it. */
function repository(name: string, files: Readonly<Record<string, string>>): string {
  const path = join(place.folder, name);
  mkdirSync(path);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text, { mode: 0o755 });
  const git = (...args: string[]) =>
    execFileSync(
      'git',
      ['-c', 'user.name=x', '-c', 'user.email=x@x.example', '-c', 'init.defaultBranch=main', ...args],
      { cwd: path },
    );
  git('init', '-q');
  git('add', '-A');
  git('commit', '-qm', 'x');
  return `git+file://${path}`;
}

const manifest = (name: string, more: object = {}) => JSON.stringify({ name, version: '1.0.0', ...more });

/** Installs `tool`, which has this dependency. */
async function install(dependency: string, request?: object, locked?: LockedPackage) {
  place.registry.publish('tool', { version: '1.0.0', dependencies: { other: dependency } });
  return await place.install(request, locked);
}

describe('the installation of a package', () => {
  it('runs nothing of a repository that a dependency names, nor the program of its `.npmrc`', async () => {
    const ran = join(place.folder, 'ran');
    const inner = repository('inner', { 'package.json': manifest('inner') });
    const outer = repository('outer', {
      'package.json': manifest('other', { dependencies: { inner }, scripts: { prepare: `touch ${ran}-prepare` } }),
      '.npmrc': 'git=./payload.sh\nignore-scripts=false\n',
      'payload.sh': `#!/bin/sh\ntouch ${ran}-payload\nexec git "$@"\n`,
    });
    const outcome = await install(outer).catch(({ message }) => message);
    expect([existsSync(`${ran}-payload`), existsSync(`${ran}-prepare`)]).toEqual([false, false]);
    expect(outcome).toMatch(/^EALLOWGIT: .*`foreignDependencies: true`/);
    // Also where the entry allows it, the settings of the repository count for nothing.
    const { installed } = await install(outer, { foreignDependencies: true });
    expect(Object.keys(installed.tree)).toContain('node_modules/other');
    expect([existsSync(`${ran}-payload`), existsSync(`${ran}-prepare`)]).toEqual([false, false]);
  });

  it('takes dependencies from a repository, a folder and a URL only if the entry allows it', async () => {
    place.registry.publish('far', { version: '1.0.0' });
    const inRepository = repository('other', { 'package.json': manifest('other') });
    const inFolder = repository('another', { 'package.json': manifest('another') });
    const dependencies = {
      other: inRepository,
      another: `file:${new URL(inFolder.slice('git+'.length)).pathname}`,
      far: `${place.registry.url}far/-/1.0.0.tgz`,
    };
    for (const dependency of Object.values(dependencies))
      await expect(install(dependency)).rejects.toThrow(
        /elsewhere than from the registry; .*`foreignDependencies: true`/,
      );
    place.registry.publish('tool', { version: '1.0.0', dependencies });
    const { installed } = await place.install({ foreignDependencies: true });
    for (const name of Object.keys(dependencies))
      expect(installed.tree[`node_modules/${name}`]).toHaveProperty('resolved');
    // A tree that was locked while the entry allowed it.
    await expect(place.install({}, installed)).rejects.toThrow(/needs `(?:other|another|far)` from elsewhere/);
  });

  it('takes a dependency under another name from the registry', async () => {
    place.registry.publish('far', { version: '1.0.0' });
    expect(Object.keys((await install('npm:far@1.0.0')).installed.tree).sort()).toEqual([
      'node_modules/other',
      'node_modules/tool',
    ]);
  });
});
