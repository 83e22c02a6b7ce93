import { describe, expect, it } from 'vitest';
import { pausesOn, whenFree, whenFreeSync } from '../../../src/host/files/held-files.js';

const QUICK = [0, 0, 0];

/** Work at a file that refuses with a code some times, and then succeeds. */
function refusing(code: string, times: number) {
  let attempts = 0;
  const work = () => {
    attempts += 1;
    if (attempts <= times) throw Object.assign(new Error(`${code}: attempt ${attempts}`), { code });
    return 'done';
  };
  return { work, attempts: () => attempts };
}

const WAYS = [
  ['whenFree', (work: () => string, pausesMs: readonly number[]) => whenFree(async () => work(), pausesMs)],
  ['whenFreeSync', async (work: () => string, pausesMs: readonly number[]) => whenFreeSync(work, pausesMs)],
] as const;

describe.each(WAYS)('%s', (_, doing) => {
  it.each(['EPERM', 'EACCES', 'EBUSY'])('tries again while a file is held (%s)', async (code) => {
    const { work, attempts } = refusing(code, 3);
    expect(await doing(work, QUICK)).toBe('done');
    expect(attempts()).toBe(4);
  });

  it('gives up with the last error when the file stays held', async () => {
    const { work } = refusing('EBUSY', 9);
    await expect(doing(work, QUICK)).rejects.toThrow('EBUSY: attempt 4');
  });

  it.each(['ENOENT', 'ENOSPC', 'EISDIR'])(
    'reports %s at once, because no other program holds the file',
    async (code) => {
      const { work, attempts } = refusing(code, 1);
      await expect(doing(work, QUICK)).rejects.toThrow(code);
      expect(attempts()).toBe(1);
    },
  );
});

describe('the pauses for a held file', () => {
  it.each([
    ['win32', 1_275],
    ['linux', 0],
    ['darwin', 0],
  ])('on %s take %i ms together', (platform, totalMs) => {
    expect(pausesOn(platform).reduce((sum, pauseMs) => sum + pauseMs, 0)).toBe(totalMs);
  });
});
