import { mkdirSync, promises, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type LockOwner, ProcessLock } from '../../../src/host/process/process-lock.js';
import type { RunProcess } from '../../../src/host/process/run-file.js';
import { folderWith } from '../../config/files.js';
import { shownMode } from '../../support/platform.js';

const HOST = 'this machine';
const NEVER = new AbortController().signal;

interface Options {
  readonly self?: Partial<LockOwner>;
  readonly isRunning?: (process: RunProcess) => boolean;
  readonly onTorn?: (name: string, reason: string) => void;
  /** Called when the lock asks whose it would be. */
  readonly onLook?: () => void;
}

function lockIn(folder: string, options: Options = {}): ProcessLock {
  const { self = {}, isRunning = () => true, onTorn = () => {}, onLook = () => {} } = options;
  return new ProcessLock({
    folder,
    self: async () => {
      onLook();
      return { host: HOST, process: { pid: 1, startTime: '1' }, ...self };
    },
    isRunning: async (process) => isRunning(process),
    onTorn: (file, reason) => onTorn(basename(file), reason),
  });
}

afterEach(() => vi.restoreAllMocks());

/** A lock as somebody else left it. */
function leave(folder: string, owner: LockOwner, ageMs = 0): void {
  const file = join(folder, 'lock.7');
  writeFileSync(file, JSON.stringify(owner));
  const at = new Date(Date.now() - ageMs);
  utimesSync(file, at, at);
}

/** Whether the lock can be had at once. A process that has to wait gives up at its second look. */
async function isFree(folder: string, options: Options = {}): Promise<boolean> {
  const gaveUp = new AbortController();
  let looks = 0;
  const onLook = () => {
    looks += 1;
    if (looks === 2) gaveUp.abort(new Error('the lock is held'));
  };
  return await lockIn(folder, { ...options, onLook })
    .acquire(gaveUp.signal)
    .then(
      async (release) => {
        await release();
        return true;
      },
      () => false,
    );
}

describe('the lock of a process', () => {
  it('has one holder at a time', async () => {
    const folder = folderWith();
    let held = 0;
    let turns = 0;
    const work = async () => {
      const release = await lockIn(folder).acquire(NEVER);
      held += 1;
      expect(held).toBe(1);
      await new Promise(setImmediate);
      held -= 1;
      turns += 1;
      await release();
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(turns).toBe(8);
    // The next holder removes what was released.
    expect(readdirSync(folder)).toEqual(['lock.8']);
  });

  it('is not waited for any longer than wanted', async () => {
    const folder = folderWith();
    const release = await lockIn(folder).acquire(NEVER);
    const gaveUp = new AbortController();
    const waiting = lockIn(folder).acquire(gaveUp.signal);
    gaveUp.abort(new Error('not wanted any more'));
    await expect(waiting).rejects.toThrow();
    expect(readdirSync(folder)).toEqual(['lock.1']);
    await release();
  });

  const dead = { pid: 4711, startTime: 'then' };

  it('of a process that is dead is taken over at once', async () => {
    const folder = folderWith();
    leave(folder, { host: HOST, process: dead });
    expect(await isFree(folder, { isRunning: ({ startTime }) => startTime !== 'then' })).toBe(true);
    expect(readdirSync(folder)).toEqual(['lock.8']);
  });

  it('of a process that lives is not, however long it takes', async () => {
    const folder = folderWith();
    leave(folder, { host: HOST, process: dead }, 3_600_000);
    expect(await isFree(folder)).toBe(false);
  });

  it.each([
    ['of another machine', { host: 'another', process: dead }],
    ['of who cannot be told apart', { host: HOST, process: undefined }],
  ])('%s is taken over when nobody has shown a sign of life for a minute', async (_, owner) => {
    const folder = folderWith();
    leave(folder, owner, 30_000);
    expect(await isFree(folder)).toBe(false);
    leave(folder, owner, 61_000);
    expect(await isFree(folder)).toBe(true);
  });

  it.each([
    ['empty', ''],
    ['cut off', '{"host":"this mach'],
    ['zeros', '\0\0\0\0'],
    ['another value', '7'],
    ['without a host', '{"process":{"pid":1,"startTime":"1"}}'],
    ['with a broken owner', '{"host":"this machine","process":{"pid":"x"}}'],
  ])('that is torn (%s) is named and passed over', async (_, text) => {
    const folder = folderWith({ 'lock.7': text });
    const torn: string[][] = [];
    expect(await isFree(folder, { onTorn: (...fault) => torn.push(fault) })).toBe(true);
    expect(torn).toEqual([['lock.7', 'it names no owner']]);
    expect(readdirSync(folder)).toEqual(['lock.8']);
  });

  it('that is a folder is passed over, although it cannot be removed', async () => {
    const folder = folderWith();
    mkdirSync(join(folder, 'lock.7', 'in the way'), { recursive: true });
    expect([await isFree(folder), await isFree(folder)]).toEqual([true, true]);
    expect(readdirSync(folder).sort()).toEqual(['lock.7', 'lock.9']);
  });

  it('F380: is released although the disk is full, so that a process that goes on holds it no longer', async () => {
    const folder = folderWith();
    const release = await lockIn(folder).acquire(NEVER);
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      syscall: 'write',
    });
    vi.spyOn(promises, 'writeFile').mockRejectedValueOnce(full);
    await release();
    expect(await isFree(folder)).toBe(true);
  });

  it('has no number that is too large to count on', async () => {
    const folder = folderWith({ [`lock.${'9'.repeat(20)}`]: '' });
    expect(await isFree(folder)).toBe(true);
    expect(readdirSync(folder).sort()).toEqual(['lock.1', `lock.${'9'.repeat(20)}`]);
  });

  it('can be read by nobody else', async () => {
    const folder = folderWith();
    const release = await lockIn(folder).acquire(NEVER);
    expect(statSync(join(folder, 'lock.1')).mode & 0o777).toBe(shownMode(0o600));
    expect(JSON.parse(readFileSync(join(folder, 'lock.1'), 'utf8'))).toMatchObject({ host: HOST });
    await release();
  });
});
