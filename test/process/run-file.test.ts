import { watch } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FoundRun, findRuns, RunFile } from '../../src/host/process/run-file.js';

const isPosix = process.platform !== 'win32';
const HOST = 'this host';
const OWNER = { host: HOST, gateway: { pid: 4711, startTime: '100' } };
const group = (pid: number) => ({ pid, startTime: `${pid}00` });

let root: string;
let folder: string;
let internalErrors: unknown[];
let ignored: [name: string, reason: string][];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'trunkline-run-'));
  folder = join(root, 'data', 'run');
  internalErrors = [];
  ignored = [];
});

afterEach(() => rm(root, { recursive: true, force: true }));

function open(owner: typeof OWNER | null = OWNER): RunFile {
  return new RunFile({ folder, owner: async () => owner ?? undefined, onFault: (fault) => internalErrors.push(fault) });
}

async function put(name: string, content: unknown, { mode = 0o600, ageMs = 0 } = {}): Promise<void> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, name);
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content), { mode });
  const at = new Date(Date.now() - ageMs);
  await utimes(file, at, at);
}

async function runsIn(): Promise<readonly FoundRun[]> {
  return await findRuns({ folder, host: HOST, onIgnored: (file, reason) => ignored.push([basename(file), reason]) });
}

async function names(): Promise<string[]> {
  return (await readdir(folder)).toSorted();
}

describe('the run file', () => {
  it('lists the groups that run, while there are any', async () => {
    const file = open();
    file.add(group(10));
    file.add(group(11));
    file.remove(10);
    file.add(group(12));
    await file.settled();
    const [found, ...others] = await runsIn();
    expect(found?.run).toEqual({ ...OWNER, groups: [group(11), group(12)] });
    expect(others).toEqual([]);
    expect(await names()).toHaveLength(1);
    file.remove(11);
    file.remove(12);
    await file.settled();
    expect(await names()).toEqual([]);
    file.add(group(13));
    await file.settled();
    expect((await runsIn())[0]?.run.groups).toEqual([group(13)]);
  });

  it.runIf(process.platform === 'linux')(
    'F184: is written once for groups that come before it is known who it belongs to',
    async () => {
      await mkdir(folder, { recursive: true });
      const changed: string[] = [];
      let onMarker = () => {};
      const marked = new Promise<void>((resolve) => {
        onMarker = resolve;
      });
      const watcher = watch(folder, (_, name) => {
        changed.push(name ?? '');
        if (name === 'marker') onMarker();
      });
      const file = open();
      file.add(group(10));
      file.add(group(11));
      await file.settled();
      const [name] = await names();
      // Linux reports what happens in a folder in order.
      await writeFile(join(folder, 'marker'), '');
      await marked;
      watcher.close();
      expect(changed.filter((each) => each === name)).toHaveLength(1);
      expect((await runsIn())[0]?.run.groups).toEqual([group(10), group(11)]);
    },
  );

  it.runIf(isPosix)('is for its owner alone, and so is its folder', async () => {
    const umask = process.umask(0);
    try {
      const file = open();
      file.add(group(10));
      await file.settled();
    } finally {
      process.umask(umask);
    }
    const [name = ''] = await names();
    expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  it('is another one for each gateway, even of the same pid', async () => {
    const files = Array.from({ length: 5 }, () => open());
    for (const [index, file] of files.entries()) file.add(group(10 + index));
    await Promise.all(files.map((file) => file.settled()));
    const pids = (await runsIn()).flatMap(({ run }) => run.groups.map(({ pid }) => pid));
    expect(pids.toSorted()).toEqual([10, 11, 12, 13, 14]);
  });

  it('is not written when the identity of this process is unknown', async () => {
    const file = open(null);
    file.add(group(10));
    await file.settled();
    expect(await runsIn()).toEqual([]);
    expect(internalErrors).toEqual([]);
  });

  it('that cannot be written is reported once, and written when that is possible again', async () => {
    await writeFile(join(root, 'data'), 'no folder');
    const file = open();
    for (const pid of [10, 11, 12]) {
      file.add(group(pid));
      await file.settled();
    }
    expect(internalErrors).toHaveLength(1);
    await rm(join(root, 'data'));
    file.remove(10);
    await file.settled();
    expect((await runsIn())[0]?.run.groups).toEqual([group(11), group(12)]);
  });
});

describe('the list of other runs', () => {
  const run = { ...OWNER, groups: [group(10)] };

  it('is nothing without the folder', async () => {
    expect(await runsIn()).toEqual([]);
  });

  it('leaves out incomplete files, and removes them when they are too old to be written still', async () => {
    const torn = JSON.stringify(run).slice(0, -5);
    await put('1-young.json', torn);
    await put('1-old.json', torn, { ageMs: 120_000 });
    await put('2-young.json.tmp', run);
    await put('2-old.json.tmp', run, { ageMs: 120_000 });
    await put('3-good.json', run);
    await put('somebody-elses', torn, { ageMs: 120_000 });
    expect(await runsIn()).toEqual([{ file: join(folder, '3-good.json'), run }]);
    expect(await names()).toEqual(['1-young.json', '2-young.json.tmp', '3-good.json', 'somebody-elses']);
    const reason = 'it is damaged or has another format';
    expect(ignored.toSorted()).toEqual([
      ['1-old.json', reason],
      ['1-young.json', reason],
    ]);
  });

  it.each([
    [null],
    [[]],
    [{ ...run, host: 1 }],
    [{ ...run, gateway: { pid: '4711', startTime: '100' } }],
    [{ ...run, groups: {} }],
  ])('leaves out what is no run: %j', async (content) => {
    await put('1-odd.json', content);
    expect(await runsIn()).toEqual([]);
  });

  it('ignores group ids that would signal other processes', async () => {
    const groups = [-5, 0, 1, 1.5, '7', null].map((pid) => ({ pid, startTime: '1' }));
    await put('1-odd.json', { ...run, groups: [...groups, { pid: 9 }, group(10)] });
    expect((await runsIn())[0]?.run.groups).toEqual([group(10)]);
  });

  it('has the marks of families, and none for groups of earlier versions', async () => {
    const groups = [group(10), { ...group(11), mark: 'a1'.repeat(16) }];
    await put('1-mixed.json', {
      ...run,
      groups: [...groups, ...[7, '', 'x'.repeat(32)].map((mark) => ({ ...group(12), mark }))],
    });
    expect((await runsIn())[0]?.run.groups).toEqual(groups);
  });

  it('leaves out what other hosts wrote that share the folder, and removes it after a month', async () => {
    await put('1-new.json', { ...run, host: 'other' });
    await put('1-old.json', { ...run, host: 'other' }, { ageMs: 31 * 24 * 3_600_000 });
    expect(await runsIn()).toEqual([]);
    expect(await names()).toEqual(['1-new.json']);
  });

  it.runIf(isPosix)('leaves out what others can write', async () => {
    const umask = process.umask(0);
    try {
      await put('1-group.json', run, { mode: 0o660 });
      await put('1-all.json', run, { mode: 0o606 });
    } finally {
      process.umask(umask);
    }
    expect(await runsIn()).toEqual([]);
    expect(ignored.map(([, reason]) => reason)).toEqual(Array(2).fill('other users can read or change it'));
  });
});
