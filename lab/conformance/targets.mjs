// The servers that are measured: the fixture of each era itself, and the fixture behind Trunkline.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startCallToolProxy } from './call-tool-proxy.mjs';

const FIXTURES = fileURLToPath(new URL('servers/', import.meta.url));
export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

/** The fixture of each era, over stdio and over HTTP. */
const PROGRAMS = {
  legacy: { stdio: join(FIXTURES, 'everything.mjs'), http: join(FIXTURES, 'everything-http.mjs') },
  modern: { stdio: join(FIXTURES, 'everything-modern.mjs'), http: join(FIXTURES, 'everything-modern-http.mjs') },
};

/** The fixture of an era over stdio, as an entry of a configuration. */
export function everything(era) {
  return { command: process.execPath, args: [PROGRAMS[era].stdio] };
}

const READY_WITHIN_MS = 15_000;
const END_WITHIN_MS = 5_000;
const POLL_MS = 50;
const KEPT_OUTPUT_CHARS = 4_000;

/** Each starts the server of an era and returns its `url`, `lastWords()` for a report, and `close()`. */
export const TARGETS = {
  direct: async (era) => {
    const port = await freePort();
    return await startServer([PROGRAMS[era].http, String(port)], port);
  },
  Trunkline: (era) => {
    return startTrunkline({ everything: { ...everything(era), prefix: '' } }, ['--no-auth']);
  },
  'Trunkline (URL)': async (era) => {
    const remote = await TARGETS.direct(era);
    try {
      const server = await startTrunkline({ everything: { url: remote.url, prefix: '' } }, ['--no-auth']);
      return { ...server, close: () => Promise.all([server.close(), remote.close()]) };
    } catch (error) {
      await remote.close();
      throw error;
    }
  },
  'Trunkline (call_tool)': async (era) => {
    // The suite also asks for the list, so that the tools are in it.
    const entry = { ...everything(era), prefix: '', tools: { pin: ['*'] } };
    const server = await startTrunkline({ everything: entry }, ['--no-auth'], { mode: 'search' });
    try {
      const proxy = await startCallToolProxy(server.url);
      return { ...server, url: proxy.url, close: () => Promise.all([proxy.close(), server.close()]) };
    } catch (error) {
      await server.close();
      throw error;
    }
  },
};

/**
 * Starts Trunkline over HTTP with these servers, on data of its own. What it returns also names its `folder`, its
 * `config`, and the environment that another Trunkline needs to be of the same user.
 */
export async function startTrunkline(servers, options = [], gateway = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-conformance-'));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  try {
    const config = join(folder, 'trunkline.yaml');
    // JSON is YAML. The first list waits for servers, because several programs start at once, and the rate of requests has a
    // high limit, because a suite sends more of them than a client.
    const http = { requestsPerSecond: 10_000, requestBurst: 10_000 };
    const settings = { startupWait: '30s', drain: '0s', http, ...gateway };
    writeFileSync(config, JSON.stringify({ servers, gateway: settings }));
    const env = { ...process.env, HOME: folder, XDG_DATA_HOME: join(folder, 'data'), TRUNKLINE_HUB: 'off' };
    const port = await freePort();
    const args = [CLI, 'serve', '--config', config, '--http', `127.0.0.1:${port}`, ...options];
    const server = await startServer(args, port, { env, onClosed: removeFolder });
    return { ...server, folder, config, env };
  } catch (error) {
    removeFolder();
    throw error;
  }
}

/** A process of its own group, so that nothing it started outlives it. */
async function startServer(args, port, { env = process.env, onClosed = () => {} } = {}) {
  const child = spawn(process.execPath, args, { detached: true, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const killGroup = () => signalGroup(child, 'SIGKILL');
  process.once('exit', killGroup);
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    output = (output + chunk).slice(-KEPT_OUTPUT_CHARS);
  });
  const exited = new Promise((resolve) => child.once('close', resolve));

  const close = async () => {
    signalGroup(child, 'SIGTERM');
    await Promise.race([exited, sleep(END_WITHIN_MS, undefined, { ref: false })]);
    killGroup();
    await exited;
    process.off('exit', killGroup);
    onClosed();
  };
  try {
    await untilReady(child, `http://127.0.0.1:${port}/readyz`);
  } catch (error) {
    await close();
    throw new Error(`${error.message}\n${output}`);
  }
  return { url: `http://127.0.0.1:${port}/mcp`, lastWords: () => output, close };
}

async function untilReady(child, url) {
  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(' ')} ended with code ${child.exitCode}`);
    // Refused until it listens.
    const response = await fetch(url, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
    if (response?.ok) return;
    await sleep(POLL_MS);
  }
  throw new Error(`${child.spawnargs.join(' ')} was not ready within ${READY_WITHIN_MS / 1000} s`);
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** A port on which nothing listens, below those that the system gives to connections, which could take it meanwhile. */
export function freePort() {
  return new Promise((resolve) => {
    const port = 12_000 + Math.floor(Math.random() * 20_000);
    const server = createServer().once('error', () => resolve(freePort()));
    server.listen(port, '0.0.0.0', () => server.close(() => resolve(port)));
  });
}
