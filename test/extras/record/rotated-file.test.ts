import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RotatedFile } from '../../../src/extras/record/rotated-file.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

const open = (maxFiles = 5) =>
  RotatedFile.open({ file: join(folder, 'log'), maxFileBytes: 40, maxFiles, isShared: true });
const linesOf = (name: string) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1);

describe('a file that several processes write', () => {
  it('is followed by a process that did not rotate it, so that no line goes to a file that is deleted later', async () => {
    const [busy, quiet] = [await open(), await open()];
    await busy.write('1234567890123456789\n');
    await busy.write('1234567890123456789\n');
    await busy.write('next\n');
    expect(readdirSync(folder)).toEqual(['log', 'log.1']);
    vi.advanceTimersByTime(1_000);
    await quiet.write('quiet\n');
    expect(linesOf('log')).toEqual(['next', 'quiet']);
    await Promise.all([busy.close(), quiet.close()]);
  });

  it('is made again after somebody has removed it', async () => {
    const log = await open();
    await log.write('one\n');
    rmSync(join(folder, 'log'));
    vi.advanceTimersByTime(1_000);
    await log.write('two\n');
    expect(linesOf('log')).toEqual(['two']);
    await log.close();
  });

  it('keeps every line once, although all of them find it full at the same moment', async () => {
    const logs = await Promise.all(Array.from({ length: 8 }, () => open(1_000)));
    const lines = logs.map((_, log) => Array.from({ length: 50 }, (__, line) => `${log}-${line} ${'x'.repeat(10)}`));
    await Promise.all(
      logs.map(async (log, at) => {
        for (const line of lines[at] ?? []) await log.write(`${line}\n`);
        await log.close();
      }),
    );
    const names = readdirSync(folder);
    expect(names.length).toBeGreaterThan(3);
    expect(names.flatMap(linesOf).sort()).toEqual(lines.flat().sort());
  });
});
