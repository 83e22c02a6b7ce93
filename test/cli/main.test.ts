import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { cacheCompiledCode } from '../../src/cli/main.js';
import { reportFault } from '../../src/cli/output.js';
import { folderWith } from '../config/files.js';
import { shownMode } from '../support/platform.js';

let place: string;
let folder: string;
beforeEach(() => {
  place = folderWith();
  folder = join(place, 'code');
});
/** What `homedir` does for a user without HOME and without an account. */
function withoutHome(): never {
  throw Object.assign(new Error('A system error occurred: uv_os_homedir returned ENOENT'), {
    syscall: 'uv_os_homedir',
  });
}

describe('the cache of compiled code', () => {
  it('is in a folder that only its user can enter', () => {
    const enable = vi.fn();
    cacheCompiledCode(() => folder, '1.2.3', enable);
    expect(enable).toHaveBeenCalledExactlyOnceWith(join(folder, '1.2.3'));
    for (const each of [folder, join(folder, '1.2.3')]) expect(statSync(each).mode & 0o777).toBe(shownMode(0o700));
  });

  it('drops the code of other versions when a version runs for the first time, and keeps its own', () => {
    mkdirSync(join(folder, '1.2.2', 'v22.3.0-x64'), { recursive: true });
    cacheCompiledCode(() => folder, '1.2.3', vi.fn());
    expect(readdirSync(folder)).toEqual(['1.2.3']);
    writeFileSync(join(folder, '1.2.3', 'module'), '');
    cacheCompiledCode(() => folder, '1.2.3', vi.fn());
    expect(readdirSync(join(folder, '1.2.3'))).toEqual(['module']);
  });

  it('is not needed: where it cannot be written, nothing is enabled and nothing fails', () => {
    writeFileSync(folder, 'a file where the folder should be');
    const enable = vi.fn();
    cacheCompiledCode(() => folder, '1.2.3', enable);
    expect(enable).not.toHaveBeenCalled();
  });

  it('is not needed: without a home folder, nothing is enabled and nothing fails', () => {
    const enable = vi.fn();
    cacheCompiledCode(withoutHome, '1.2.3', enable);
    expect(enable).not.toHaveBeenCalled();
  });

  it('makes no folder on a Node that cannot use it', () => {
    cacheCompiledCode(() => folder, '1.2.3', undefined);
    // Node 20 has no such function, and is then the default.
    expect(existsSync(folder)).toBe('enableCompileCache' in process.getBuiltinModule('node:module'));
  });
});

describe('a user without a home folder', () => {
  it('is told to set HOME, in one line', async () => {
    const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const code = await (async () => withoutHome())().catch(reportFault);
    const written = stderr.mock.calls.join('');
    stderr.mockRestore();
    expect([code, written]).toEqual([
      2,
      expect.stringMatching(/^trunkline: this user has no home folder: .*; set HOME to .*\n$/),
    ]);
  });
});
