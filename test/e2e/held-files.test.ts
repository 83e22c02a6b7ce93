import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CLI, GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { dataFolderIn } from '../support/platform.js';
import { until } from '../support/processes.js';

// A pipe that nobody writes holds every program that opens it, like a network file system that stops answering.

const HANG = new URL('../fixtures/modules/hang-on-file.mjs', import.meta.url);
const OPTIONS: StartOptions = { servers: { lab: {} }, args: ['-vv'] };

let gateway: GatewayProcess | undefined;
afterEach(async () => {
  // One that is held would not end otherwise.
  gateway?.kill('SIGKILL');
  await gateway?.dispose();
  gateway = undefined;
});

/** The folder of a run that has ended, with all the files that it leaves. */
async function earlierRun(): Promise<string> {
  gateway = await GatewayProcess.start(OPTIONS);
  await gateway.untilState('lab', 'ready');
  const data = dataFolderIn(join(gateway.folder, 'data'));
  await until('the catalogue is written', () => filesIn(join(data, 'catalogue')).length > 0);
  await gateway.end();
  return gateway.folder;
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder, name))
      .filter((file) => statSync(file).isFile());
  } catch {
    return [];
  }
}

async function untilLogged(text: string): Promise<void> {
  await until(`"${text}" in the log`, () => gateway?.stderr.includes(text) === true);
}

function putPipe(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  rmSync(file, { force: true });
  execFileSync('mkfifo', ['-m', '600', file]);
}

/** Lists the tools and calls one, as a client does. */
async function useTools(served: GatewayProcess): Promise<void> {
  const tools = await served.listTools();
  expect(tools.map(({ name }) => name)).toContain('lab__echo');
  const { message } = await served.call('lab__echo', { text: 'x' });
  expect(message.result.isError).not.toBe(true);
}

describe.runIf(process.platform !== 'win32')('a pipe in place of', () => {
  it('F77: every file holds neither start, list and call, nor the end at two signals', async () => {
    const folder = await earlierRun();
    const data = dataFolderIn(join(folder, 'data'));
    // More run files than Node has threads for files.
    const runs = Array.from({ length: 6 }, (_, at) => join(data, 'run', `${at}.json`));
    for (const file of [...filesIn(data), ...runs]) putPipe(file);
    gateway = await GatewayProcess.start({ ...OPTIONS, folder });
    await useTools(gateway);
    await untilLogged('it is a pipe, not a regular file');
    for (let count = 0; count < 2; count += 1) gateway.kill('SIGTERM');
    expect(await gateway.end()).toBe(0);
  });

  it('F77: the log and the configuration are refused at once, and a configuration in use stays in use', async () => {
    gateway = await GatewayProcess.start(OPTIONS);
    await useTools(gateway);
    // The watcher begins after a second.
    gateway.configure({ lab: {}, other: {} });
    await untilLogged('applied the changed configuration');
    await gateway.untilState('other', 'ready');
    const log = join(gateway.folder, 'log');
    putPipe(log);
    expect(runCli(['check', '--config', gateway.file, '--log-file', log])).toContain('it is a pipe that nobody reads');
    putPipe(gateway.file);
    await untilLogged('it is a pipe, not a regular file');
    await useTools(gateway);
    expect(await gateway.end()).toBe(0);
    expect(runCli(['check', '--config', gateway.file])).toContain('--config names a pipe, not a regular file');
  });

  it('F78: a file that no read is careful about does not keep the process: it ends itself after its servers', async () => {
    const folder = await earlierRun();
    const held = join(folder, 'held');
    putPipe(held);
    const env = { NODE_OPTIONS: `--import ${HANG}`, HELD_FILE: held };
    gateway = await GatewayProcess.start({ ...OPTIONS, folder, env });
    await useTools(gateway);
    expect(await gateway.end()).toBeNull();
    expect(gateway.stderr).toContain('a file operation hangs, so Trunkline ends itself with SIGKILL');
    expect(gateway.stderr).toContain('server stopped');
    expect(gateway.leftovers()).toEqual([]);
  });
});

/** Runs a command that has to fail, and returns its stderr. */
function runCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  try {
    execFileSync(process.execPath, [CLI, ...args], { env: { ...process.env, ...env }, stdio: 'pipe' });
  } catch (error) {
    return String((error as { stderr?: unknown }).stderr);
  }
  throw new Error('the command has not failed');
}
