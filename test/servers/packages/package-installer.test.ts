import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ProcessLock } from '../../../src/host/process/process-lock.js';
import { type LockedPackage, LockFile } from '../../../src/servers/packages/lock-file.js';
import { type Obtained, PackageInstaller } from '../../../src/servers/packages/package-installer.js';
import { PackageStore } from '../../../src/servers/packages/package-store.js';
import type { PackageRequest } from '../../../src/spec/server-spec.js';
import { folderWith } from '../../config/files.js';
import { FakeClock } from '../../support/fake-clock.js';
import { until } from '../../support/processes.js';

/** An npm whose installations end when the test says so. */
class HeldNpm {
  /** Names of the packages whose installations have begun. */
  readonly begun: string[] = [];
  readonly #ends = new Map<string, (error?: Error) => void>();

  async install(folder: string, { name }: PackageRequest): Promise<LockedPackage> {
    this.begun.push(name);
    const tree = { [`node_modules/${name}`]: { version: '1.0.0', integrity: `sha512-${name}` } };
    const home = join(folder, 'node_modules', name);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, 'package.json'), JSON.stringify({ name, bin: 'run.js' }));
    writeFileSync(join(home, 'run.js'), '');
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: tree }));
    const error = await new Promise<Error | undefined>((resolve) => this.#ends.set(name, resolve));
    if (error !== undefined) throw error;
    return { version: '1.0.0', integrity: `sha512-${name}`, tree };
  }

  resolve(): Promise<LockedPackage> {
    throw new Error('Nothing is looked up');
  }

  end(name: string, error?: Error): void {
    this.#ends.get(name)?.(error);
  }
}

const NEVER = new AbortController().signal;

function place({ limit = 3 } = {}) {
  const folder = folderWith();
  const npm = new HeldNpm();
  const lockFile = new LockFile({ configFile: join(folder, 'trunkline.yaml'), locksFolder: folder });
  const storeFolder = join(folder, 'store');
  const configured: Pick<PackageRequest, 'name' | 'version'>[] = [];
  const carried: string[] = [];
  const open = () =>
    new PackageInstaller({
      ...{ npm, lockFile, limit, clock: new FakeClock(), onFallbackPath: () => {}, onDamaged: () => {} },
      requests: () => configured,
      onCarried: (files) => void carried.push(...files),
      store: new PackageStore(storeFolder, { platform: 'linux', arch: 'x64', abi: '115' }),
      storeLock: new ProcessLock({
        folder: storeFolder,
        self: async () => ({ host: 'this machine', process: { pid: 1, startTime: '1' } }),
        isRunning: async () => true,
        onTorn: () => {},
      }),
    });
  const installer = open();
  const obtain = (name: string, signal = NEVER, by = installer, version?: string): Promise<Obtained> => {
    const request = {
      name,
      version,
      shown: name,
      bin: undefined,
      installScripts: false,
      foreignDependencies: false,
      isConfined: false,
      env: {},
    };
    return by.obtain({ ...request, budgetMs: 60_000 }, signal);
  };
  // Those that begin together may do so in any order.
  const begun = (...names: string[]) =>
    until(`${names} begin`, () => npm.begun.toSorted().join() === names.toSorted().join());
  return { folder, storeFolder, npm, lockFile, open, obtain, begun, configured, carried, installer };
}

describe('the package installer', () => {
  it('F177: installs several packages side by side: the slow first one holds up none of the others', async () => {
    const { npm, lockFile, obtain, begun } = place();
    const slow = obtain('slow');
    const others = [obtain('b'), obtain('c')];
    await begun('slow', 'b', 'c');
    npm.end('b');
    npm.end('c');
    const [b] = await Promise.all(others);
    expect(b).toMatchObject({ isNew: true, locked: { version: '1.0.0' } });
    npm.end('slow');
    expect((await slow).isNew).toBe(true);
    expect([...lockFile.read().keys()].sort()).toEqual(['b', 'c', 'slow']);
  });

  it('F178: installs no more at once than its limit, and begins the next when one has ended or failed', async () => {
    const { npm, obtain, begun } = place({ limit: 2 });
    const failing = obtain('a').catch((error: Error) => error.message);
    const rest = [obtain('b'), obtain('c'), obtain('d')];
    await begun('a', 'b');
    npm.end('a', new Error('no such package'));
    expect(await failing).toBe('a could not be installed: no such package');
    await begun('a', 'b', 'c');
    npm.end('b');
    await begun('a', 'b', 'c', 'd');
    npm.end('c');
    npm.end('d');
    expect((await Promise.all(rest)).map(({ isNew }) => isNew)).toEqual([true, true, true]);
  });

  it('F10: installs a package once that two servers want at the same time', async () => {
    const { npm, obtain, begun } = place();
    const both = [obtain('a'), obtain('a')];
    await begun('a');
    npm.end('a');
    expect((await Promise.all(both)).map(({ isNew }) => isNew)).toEqual([true, false]);
    expect(npm.begun).toEqual(['a']);
  });

  it.each([
    {
      title: 'copies what a server has written in the version that the configuration had before',
      configured: ['2.0.0'],
    },
    { title: 'copies nothing from a version that another server still has', configured: ['1.0.0', '2.0.0'] },
  ])('$title', async (row) => {
    const { npm, lockFile, storeFolder, obtain, begun, configured, carried, installer } = place();
    configured.push(...row.configured.map((version) => ({ name: 'a', version })));
    const before = { version: '1.0.0', integrity: 'sha512-before', tree: { 'node_modules/a': { version: '1.0.0' } } };
    lockFile.lock('a@1.0.0', before);
    const store = new PackageStore(storeFolder, { platform: 'linux', arch: 'x64', abi: '115' });
    const old = join(store.folderOf({ name: 'a', locked: before, installScripts: false }), 'node_modules');
    mkdirSync(join(old, 'a'), { recursive: true });
    writeFileSync(join(old, '.package-lock.json'), '{}');
    utimesSync(join(old, '.package-lock.json'), 1, 1);
    writeFileSync(join(old, 'a', 'memory.json'), 'remembered');
    const obtaining = obtain('a', NEVER, installer, '2.0.0');
    await begun('a');
    npm.end('a');
    const file = join(dirname((await obtaining).program), 'memory.json');
    const isCopied = row.configured.length === 1;
    expect([existsSync(file), carried]).toEqual([isCopied, isCopied ? [join('node_modules', 'a', 'memory.json')] : []]);
  });

  it('leaves the store to another gateway when the last of its installations has ended', async () => {
    const { npm, obtain, open, begun } = place();
    const ours = [obtain('a'), obtain('b')];
    await begun('a', 'b');
    const theirs = obtain('c', NEVER, open());
    npm.end('a');
    await ours[0];
    expect(npm.begun).toHaveLength(2);
    npm.end('b');
    await begun('a', 'b', 'c');
    npm.end('c');
    expect((await theirs).isNew).toBe(true);
  });

  it('starts nothing for those that give up while they wait, and keeps neither slot nor lock for them', async () => {
    const { storeFolder, npm, obtain, open, begun } = place({ limit: 1 });
    const other = obtain('other', NEVER, open());
    await begun('other');
    const gaveUp = new AbortController();
    // The first waits for the lock, the second for a slot.
    const waiting = [obtain('a', gaveUp.signal), obtain('b', gaveUp.signal)];
    const ends = Promise.allSettled(waiting);
    gaveUp.abort(new Error('not wanted any more'));
    expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    npm.end('other');
    await other;
    const next = obtain('next');
    await begun('other', 'next');
    npm.end('next');
    expect((await next).isNew).toBe(true);
    expect(readdirSync(join(storeFolder, '.staging'))).toEqual([]);
  });
});
