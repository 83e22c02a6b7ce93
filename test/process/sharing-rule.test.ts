// The default sharing with real processes: by the table of packages, by revision, and apart for all others.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { type InProcessClient, InProcessGateway, textOf } from '../support/in-process-gateway.js';

const ORIGIN = fileURLToPath(new URL('../fixtures/servers/origin.mjs', import.meta.url));
const MODERN = fileURLToPath(new URL('../../lab/conformance/servers/everything-modern.mjs', import.meta.url));

/** A program that is installed as this package, and reports its process. */
function installedAs(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-sharing-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'node_modules', name, 'server.mjs');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `import ${JSON.stringify(pathToFileURL(ORIGIN).href)};\n`);
  return file;
}

function running(program: string): InProcessGateway {
  return InProcessGateway.start({ servers: { a: { command: process.execPath, args: [program, 'run=RUN'] } } });
}

async function pidOf(client: InProcessClient): Promise<number> {
  return JSON.parse(textOf(await client.call('a__where'))).pid;
}

it('F280: a server of which nothing is known has a process for each session', async () => {
  const gateway = running(ORIGIN);
  const [one, other] = [await gateway.connect(), await gateway.connect()];
  const pids = [await pidOf(one), await pidOf(other), await pidOf(one), await pidOf(other)];
  expect(pids.slice(2)).toEqual(pids.slice(0, 2));
  expect(pids[0]).not.toBe(pids[1]);
  expect(gateway.status('a').sharing).toMatchObject({ mode: 'isolated', rule: 'unknown' });
});

it('a server that speaks a revision without sessions is shared by the clients after the first', async () => {
  const gateway = running(MODERN);
  await gateway.connect();
  await gateway.untilState('a', 'ready');
  await gateway.connect();
  expect(gateway.status('a')).toMatchObject({
    sharing: { mode: 'profile', rule: 'revision' },
    instances: [{ id: 'a', clients: 2 }],
  });
});

it('F281: a package that loses data with two processes or calls has one process for all clients, and one call at a time', async () => {
  const gateway = running(installedAs('@modelcontextprotocol/server-memory'));
  const clients = [await gateway.connect(), await gateway.connect({ sampling: {} })];
  expect(await pidOf(clients[0] as InProcessClient)).toBe(await pidOf(clients[1] as InProcessClient));
  expect(gateway.status('a').sharing).toMatchObject({ mode: 'all', rule: 'known' });
  const [backend] = gateway.composition.gateway.pool.of('a');
  expect(backend?.rules.limits.concurrency).toBe(1);
});

it('a package that keeps a browser has a process for each session', async () => {
  const gateway = running(installedAs('@playwright/mcp'));
  const clients = [await gateway.connect(), await gateway.connect()];
  expect(await pidOf(clients[0] as InProcessClient)).not.toBe(await pidOf(clients[1] as InProcessClient));
  expect(gateway.status('a').sharing).toMatchObject({ mode: 'isolated', rule: 'known' });
});
