import { spawn } from 'node:child_process';
import { mkdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayCgroup } from '../../src/process/gateway-cgroup.js';
import { identify } from '../../src/process/process-identity.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';
import { CgroupTree } from './cgroup-tree.js';

const LIMITS = { memoryBytes: 1024 ** 2, processes: 8 };

async function open(tree: Pick<CgroupTree, 'folder' | 'write'>, clock = new FakeClock()) {
  const made: string[] = [];
  const logged: string[] = [];
  const log = (facts: object, message: string) => logged.push(`${message} ${JSON.stringify(facts)}`);
  const gateway = await GatewayCgroup.open({
    ...{ own: tree.folder, clock, write: tree.write },
    logger: { warn: log, debug: log },
    onMade: (folder) => made.push(folder),
  });
  if (gateway === undefined) throw new Error('This process has no identity');
  return { gateway, made, logged };
}

async function makeGroup(gateway: GatewayCgroup, key = 'server') {
  const group = await gateway.makeGroup(key, () => {});
  if (group === undefined) throw new Error('No group was made');
  return group;
}

function startChild(): number {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child.pid ?? 0;
}

const namespace = () => /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];

describe.runIf(process.platform === 'linux')('the control groups of a gateway', () => {
  it('are one for each launch, in one folder that names the gateway', async () => {
    const tree = new CgroupTree();
    const { gateway, made } = await open(tree);
    const groups = [await makeGroup(gateway), await makeGroup(gateway, 'a/../b'), await makeGroup(gateway)];
    const start = (await identify(process.pid))?.startTime;
    const folder = `trunkline-servers-${namespace()}-${process.pid}-${start}`;
    expect(groups.map((group) => relative(tree.folder, group.folder))).toEqual(
      ['1-server', '2-a_.._b', '3-server'].map((name) => join(folder, name)),
    );
    expect(made).toEqual([join(tree.folder, folder)]);
  });

  it('are not made if the system refuses', async () => {
    const { gateway, made } = await open({ folder: '/proc/nowhere', write: async () => false });
    expect(await gateway.makeGroup('server', () => {})).toBeUndefined();
    expect(made).toEqual([]);
  });

  it('are gone when the gateway ends', async () => {
    const tree = new CgroupTree();
    const { gateway } = await open(tree);
    await makeGroup(gateway);
    await gateway.close();
    expect(tree.groups).toEqual([]);
  });
});

describe.runIf(process.platform === 'linux')('limits', () => {
  it('are enforced after the gateway has moved to a group of its own with all that it has started', async () => {
    const helper = startChild();
    const tree = new CgroupTree({ pids: [process.pid, helper], controllers: 'cpu memory pids' });
    const { gateway } = await open(tree);
    const group = await makeGroup(gateway);
    await gateway.enforce(group, LIMITS);
    const [own = '', servers = ''] = tree.groups;
    expect(basename(own)).toMatch(/^trunkline-gateway-\d+-\d+-\d+$/);
    expect([tree.pids(tree.folder), tree.pids(own)]).toEqual([[], [process.pid, helper]]);
    const enabled = [tree.folder, servers].map((folder) => tree.read(folder, 'cgroup.subtree_control'));
    expect(enabled).toEqual(['+memory +pids', '+memory +pids']);
    expect(group.enforced).toEqual(LIMITS);
  });

  it('take no server out of its group again that gets there while the gateway moves', async () => {
    const server = startChild();
    const tree = new CgroupTree({ pids: [process.pid, server], controllers: 'memory pids' });
    let meanwhile = async () => {};
    const { gateway } = await open({
      folder: tree.folder,
      // The gateway moves itself first, and then what it has found beside it.
      write: async (file, text) => {
        if (text === String(process.pid)) await meanwhile();
        return await tree.write(file, text);
      },
    });
    const group = await makeGroup(gateway);
    let adopting: Promise<void> | undefined;
    meanwhile = async () => {
      adopting = group.adopt(server, () => false);
      // Time enough for a move in between, which must not happen.
      for (let turns = 0; turns < 500 && group.leader === undefined; turns += 1) await new Promise(setImmediate);
    };
    await gateway.enforce(group, LIMITS);
    await adopting;
    expect(tree.pids(group.folder)).toEqual([server]);
    expect(group.enforced).toEqual(LIMITS);
  });

  it('are only checked if other programs are in the control group', async () => {
    const tree = new CgroupTree({ pids: [process.pid, process.ppid], controllers: 'memory pids' });
    const { gateway, logged } = await open(tree);
    const group = await makeGroup(gateway);
    await gateway.enforce(group, LIMITS);
    expect(tree.pids(tree.folder)).toEqual([process.pid, process.ppid]);
    expect(group.enforced).toEqual({});
    expect(logged).toEqual([
      'limits are checked, but not enforced by the system {"reason":"other programs are in the control group of Trunkline"}',
    ]);
  });

  it('are only checked if there are no controllers for them', async () => {
    const tree = new CgroupTree({ pids: [process.pid], controllers: 'cpu' });
    const { gateway } = await open(tree);
    const group = await makeGroup(gateway);
    await gateway.enforce(group, LIMITS);
    expect([tree.pids(tree.folder), group.enforced]).toEqual([[process.pid], {}]);
  });

  it('that nobody has set move nothing', async () => {
    const tree = new CgroupTree({ pids: [process.pid], controllers: 'memory pids' });
    const { gateway } = await open(tree);
    const group = await makeGroup(gateway);
    await gateway.enforce(group, {});
    expect([tree.pids(tree.folder), tree.read(tree.folder, 'cgroup.subtree_control')]).toEqual([
      [process.pid],
      undefined,
    ]);
  });
});

describe.runIf(process.platform === 'linux')('what killed gateways have left', () => {
  it('is removed, and nothing of gateways that run, of other namespaces and of other programs', async () => {
    const tree = new CgroupTree();
    const { gateway } = await open(tree);
    const parent = (await identify(process.ppid))?.startTime;
    const own = namespace();
    const gone = [`trunkline-servers-${own}-${process.ppid}-1/1-server`, `trunkline-gateway-${own}-999999999-5`];
    const others = [
      `trunkline-servers-${own}-${process.ppid}-${parent}/1-server`,
      'trunkline-servers-12345-999999999-5/1-server',
      'trunkline-servers-other',
      'app.scope',
    ];
    for (const name of [...gone, ...others]) mkdirSync(join(tree.folder, name), { recursive: true });
    await gateway.sweep();
    const left = tree.groups.map((group) => relative(tree.folder, group));
    expect(left.filter((name) => others.includes(name))).toEqual([...others].sort());
    expect(left.filter((name) => gone.some((each) => each.startsWith(name)))).toEqual([]);
  });

  it('F91: gets SIGTERM and then, two seconds later, the end by the kernel', async () => {
    const child = spawn(process.execPath, [
      '-e',
      "process.on('SIGTERM', () => console.log('SIGTERM')); setInterval(() => {}, 1000); console.log('up')",
    ]);
    onTestFinished(() => void child.kill('SIGKILL'));
    let said = '';
    child.stdout.on('data', (text) => {
      said += text;
    });
    await until('it is up', () => said !== '');
    const tree = new CgroupTree();
    const clock = new FakeClock();
    const { gateway, logged } = await open(tree, clock);
    const folder = join(tree.folder, `trunkline-servers-${namespace()}-999999999-5`);
    tree.put(join(folder, '1-server'), [child.pid ?? 0]);
    writeFileSync(join(folder, 'cgroup.events'), 'populated 1\n');
    writeFileSync(join(folder, 'cgroup.kill'), '');
    const sweeping = gateway.sweep();
    await until('it has got SIGTERM and is waited for', () => said.includes('SIGTERM') && clock.pending === 1);
    expect(tree.read(folder, 'cgroup.kill')).toBe('');
    clock.advance(2_000);
    await until('the kernel is told', () => tree.read(folder, 'cgroup.kill') === '1');
    expect(said).toBe('up\nSIGTERM\n');
    expect(logged[0]).toBe(`ending what a killed Trunkline left behind {"pids":[${child.pid}],"gateway":999999999}`);
    // The files of this folder are real, so it cannot be removed as the kernel would remove it.
    rmSync(folder, { recursive: true });
    let isOver = false;
    void sweeping.then(() => {
      isOver = true;
    });
    // It reads files between its pauses.
    await until('the sweep is over', () => {
      clock.advance(1_000);
      return isOver;
    });
  });
});
