import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  findDelegatedCgroup,
  foldersOf,
  mayDivide,
  parseCgroupMounts,
  parseCgroupPath,
} from '../../src/process/own-cgroup.js';

const UNIT = '/user.slice/user-1000.slice/user@1000.service/app.slice/app-a\\x2db.scope';
const MIXED = `9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n0::${UNIT}\n`;
const MOUNTS = [
  '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
  '39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids',
  '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:5 master:2 - cgroup2 cgroup2 rw,nsdelegate',
  '42 27 0:38 /user.slice /a\\040folder rw,relatime - cgroup2 none rw',
  '43 27 0:38 /.. /outside rw,relatime - cgroup2 none rw',
].join('\n');

describe('the path of the control group', () => {
  it.each([
    ['beside groups of version 1', MIXED, UNIT],
    ['alone', '0::/\n', '/'],
    ['without version 2', '2:cpu:/a\n', undefined],
    ['of a group that was removed', '0::/a (deleted)\n', undefined],
  ])('is read %s', (_which, text, path) => {
    expect(parseCgroupPath(text)).toBe(path);
  });

  it('leads to a folder on each mount that shows the group', () => {
    const mounts = parseCgroupMounts(MOUNTS);
    expect(mounts.map(({ mountPoint }) => mountPoint)).toEqual(['/sys/fs/cgroup/unified', '/a folder', '/outside']);
    expect(foldersOf('/user.slice/x', mounts)).toEqual(['/sys/fs/cgroup/unified/user.slice/x', '/a folder/x']);
    expect(foldersOf('/user.slice', mounts)).toEqual(['/sys/fs/cgroup/unified/user.slice', '/a folder']);
    expect(foldersOf('/user.slices', mounts)).toEqual(['/sys/fs/cgroup/unified/user.slices']);
  });
});

describe('a control group', () => {
  const nested = { isNamespaceRoot: false, isKernelRoot: false };
  const container = { isNamespaceRoot: true, isKernelRoot: false };
  it.each([
    ['belongs to the user whom it was given to', { ...nested, uid: 1000, ownerUid: 1000 }, true],
    ['of root does not belong to a user', { ...nested, uid: 1000, ownerUid: 0 }, false],
    ['of root does not belong to a user in a container', { ...container, uid: 1000, ownerUid: 0 }, false],
    ['belongs to root if it is that of the container', { ...container, uid: 0, ownerUid: 0 }, true],
    ['of a service or session is not divided by root', { ...nested, uid: 0, ownerUid: 0 }, false],
    ['of the whole machine is not divided', { isNamespaceRoot: true, isKernelRoot: true, uid: 0, ownerUid: 0 }, false],
  ])('%s', (_which, facts, may) => {
    expect(mayDivide(facts)).toBe(may);
  });
});

describe.runIf(process.platform === 'linux')('findDelegatedCgroup', () => {
  const uid = process.getuid?.() ?? 0;

  /** The files of a machine, with this process in a control group of its own. */
  function machine({ pids = [process.pid], isKernelRoot = false, path = '/' } = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline cgroup-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [proc, mount] = [join(folder, 'proc'), join(folder, 'cgroup')];
    const group = join(mount, path);
    mkdirSync(join(proc, 'self'), { recursive: true });
    mkdirSync(group, { recursive: true });
    writeFileSync(join(proc, 'self/cgroup'), `1:name=systemd:/\n0::${path}\n`);
    const shown = mount.replaceAll(' ', '\\040');
    writeFileSync(join(proc, 'self/mountinfo'), `1 2 0:3 / ${shown} rw,relatime - cgroup2 cgroup2 rw\n`);
    writeFileSync(join(group, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''));
    if (!isKernelRoot) writeFileSync(join(group, 'cgroup.events'), 'populated 1\nfrozen 0\n');
    return { proc, group };
  }

  it('finds the group that this process is in', () => {
    const { proc, group } = machine();
    expect(findDelegatedCgroup({ proc, pid: process.pid, uid })).toBe(group);
  });

  it.each([
    ['a group of that path on which this process is not, as on a mount of another namespace', { pids: [1] }],
    ['the group of the whole machine', { isKernelRoot: true }],
  ])('does not take %s', (_which, facts) => {
    const { proc } = machine(facts);
    expect(findDelegatedCgroup({ proc, pid: process.pid, uid })).toBeUndefined();
  });

  it('does not take a group of another user', () => {
    const { proc } = machine();
    expect(findDelegatedCgroup({ proc, pid: process.pid, uid: uid + 1 })).toBeUndefined();
  });

  it('finds nothing where there is no such file', () => {
    expect(findDelegatedCgroup({ proc: '/nowhere', pid: process.pid, uid })).toBeUndefined();
  });
});
