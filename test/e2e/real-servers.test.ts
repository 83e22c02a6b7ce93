import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, type Message } from '../support/gateway-process.js';
import { linkOwnPackages } from '../support/own-packages.js';
import { dataIn } from '../support/platform.js';
import { liveMembers, until } from '../support/processes.js';

const folder = mkdtempSync(join(tmpdir(), 'trunkline-real-'));
writeFileSync(join(folder, 'note.txt'), 'a note');
const SERVERS: Record<string, { package: string; args: string[]; env?: Record<string, string> }> = {
  everything: { package: '@modelcontextprotocol/server-everything', args: [] },
  files: { package: '@modelcontextprotocol/server-filesystem', args: [folder] },
  memory: {
    package: '@modelcontextprotocol/server-memory',
    args: [],
    env: { MEMORY_FILE_PATH: join(folder, 'memory') },
  },
};
const config = join(folder, 'trunkline.yaml');
const env = {
  ...getDefaultEnvironment(),
  ...dataIn(join(folder, 'data')),
  TRUNKLINE_HUB_DIR: join(folder, 'hubs'),
};
const stop = () => execFileSync(process.execPath, [CLI, 'stop', '-c', config], { env, stdio: 'pipe' });
// The first list has to have the tools of all servers.
writeFileSync(config, JSON.stringify({ servers: SERVERS, gateway: { startupWait: '300s' } }));
linkOwnPackages(folder);

describe('three real npm servers behind the built CLI', () => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [CLI, '-c', config],
    env,
    stderr: 'ignore',
  });
  const client = new Client({ name: 'test', version: '1' });

  beforeAll(() => client.connect(transport));
  afterAll(async () => {
    await client.close();
    stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('show the official client exactly what each lists directly, but for the names', async () => {
    const { tools } = await client.listTools();
    const expected: Message[] = [];
    for (const [key, server] of Object.entries(SERVERS)) {
      for (const tool of await listDirectly(server)) expected.push({ ...tool, name: `${key}__${tool.name}` });
    }
    expect(expected.length).toBeGreaterThan(30);
    expect(tools.slice(0, -1)).toEqual(expected);
    expect(tools.at(-1)?.name).toBe('trunkline__status');
  });

  it('answer calls, errors and progress', async () => {
    const sum = await client.callTool({ name: 'everything__get-sum', arguments: { a: 1, b: 2 } });
    expect(sum.content).toEqual([{ type: 'text', text: 'The sum of 1 and 2 is 3.' }]);
    const note = await client.callTool({
      name: 'files__read_text_file',
      arguments: { path: join(folder, 'note.txt') },
    });
    expect(note.structuredContent).toEqual({ content: 'a note' });
    const outside = await client.callTool({ name: 'files__read_text_file', arguments: { path: '/etc/passwd' } });
    expect(outside.isError).toBe(true);
    const entity = { name: 'Trunkline', entityType: 'gateway', observations: ['relays'] };
    await client.callTool({ name: 'memory__create_entities', arguments: { entities: [entity] } });
    const graph = await client.callTool({ name: 'memory__read_graph', arguments: {} });
    expect(JSON.stringify(graph.content)).toContain('relays');
    const steps: number[] = [];
    const long = { name: 'everything__trigger-long-running-operation', arguments: { duration: 0.3, steps: 3 } };
    await client.callTool(long, undefined, { onprogress: ({ progress }) => steps.push(progress) });
    expect(steps.slice(0, 2)).toEqual([1, 2]);
  });

  async function reportOn(server: string): Promise<Message> {
    const { structuredContent } = await client.callTool({ name: 'trunkline__status', arguments: { server } });
    return (structuredContent as { servers: [Message] }).servers[0];
  }

  it('are all in the status, in brief and one by one', async () => {
    const status = await client.callTool({ name: 'trunkline__status', arguments: {} });
    const { servers } = status.structuredContent as { servers: Message[] };
    expect(servers.map(({ server, state }) => [server, state])).toEqual([
      ['everything', 'ready'],
      ['files', 'ready'],
      ['memory', 'ready'],
    ]);
    expect((await reportOn('everything')).calls).toBeGreaterThan(0);
    expect((await reportOn('everything')).latencyMs.p95).toBeGreaterThanOrEqual(0);
  });

  it('end with the process that clients share, and one that keeps state with its session', async () => {
    const reports = await Promise.all(['everything', 'files', 'memory'].map(reportOn));
    const pids = reports.map(({ pid }) => pid as number);
    const { structuredContent } = await client.callTool({ name: 'trunkline__status', arguments: {} });
    const hub = (structuredContent as { hub: { pid: number } }).hub.pid;
    const attached = transport.pid ?? undefined;
    expect(liveMembers([...pids, hub])).toHaveLength(4);
    await client.close();
    const [everything, ...shared] = pids;
    await until('the process of the session is gone', () => liveMembers([everything]).length === 0);
    // A program that the hub starts is in its group for a moment.
    await until('the others run', () => liveMembers([...shared, hub, attached]).length === 3);
    stop();
    expect(liveMembers([...pids, hub, attached])).toEqual([]);
  });
});

/** The lines that a server answers `initialize` and `tools/list` with. */
async function talk(args: string[], env: Record<string, string>): Promise<string[]> {
  const server = spawn(process.execPath, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'ignore'] });
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const exited = new Promise((resolve) => server.once('exit', resolve));
  const clientInfo = { name: 'trunkline', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  send({ id: 1, method: 'initialize', params });
  const answers: string[] = [];
  for await (const line of createInterface({ input: server.stdout })) {
    const { id } = JSON.parse(line) as Message;
    if (id === undefined) continue;
    answers.push(line);
    if (id === 2) break;
    send({ method: 'notifications/initialized' });
    send({ id: 2, method: 'tools/list' });
  }
  server.stdin.end();
  server.kill();
  await exited;
  return answers;
}

async function listDirectly({ package: name, args, env = {} }: (typeof SERVERS)[string]): Promise<Message[]> {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
  const { bin } = createRequire(manifest)(manifest) as { bin: Record<string, string> };
  const [, line = ''] = await talk([join(dirname(manifest), Object.values(bin)[0] ?? ''), ...args], env);
  return (JSON.parse(line) as Message).result.tools;
}
