import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cacheCompiledCode } from '../../src/cli/main.js';

let place: string;
let folder: string;
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'trunkline-code-cache-'));
  folder = join(place, 'code');
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

describe('the cache of compiled code', () => {
  it('is in a folder that only its user can enter', () => {
    const enable = vi.fn();
    cacheCompiledCode(folder, '1.2.3', enable);
    expect(enable).toHaveBeenCalledExactlyOnceWith(join(folder, '1.2.3'));
    for (const each of [folder, join(folder, '1.2.3')]) expect(statSync(each).mode & 0o777).toBe(0o700);
  });

  it('drops the code of other versions when a version runs for the first time, and keeps its own', () => {
    mkdirSync(join(folder, '1.2.2', 'v22.3.0-x64'), { recursive: true });
    cacheCompiledCode(folder, '1.2.3', vi.fn());
    expect(readdirSync(folder)).toEqual(['1.2.3']);
    writeFileSync(join(folder, '1.2.3', 'module'), '');
    cacheCompiledCode(folder, '1.2.3', vi.fn());
    expect(readdirSync(join(folder, '1.2.3'))).toEqual(['module']);
  });

  it('is not needed: where it cannot be written, nothing is enabled and nothing fails', () => {
    writeFileSync(folder, 'a file where the folder should be');
    const enable = vi.fn();
    cacheCompiledCode(folder, '1.2.3', enable);
    expect(enable).not.toHaveBeenCalled();
  });

  it('makes no folder on a Node that cannot use it', () => {
    cacheCompiledCode(folder, '1.2.3', undefined);
    // Node 20 has no such function, and is then the default.
    expect(existsSync(folder)).toBe('enableCompileCache' in process.getBuiltinModule('node:module'));
  });
});
