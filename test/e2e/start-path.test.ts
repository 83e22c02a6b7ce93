import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { CLI, GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { WITH_HUB } from '../support/hub-place.js';
import { dataIn } from '../support/platform.js';
import { processesWith, until } from '../support/processes.js';

/** Something to say before the first list, as with many tools or settings that do not fit one another. */
const WITH_A_WARNING = { timeout: '20m', maxTimeout: '10m' };

const HOOKS = new URL('../fixtures/modules/log-modules.mjs', import.meta.url);

let gateway: GatewayProcess | undefined;
const hubs = mkdtempSync(join(tmpdir(), 'th-'));
const HUB = { ...WITH_HUB, TRUNKLINE_HUB_DIR: hubs };
afterEach(async () => {
  await gateway?.dispose();
  gateway = undefined;
});
afterAll(() => rmSync(hubs, { recursive: true, force: true }));

/** Starts a gateway that writes the URLs of the modules that it loads to a file, and each write to stdout. */
async function startLogging(log: string, options: StartOptions): Promise<GatewayProcess> {
  return await GatewayProcess.start({ ...options, env: { NODE_OPTIONS: `--import ${HOOKS}`, MODULE_LOG: log } });
}

/** The modules that are loaded before each write to stdout in the second run. */
async function secondRun(): Promise<{ initializeResult: string[]; list: string[] }> {
  const options: StartOptions = { servers: { lab: WITH_A_WARNING } };
  const first = await GatewayProcess.start(options);
  gateway = first;
  await first.untilState('lab', 'ready');
  await first.end();
  const { folder } = first;
  const log = join(folder, 'modules.log');
  const second = await startLogging(log, { ...options, folder });
  gateway = second;
  expect((await second.listTools()).length).toBeGreaterThan(1);
  await second.untilState('lab', 'ready');
  await until('the log says what it has to say', () => second.stderr.includes('so maxTimeout applies'));
  await until('the server was started', () => readFileSync(log, 'utf8').includes('/dist/server-processes.js'));
  const [initializeResult = '', list = ''] = readFileSync(log, 'utf8').split('written\n');
  return {
    initializeResult: initializeResult.split('\n').filter(Boolean),
    list: [initializeResult, list].join('').split('\n').filter(Boolean),
  };
}

/** The packages that were loaded, from their own files or bundled with ours. */
function packagesOf(urls: readonly string[]): string[] {
  const bundled = modulesOf(urls).filter((module) => module.startsWith('node_modules/'));
  const names = [...urls, ...bundled].flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return [...new Set(names)].sort();
}

function ownFilesOf(urls: readonly string[]): string[] {
  return urls.filter((url) => url.includes('/dist/') && !url.includes('/node_modules/'));
}

/** Our modules, by what the build says stands in the files that were loaded. */
function modulesOf(urls: readonly string[]): string[] {
  const files = ownFilesOf(urls).map((url) => fileURLToPath(url));
  const modules = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^\/\/(?:#region)? ((?:src|node_modules)\/\S+)$/gm)].map(
      ([, module = '']) => module,
    ),
  );
  return modules.map((module) => module.split(sep).join('/'));
}

describe('with nothing changed since the last run', () => {
  it('the first answers need five files, and nothing that starts servers or checks a configuration', async () => {
    const { initializeResult, list } = await secondRun();
    expect(packagesOf(initializeResult)).toEqual([]);
    const loaded = packagesOf(list);
    expect(loaded).toEqual(expect.arrayContaining(['opossum', 'p-queue', 'pino']));
    for (const name of ['yaml', 'zod', 'execa', 'fastify']) expect(loaded).not.toContain(name);
    // Interceptors are loaded with the first configuration that names one.
    const ofInterceptors = modulesOf(list).filter((module) => module.startsWith('src/extras/interceptors/'));
    expect(ofInterceptors).toEqual(['src/extras/interceptors/index.ts']);
    expect([ownFilesOf(initializeResult).length, ownFilesOf(list).length]).toEqual([3, 5]);
  });
});

describe('a command that needs no server', () => {
  it('loads none of the files that serve', () => {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-command-'));
    try {
      const log = join(folder, 'modules.log');
      const env = { ...process.env, NODE_OPTIONS: `--import ${HOOKS}`, MODULE_LOG: log, ...dataIn(folder) };
      execFileSync(process.execPath, [CLI, '--version'], { env });
      const loaded = readFileSync(log, 'utf8').split('\n').filter(Boolean);
      expect(ownFilesOf(loaded).map((url) => basename(url))).toContain('output.js');
      expect(modulesOf(loaded).filter((module) => module.startsWith('src/gateway/'))).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('with nothing known of the servers', () => {
  it('F93: a server that has ended before the gateway is loaded is reported with its output', async () => {
    const args = ['-c', 'echo "cannot find the key" >&2; exit 1'];
    gateway = await GatewayProcess.start({ servers: { fails: { command: '/bin/sh', args, restart: { budget: 1 } } } });
    await gateway.untilState('fails', 'parked');
    const { result } = (await gateway.call('trunkline__status')).message;
    expect(result.content[0].text).toContain('cannot find the key');
  });

  it('F94: no server is left over when the client leaves at once', async () => {
    gateway = await GatewayProcess.start({ servers: { lab: {} } });
    // `dispose` looks for processes that were left behind.
    expect(await gateway.end()).toBe(0);
  });
});

async function endHub(folder: string): Promise<void> {
  const hubsHere = () => processesWith(folder).filter(({ args }) => args.includes(' hub serve '));
  for (const { pid } of hubsHere()) process.kill(pid, 'SIGTERM');
  await until('the hub has ended', () => hubsHere().length === 0);
}

/** Attaches twice, each time with a hub of its own. Returns the files that the second hub has loaded, in their order. */
async function startSecondHub(): Promise<string[]> {
  const servers = { lab: WITH_A_WARNING };
  const first = await GatewayProcess.start({ servers, env: HUB });
  gateway = first;
  await first.untilState('lab', 'ready');
  await first.end();
  const { folder } = first;
  await endHub(folder);
  const log = join(folder, 'modules.log');
  const env = { ...HUB, NODE_OPTIONS: `--import ${HOOKS}`, MODULE_LOG: log };
  const second = await GatewayProcess.start({ servers, folder, env });
  gateway = second;
  await second.untilState('lab', 'ready');
  await second.end();
  await endHub(folder);
  return ownFilesOf(readFileSync(log, 'utf8').split('\n')).map((url) => basename(url));
}

describe('a client that starts the hub, with nothing changed since the last run', () => {
  it('gets its lists before the hub loads what starts servers', async () => {
    const loaded = await startSecondHub();
    const [lists, start] = ['serve-clients.js', 'server-processes.js'].map((file) => loaded.indexOf(file));
    expect(lists).toBeGreaterThan(0);
    expect(start).toBeGreaterThan(lists ?? 0);
  });
});

/** Attaches with a log of what is loaded, while the hub runs. Returns what was loaded before the first write to stdout. */
async function attachToRunningHub(): Promise<string[]> {
  const servers = { lab: {} };
  const first = await GatewayProcess.start({ servers, env: HUB });
  gateway = first;
  await first.listTools();
  const { folder } = first;
  const log = join(folder, 'modules.log');
  const env = { ...HUB, NODE_OPTIONS: `--import ${HOOKS}`, MODULE_LOG: log };
  const second = await GatewayProcess.start({ servers, folder, env });
  await second.listTools();
  await Promise.all([first.end(), second.end()]);
  await endHub(folder);
  const [loaded = ''] = readFileSync(log, 'utf8').split('written\n');
  return loaded.split('\n').filter(Boolean);
}

describe('a client that attaches to a running hub', () => {
  it('needs two files and nothing of the gateway', async () => {
    const loaded = await attachToRunningHub();
    expect(packagesOf(loaded)).toEqual([]);
    expect(ownFilesOf(loaded).length).toBe(2);
  });
});

describe('a warning about the configuration', () => {
  it('is logged although the client leaves at once', async () => {
    const leaving = await GatewayProcess.start({ servers: { lab: WITH_A_WARNING } }, { handshake: false });
    gateway = leaving;
    await leaving.end();
    await until('the warning is logged', () => leaving.stderr.includes('so maxTimeout applies'));
  });
});
