import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { hostIdentity, identify } from '../../src/host/process/processes.js';
import { spawnFixture } from '../process/spawned.js';
import { GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { dataFolderIn, dataIn, exitBy, IS_WINDOWS } from '../support/platform.js';
import { fixture, guardiansOf, until } from '../support/processes.js';
import { repetitions } from '../support/repetitions.js';

const gateways: GatewayProcess[] = [];
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.dispose();
});

async function start(options: StartOptions, how?: { handshake: boolean }): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start(options, how);
  gateways.push(gateway);
  return gateway;
}

/** Servers that only SIGKILL ends. */
const STUBBORN = {
  leader: { args: ['stubborn'] },
  // With a helper of the same kind, which holds its stdout.
  family: { args: ['stubborn', 'grandchild'] },
};
const STUBBORN_PROCESSES = 3;

function runFolder({ folder }: GatewayProcess): string {
  return join(dataFolderIn(join(folder, 'data')), 'run');
}

/** Resolves when the gateway has written down that many groups. */
async function untilWritten(gateway: GatewayProcess, groups: number): Promise<void> {
  await until(`${groups} groups in the run file`, () => groupsIn(runFolder(gateway)) === groups);
}

function groupsIn(folder: string): number {
  return files(folder)
    .filter((name) => name.endsWith('.json'))
    .reduce((sum, name) => sum + JSON.parse(readFileSync(join(folder, name), 'utf8')).groups.length, 0);
}

function files(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Not there before the first group.
    return [];
  }
}

function guardianOf({ pid }: GatewayProcess): number {
  return guardiansOf(pid)[0]?.pid ?? 0;
}

/** Checks that the guardian holds neither stdin nor stdout nor stderr of the gateway. */
function expectOwnFiles(gateway: GatewayProcess): void {
  const folder = `/proc/${guardianOf(gateway)}/fd`;
  const held = [0, 1, 2].map((fd) => readlinkSync(join(folder, `${fd}`)));
  expect(held).toEqual([expect.stringMatching(/^(?:socket|pipe):/), '/dev/null', '/dev/null']);
  const all = readdirSync(folder).map((fd) => readlinkSync(join(folder, fd)));
  const ours = [0, 1, 2].map((fd) => readlinkSync(`/proc/${gateway.pid}/fd/${fd}`));
  expect(all.filter((file) => ours.includes(file))).toEqual([]);
}

describe('a gateway killed with SIGKILL', () => {
  it('F13: leaves no process behind, whatever its servers ignore, and no guardian, which holds no stdin and output of it', async () => {
    // The third one ends with its stdin, but its helper does not.
    const servers = { ...STUBBORN, helper: { args: ['grandchild'] } };
    for (let run = 0; run < repetitions({ full: 3, short: 1 }); run += 1) {
      const gateway = await start({ servers });
      await gateway.listTools();
      // The gateway itself is one, by the name of its configuration.
      await until('all servers run', () => gateway.leftovers().length === STUBBORN_PROCESSES + 2 + 1);
      for (const server of Object.keys(servers)) void gateway.call(`${server}__wait`, { delayMs: 60_000 });
      expect(guardiansOf(gateway.pid)).toHaveLength(1);
      if (process.platform === 'linux') expectOwnFiles(gateway);
      gateway.kill('SIGKILL');
      await until('everything is gone', () => gateway.leftovers().length + guardiansOf(gateway.pid).length === 0);
    }
  });

  it('F14: together with its guardian leaves its groups to the next start, which ends them', async () => {
    const killed = await start({ servers: STUBBORN });
    await killed.listTools();
    await untilWritten(killed, 2);
    process.kill(guardianOf(killed), 'SIGKILL');
    killed.kill('SIGKILL');
    await killed.exited;
    // A killed process may still be there for a moment. Another guardian would have ended the groups before it went.
    await until('the guardian is gone', () => guardiansOf(killed.pid).length === 0);
    // Windows has ended them with the gateway.
    expect(killed.leftovers()).toHaveLength(IS_WINDOWS ? 0 : STUBBORN_PROCESSES);

    const next = await start({ servers: {}, env: dataIn(join(killed.folder, 'data')), args: ['-v'] });
    await until('the groups are gone', () => killed.leftovers().length === 0);
    await until('the run file is gone', () => files(runFolder(killed)).length === 0);
    if (!IS_WINDOWS) expect(next.stderr).toContain('ending what a killed Trunkline left behind');
  });
});

describe('the next start', () => {
  it('F14: does not touch the groups of a running gateway, and pids that were reused', async () => {
    const living = await start({ servers: { lab: {} } });
    await living.listTools();
    await untilWritten(living, 1);
    const [orphan, stranger] = [spawnFixture('ignore-eof.mjs'), spawnFixture('ignore-eof.mjs')];
    await Promise.all([orphan.says('up'), stranger.says('up')]);
    const startTime = async (pid = 0) => (await identify(pid))?.startTime;
    const run = {
      host: hostIdentity(),
      // Its pid is somebody else's now, too.
      gateway: { pid: process.pid, startTime: 'long ago' },
      groups: [
        { pid: orphan.child.pid, startTime: await startTime(orphan.child.pid) },
        { pid: stranger.child.pid, startTime: 'long ago' },
      ],
    };
    writeFileSync(join(runFolder(living), 'left.json'), JSON.stringify(run), { mode: 0o600 });

    await start({ servers: {}, env: dataIn(join(living.folder, 'data')) });
    await until('the file of the dead one is gone', () => !files(runFolder(living)).includes('left.json'));
    expect(await orphan.child.exit).toEqual(exitBy('SIGTERM'));
    expect(stranger.live()).toHaveLength(1);
    expect(files(runFolder(living))).toHaveLength(1);
    expect(await living.status('lab')).toMatchObject({ state: 'ready', generation: 1 });
  });
});

describe('a gateway that ends in the orderly way', () => {
  it.each([50, 300])(
    'F16: leaves neither guardian nor run file, and no server, when it is told to end %i ms after its spawn',
    async (delayMs) => {
      const gateway = await start({ servers: { lab: {}, mute: { args: ['mute'] } } }, { handshake: false });
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      gateway.kill('SIGTERM');
      await gateway.exited;
      expect(gateway.leftovers()).toEqual([]);
      expect(guardiansOf(gateway.pid)).toEqual([]);
      expect(files(runFolder(gateway))).toEqual([]);
    },
  );

  // A console of Windows is no terminal that a test can play.
  it.skipIf(IS_WINDOWS)(
    'F17: lets servers see the end of their stdin, and no SIGINT, when a terminal sends Ctrl-C to all',
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'trunkline-witness-'));
      try {
        const file = join(folder, 'seen');
        writeFileSync(file, '');
        const servers = { witness: { command: 'node', args: [fixture('witness.mjs'), file] } };
        const gateway = await start({ servers, detached: true });
        await until('the server runs', () => readFileSync(file, 'utf8') === 'up\n');
        process.kill(-gateway.pid, 'SIGINT');
        expect(await gateway.exited).toBe(0);
        expect(readFileSync(file, 'utf8')).toBe('up\nend of stdin\n');
        expect(guardiansOf(gateway.pid)).toEqual([]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
