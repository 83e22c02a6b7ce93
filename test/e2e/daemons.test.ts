import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CLI, GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { fixture, guardiansOf, killAll, processesOf, processesWith, until } from '../support/processes.js';

/** Two processes in sessions of their own, which only SIGKILL ends. */
const DAEMONS = 2;
const LAB = { args: ['daemons'], restart: { firstDelay: '1ms' } };

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
  await untilDaemons(gateway);
  return gateway;
}

async function untilDaemons(gateway: GatewayProcess): Promise<void> {
  await until('the daemons run', () => daemonsOf(gateway).length === DAEMONS);
}

function daemonsOf({ folder }: GatewayProcess): number[] {
  return processesWith(`run=${folder} daemon`)
    .filter(({ args }) => args.startsWith(process.execPath))
    .map(({ pid }) => pid);
}

function nothingLeft(gateway: GatewayProcess): boolean {
  return gateway.leftovers().length + guardiansOf(gateway.pid).length === 0;
}

/** The variable that marks a process. */
function markOf(pid: number | undefined): string {
  const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  return variables.find((variable) => variable.startsWith('TRUNKLINE_FAMILY_')) ?? '';
}

describe.runIf(process.platform === 'linux')('processes of a server that have left its group', () => {
  it('F70: end before the next process of the server starts, when the server is killed', async () => {
    const gateway = await startWithDaemons();
    const daemons = daemonsOf(gateway);
    process.kill((await gateway.status('lab')).pid, 'SIGKILL');
    await gateway.untilServer('lab', 'is started again', ({ generation }) => generation > 1);
    expect(daemonsOf(gateway).filter((pid) => daemons.includes(pid))).toEqual([]);
    await gateway.untilState('lab', 'ready');
    // The daemons ended later than the delay of the restart was over.
    expect(gateway.stderr.match(/"msg":"server backoff"/g)).toHaveLength(1);
  });

  it('F70: end also when a restarted server is killed', async () => {
    const gateway = await startWithDaemons();
    for (const generation of [2, 3]) {
      const { pid } = await gateway.status('lab');
      const daemons = daemonsOf(gateway);
      process.kill(pid, 'SIGKILL');
      await gateway.untilServer('lab', 'is started again', (report) => report.generation >= generation);
      expect(daemonsOf(gateway).filter((daemon) => daemons.includes(daemon))).toEqual([]);
      await gateway.untilState('lab', 'ready');
      await untilDaemons(gateway);
    }
  });

  it('end when the server is restarted on request', async () => {
    const gateway = await startWithDaemons({ gateway: { restartTool: true }, args: ['-v'] });
    const daemons = daemonsOf(gateway);
    await gateway.call('trunkline__restart', { server: 'lab' });
    await gateway.untilServer('lab', 'is started again', ({ generation }) => generation > 1);
    expect(daemonsOf(gateway).filter((pid) => daemons.includes(pid))).toEqual([]);
    expect(gateway.stderr).toContain("ended processes outside of the server's group");
  });

  it('F70: have ended when the gateway has ended in the orderly way', async () => {
    const gateway = await startWithDaemons();
    expect(await gateway.end()).toBe(0);
    expect(daemonsOf(gateway)).toEqual([]);
    expect(guardiansOf(gateway.pid)).toEqual([]);
  });

  it('F70: are ended by the guardian when the gateway is killed', async () => {
    const gateway = await startWithDaemons();
    gateway.kill('SIGKILL');
    await until('everything is gone', () => nothingLeft(gateway));
  });

  it('F70: are ended by the next start when gateway and guardian are killed, even if the server has ended', async () => {
    const gateway = await startWithDaemons();
    const guardians = guardiansOf(gateway.pid);
    const { pid } = await gateway.status('lab');
    for (const guardian of guardians) process.kill(guardian.pid, 'SIGKILL');
    gateway.kill('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await gateway.exited;
    await until('the guardian is gone', () => guardiansOf(gateway.pid).length === 0);
    expect(daemonsOf(gateway)).toHaveLength(DAEMONS);

    const next = await start({ servers: {}, env: { XDG_DATA_HOME: join(gateway.folder, 'data') } });
    await until('the daemons are gone', () => daemonsOf(gateway).length === 0);
    expect(next.stderr).toContain('ending what a killed Trunkline left behind');
  });

  it('are told from processes with another mark, and from those that have the mark in their arguments', async () => {
    const gateway = await startWithDaemons();
    const mark = markOf(daemonsOf(gateway)[0]);
    expect(mark).toMatch(/^TRUNKLINE_FAMILY_[0-9a-f]{32}=1$/);
    const other = `TRUNKLINE_FAMILY_${'0'.repeat(32)}`;
    const lookalike = (args: string[], env: Record<string, string>) =>
      spawn(process.execPath, [fixture('ignore-eof.mjs'), ...args], { env, detached: true, stdio: 'ignore' });
    const [name = ''] = mark.split('=');
    const strangers = [lookalike([mark], {}), lookalike([], { [other]: '1', COPY: mark, [`X${name}`]: '1' })];
    try {
      process.kill((await gateway.status('lab')).pid, 'SIGKILL');
      await gateway.untilServer('lab', 'is started again', ({ generation }) => generation > 1);
      gateway.kill('SIGKILL');
      await until('everything is gone', () => nothingLeft(gateway));
      expect(strangers.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual([null, null]);
    } finally {
      for (const stranger of strangers) stranger.kill('SIGKILL');
    }
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

      await start({ servers: {}, env: { XDG_DATA_HOME: join(gateway.folder, 'data') } });
      const runs = join(gateway.folder, 'data', 'trunkline', 'run');
      await until('the next start has read the run file', () => readdirSync(runs).length === 0);
      expect(isThere()).toBe(true);
    } finally {
      killAll(gateway.folder);
    }
  });
});

describe.runIf(process.platform === 'linux')('the servers of a Trunkline behind Trunkline', () => {
  it('end when that Trunkline and its guardian are killed', async () => {
    const gateway = await start({ servers: {} });
    const nested = join(gateway.folder, 'nested');
    mkdirSync(nested);
    const file = join(nested, 'trunkline.yaml');
    const lab = fixture('../servers/lab.mjs');
    const args = [lab, 'stubborn', 'daemons', `run=${gateway.folder}`];
    writeFileSync(file, JSON.stringify({ servers: { lab: { command: 'node', args } } }));
    const env = { XDG_DATA_HOME: join(nested, 'data') };
    const inner = { command: 'node', args: [CLI, '--no-hub', '--config', file], env, restart: { firstDelay: '1ms' } };
    gateway.configure({ inner });
    await gateway.untilStatus('the nested one is there', ({ servers }) => servers?.length === 1);
    await gateway.untilState('inner', 'ready');
    await untilDaemons(gateway);

    const { pid } = await gateway.status('inner');
    const servers = processesOf(`run=${gateway.folder}`);
    expect(servers).toHaveLength(1 + DAEMONS);
    for (const guardian of guardiansOf(pid)) process.kill(guardian.pid, 'SIGKILL');
    process.kill(pid, 'SIGKILL');
    await gateway.untilServer('inner', 'is started again', ({ generation }) => generation > 1);
    expect(processesOf(`run=${gateway.folder}`).filter((each) => servers.includes(each))).toEqual([]);
  });
});
