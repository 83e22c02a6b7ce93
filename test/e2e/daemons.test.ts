import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { dataFolderIn, dataIn, IS_MAC, SHOWS_VARIABLES } from '../support/platform.js';
import { guardiansOf, killAll, processesOf, processesWith, until } from '../support/processes.js';

/** Two processes in sessions of their own, which only SIGKILL ends. */
const DAEMONS = 2;
const LAB = { args: ['daemons'], stopGrace: '50ms', restart: { firstDelay: '1ms' } };

const gateways: GatewayProcess[] = [];
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.dispose();
});

async function start(options: StartOptions): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start(options);
  gateways.push(gateway);
  return gateway;
}

/** A gateway whose server has started its daemons. */
async function startWithDaemons(options: Partial<StartOptions> = {}): Promise<GatewayProcess> {
  const gateway = await start({ servers: { lab: LAB }, ...options });
  await gateway.listTools();
  await until('the daemons run', () => daemonsOf(gateway).length === DAEMONS);
  return gateway;
}

function daemonsOf({ folder }: GatewayProcess): number[] {
  return processesWith(`run=${folder} daemon`)
    .filter(({ args }) => args.startsWith(process.execPath))
    .map(({ pid }) => pid);
}

describe.runIf(SHOWS_VARIABLES)('processes of a server that have left its group', () => {
  it('F70: end before the next process of a killed server starts, and with the gateway', async () => {
    const gateway = await startWithDaemons({ args: ['-v'] });
    const daemons = daemonsOf(gateway);
    process.kill((await gateway.status('lab')).pid, 'SIGKILL');
    await gateway.untilServer('lab', 'is started again', ({ generation }) => generation > 1);
    expect(daemonsOf(gateway).filter((pid) => daemons.includes(pid))).toEqual([]);
    await gateway.untilState('lab', 'ready');
    expect(gateway.stderr).toContain("ended processes outside of the server's group");
    // The daemons ended later than the delay of the restart was over.
    expect(gateway.stderr.match(/"msg":"server backoff"/g)).toHaveLength(1);
    await until('the daemons run again', () => daemonsOf(gateway).length === DAEMONS);
    expect(await gateway.end()).toBe(0);
    const left = () => [...daemonsOf(gateway), ...guardiansOf(gateway.pid)];
    // On macOS, each look at the processes is a program, so the guardian may have to end the rest on a busy machine.
    if (IS_MAC) await until('everything is gone', () => left().length === 0);
    else expect(left()).toEqual([]);
  });

  it('F71: stay with `leaveRunning`, whatever ends the server, whose group ends as always', async () => {
    const gateway = await startWithDaemons({ servers: { lab: { ...LAB, leaveRunning: true } } });
    try {
      const daemons = daemonsOf(gateway);
      const isThere = () => daemonsOf(gateway).filter((pid) => daemons.includes(pid)).length === DAEMONS;
      process.kill((await gateway.status('lab')).pid, 'SIGKILL');
      await gateway.untilServer('lab', 'is started again', ({ generation }) => generation > 1);
      expect(isThere()).toBe(true);
      // Killed while it writes the run file, it would leave a draft, which the next start keeps for a minute.
      await gateway.untilState('lab', 'ready');
      gateway.kill('SIGKILL');
      await until('the guardian is gone', () => guardiansOf(gateway.pid).length === 0);
      expect(isThere()).toBe(true);
      expect(processesOf(`run=${gateway.folder}`).sort()).toEqual(daemonsOf(gateway).sort());

      await start({ servers: {}, env: dataIn(join(gateway.folder, 'data')) });
      const runs = join(dataFolderIn(join(gateway.folder, 'data')), 'run');
      await until('the next start has read the run file', () => readdirSync(runs).length === 0);
      expect(isThere()).toBe(true);
    } finally {
      killAll(gateway.folder);
    }
  });
});
