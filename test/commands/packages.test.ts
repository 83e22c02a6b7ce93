import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lockOf, OFFLINE, PackagePlace } from '../support/package-place.js';
import { processesOf, until } from '../support/processes.js';

let place: PackagePlace;
afterEach(() => place.dispose());
const openPlace = async () => {
  place = await PackagePlace.open();
};

/** `tool` 1.0.0, which needs `dep` ^3.0.0, is installed once. Every test gets a copy of the store and the lock file. */
let installed: PackagePlace;
let lock: string;
beforeAll(async () => {
  installed = await PackagePlace.open();
  installed.registry.publish('dep', { version: '3.0.0' });
  installed.registry.publish('tool', { version: '1.0.0', dependencies: { dep: '^3.0.0' } });
  const gateway = await installed.start({ a: { package: 'tool' }, b: { package: 'tool@1.0.0' } });
  for (const server of ['a', 'b']) await gateway.untilState(server, 'ready');
  lock = readFileSync(join(gateway.folder, 'trunkline.lock'), 'utf8');
  await gateway.end();
});
afterAll(() => installed.dispose());
const copyPlace = async () => {
  place = await installed.copy();
};

describe('a package that is not installed', () => {
  beforeEach(openPlace);

  it('is installed, locked with its dependencies and without the address of a registry, and run', async () => {
    place.registry.publish('dep', { version: '3.0.0' });
    place.registry.publish('@acme/tool', { version: '1.0.0', dependencies: { dep: '^3.0.0' } });
    const gateway = await place.start({ a: { package: '@acme/tool' } });
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('a__greet');
    expect(await gateway.status('a')).toMatchObject({ state: 'ready', generation: 1, restarts: 0, installing: null });
    expect(lockOf(gateway)['@acme/tool']).toMatchObject({
      version: '1.0.0',
      integrity: expect.stringMatching(/^sha512-/),
      tree: { 'node_modules/dep': { version: '3.0.0', integrity: expect.stringMatching(/^sha512-/) } },
    });
    expect(readFileSync(join(gateway.folder, 'trunkline.lock'), 'utf8')).not.toContain('127.0.0.1');
    expect(place.stored()).toEqual([expect.stringMatching(/^@acme\+tool@1\.0\.0-[0-9a-f]{16}$/)]);
    expect(place.staged()).toEqual([]);
  });

  it('is reported as being installed by the status and to callers of its tools', async () => {
    place.registry.publish('tool', { version: '1.0.0' });
    place.registry.hold();
    const gateway = await place.start({ a: { package: 'tool' }, lab: {} }, { gateway: { startupWait: '200ms' } });
    await gateway.untilState('lab', 'ready');
    expect((await gateway.listTools()).filter(({ name }) => name.startsWith('a__'))).toEqual([]);
    const { message } = await gateway.call('a__greet');
    expect(message.result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('Server "a" is being installed. The call was not sent') }],
      _meta: { 'trunkline/failure': { reason: 'installing', sent: false, outcome: 'not_sent' } },
    });
    expect(await gateway.status('a')).toMatchObject({
      state: 'installing',
      pid: null,
      generation: 0,
      installing: { package: 'tool', forSeconds: expect.any(Number) },
      advice: expect.stringContaining('Its package is being installed'),
    });
    place.registry.release();
    await gateway.untilState('a', 'ready');
    expect((await gateway.call('a__greet')).message.result.content[0].text).toBe('1.0.0');
    await until('the client is told', () => gateway.notifications('notifications/tools/list_changed').length > 0);
  });

  it('is installed once by two gateways that need it at the same time', async () => {
    place.registry.publish('tool', { version: '1.0.0' });
    const servers = { a: { package: 'tool' }, b: { package: 'tool@1.0.0' } };
    const both = await Promise.all([place.start(servers), place.start(servers)]);
    for (const gateway of both) {
      for (const server of ['a', 'b']) expect(await gateway.untilState(server, 'ready')).toMatchObject({ restarts: 0 });
      expect(Object.keys(lockOf(gateway))).toEqual(['tool', 'tool@1.0.0']);
    }
    expect(place.registry.downloads).toEqual(['tool@1.0.0']);
    expect(place.stored()).toHaveLength(1);
  });

  it('is installed by the next start after an installation was killed', async () => {
    place.registry.publish('tool', { version: '1.0.0' });
    place.registry.hold();
    const killed = await place.start({ a: { package: 'tool' } });
    await until('npm downloads', () => place.registry.waiting > 0);
    killed.kill('SIGKILL');
    await killed.exited;
    expect(place.stored()).toEqual([]);
    expect(existsSync(join(killed.folder, 'trunkline.lock'))).toBe(false);
    await until('npm is gone too', () => processesOf(place.folder).length === 0);
    expect(place.staged()).toHaveLength(1);

    place.registry.release();
    const next = await place.start({ a: { package: 'tool' } });
    await next.untilState('a', 'ready');
    expect(place.staged()).toEqual([]);
  });

  it('is given up when it takes longer than `installTimeout`', async () => {
    place.registry.publish('tool', { version: '1.0.0' });
    place.registry.hold();
    const gateway = await place.start({ a: { package: 'tool', installTimeout: '1s' } });
    expect(await gateway.untilState('a', 'parked')).toMatchObject({
      lastFailure: 'tool could not be installed: it took longer than `installTimeout`, 1 s',
      generation: 0,
      restarts: 0,
    });
    expect(place.staged()).toEqual([]);
  });

  it('that cannot be downloaded affects no other server, says why, and is tried again with trunkline__restart', async () => {
    const gateway = await place.start({ a: { package: '@acme/tool' }, lab: {} }, { gateway: { restartTool: true } });
    const status = await gateway.untilState('a', 'parked');
    expect(status.lastFailure).toMatch(
      /^@acme\/tool could not be installed: E404: the registry has no package `@acme\/tool`, .*; correct the name/,
    );
    expect(status.problem).toContain('Its package could not be installed,');
    expect(status.retryInSeconds).toBeGreaterThan(0);
    expect(status.log.join('\n')).toContain('npm error code E404');
    const { message } = await gateway.call('a__greet');
    expect(message.result._meta['trunkline/failure']).toMatchObject({ reason: 'not_installed', sent: false });
    expect(await gateway.status('lab')).toMatchObject({ state: 'ready' });

    place.registry.publish('@acme/tool', { version: '1.0.0' });
    await gateway.call('trunkline__restart', { server: 'a' });
    expect(await gateway.untilState('a', 'ready')).toMatchObject({ generation: 1, restarts: 0 });
  });
});

describe('a package that is installed', () => {
  beforeEach(copyPlace);

  it('needs no registry, and its server never installs', async () => {
    const servers = { a: { package: 'tool' }, b: { package: 'tool@1.0.0' } };
    place.registry.publish('tool', { version: '2.0.0' });
    const gateway = await place.start(servers, { folder: place.folderWith(lock), env: OFFLINE });
    for (const server of ['a', 'b']) await gateway.untilState(server, 'ready');
    expect((await gateway.call('a__greet')).message.result.content[0].text).toBe('1.0.0');
    expect(gateway.stderr).not.toContain('installing');
    expect(place.registry.downloads).toEqual([]);
  });
});

describe('a locked version', () => {
  beforeEach(copyPlace);

  const A = { a: { package: 'tool' } };

  it('is installed, dependencies included, although newer versions exist', async () => {
    place.registry.publish('dep', { version: '3.1.0' });
    place.registry.publish('tool', { version: '1.1.0', dependencies: { dep: '^3.0.0' } });
    rmSync(place.store, { recursive: true });

    const gateway = await place.start(A, { folder: place.folderWith(lock) });
    await gateway.untilState('a', 'ready');
    expect((await gateway.call('a__greet')).message.result.content[0].text).toBe('1.0.0');
    const [folder = ''] = place.stored();
    const dep = join(place.store, folder, 'node_modules', 'dep', 'package.json');
    expect(JSON.parse(readFileSync(dep, 'utf8')).version).toBe('3.0.0');
    expect(lockOf(gateway)).toEqual(JSON.parse(lock).packages);
  });

  it('is not replaced by something else under the same name and version', async () => {
    place.registry.publish('tool', { version: '1.0.0', tools: ['greet', 'exfiltrate'] });
    for (const name of ['trunkline/store', 'npm-cache']) rmSync(join(place.folder, name), { recursive: true });

    const gateway = await place.start(A, { folder: place.folderWith(lock) });
    const { lastFailure } = await gateway.untilState('a', 'parked');
    expect(lastFailure).toMatch(/^tool could not be installed: EINTEGRITY: /);
    expect(place.stored()).toEqual([]);
  });

  it('is refused when its integrity is not the one of the packages that it lists', async () => {
    const changed = JSON.parse(lock);
    changed.packages.tool.integrity = 'sha512-AAAA';
    rmSync(place.store, { recursive: true });

    const gateway = await place.start(A, { folder: place.folderWith(JSON.stringify(changed)) });
    const { lastFailure } = await gateway.untilState('a', 'parked');
    expect(lastFailure).toMatch(/^tool could not be installed: EINTEGRITY: sha512-AAAA is locked/);
    expect(place.stored()).toEqual([]);
  });

  it('is never ignored: a lock file that cannot be read stops the servers it is for, and no others', async () => {
    const gateway = await place.start({ ...A, lab: {} }, { folder: place.folderWith('<<<<<<< HEAD') });
    await gateway.untilState('lab', 'ready');
    expect(await gateway.status('a')).toMatchObject({
      state: 'misconfigured',
      problem: expect.stringMatching(/trunkline\.lock is not a valid lock file/),
    });
  });
});

describe('after a power failure', () => {
  beforeEach(copyPlace);

  it('F79: an empty store lock and an empty lock file are named and hold no installation', async () => {
    place.registry.publish('other', { version: '2.0.0' });
    writeFileSync(join(place.store, 'lock.99'), '');
    const gateway = await place.start({ b: { package: 'other' } }, { folder: place.folderWith('') });
    await gateway.untilState('b', 'ready');
    expect(gateway.stderr).toContain(join(place.store, 'lock.99'));
    expect(gateway.stderr).toContain('a lock of the package store is torn');
    expect(gateway.stderr).toContain('the lock file is empty, as after a power failure');
    expect(Object.keys(lockOf(gateway))).toEqual(['other']);
  });

  it('F79: an installed package without content is installed again, as it is locked', async () => {
    place.registry.publish('tool', { version: '1.0.1' });
    const [name = ''] = place.stored();
    for (const file of ['tool/package.json', 'dep/package.json']) {
      writeFileSync(join(place.store, name, 'node_modules', file), '');
    }
    const gateway = await place.start({ a: { package: 'tool' } }, { folder: place.folderWith(lock) });
    await gateway.untilState('a', 'ready');
    expect(gateway.stderr).toContain('an installed package is damaged');
    expect(place.stored()).toEqual([name]);
    const dep = join(place.store, name, 'node_modules/dep/package.json');
    expect(JSON.parse(readFileSync(dep, 'utf8')).version).toBe('3.0.0');
    expect(place.staged()).toEqual([]);
  });
});

describe('install scripts', () => {
  beforeEach(openPlace);

  it('run only for servers that allow them', async () => {
    place.registry.publish('tool', { version: '1.0.0', hasInstallScript: true });
    const gateway = await place.start({
      wary: { package: 'tool' },
      trusting: { package: 'tool@1.0.0', installScripts: true },
    });
    for (const server of ['wary', 'trusting']) await gateway.untilState(server, 'ready');
    const built = place.stored().map((name) => existsSync(join(place.store, name, 'node_modules/tool/built')));
    expect(built.sort()).toEqual([false, true]);
  });
});
