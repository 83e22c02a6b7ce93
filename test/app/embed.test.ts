import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openTrunkline } from '../../src/app/embed.js';
import type { OpenOptions, Trunkline } from '../../src/app/embed-types.js';
import { LAB, type Message } from '../support/gateway-process.js';
import { dataIn } from '../support/platform.js';
import { processesWith } from '../support/processes.js';

let folder: string;
const open: Trunkline[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-embed-'));
  for (const [name, value] of Object.entries(dataIn(join(folder, 'data')))) vi.stubEnv(name, value);
});
afterEach(async () => {
  for (const trunkline of open.splice(0)) await trunkline.close();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

function configuration(...keys: string[]) {
  const lab = { command: 'node', args: [LAB, `run=${folder}`] };
  const views = { work: { servers: ['lab'] } };
  return { servers: Object.fromEntries(keys.map((key) => [key, lab])), views, gateway: { startupWait: '30s' } };
}

async function openFor(given: string | object, options?: OpenOptions): Promise<Trunkline> {
  const trunkline = await openTrunkline(given, options);
  open.push(trunkline);
  return trunkline;
}

async function connect(trunkline: Trunkline, view?: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(trunkline.transport({ view }));
  return client;
}

const toolsOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);

describe('the transports of openTrunkline', () => {
  it('show all servers, or those of a view', async () => {
    const trunkline = await openFor(configuration('lab', 'other'));
    const [all, some] = [await connect(trunkline), await connect(trunkline, 'work')];
    expect(await toolsOf(all)).toEqual(expect.arrayContaining(['lab__echo', 'other__echo']));
    expect((await toolsOf(some)).filter((name) => name.startsWith('other__'))).toEqual([]);
  });

  it('refuse a view that the configuration does not have', async () => {
    const trunkline = await openFor(configuration('lab'));
    expect(() => trunkline.transport({ view: 'wrok' })).toThrow(
      expect.objectContaining({ code: 'view-not-found', message: expect.stringContaining('did you mean `work`?') }),
    );
  });

  it('serve one client each', async () => {
    const trunkline = await openFor(configuration('lab'));
    const transport = trunkline.transport();
    await new Client({ name: 'first', version: '1' }).connect(transport);
    const second = new Client({ name: 'second', version: '1' }).connect(transport);
    await expect(second).rejects.toThrow('each client needs one of its own');
  });

  it('fail the calls in flight and tell their clients when Trunkline is closed', async () => {
    const trunkline = await openFor(configuration('lab'));
    const client = await connect(trunkline);
    let closed = 0;
    client.onclose = () => {
      closed += 1;
    };
    await client.listTools();
    const call = client.callTool({ name: 'lab__wait', arguments: { marker: 'late', delayMs: 600_000 } });
    const failed = expect(call).rejects.toThrow('Connection closed');
    await trunkline.close();
    await failed;
    await client.close();
    expect(closed).toBe(1);
    expect(() => trunkline.transport()).toThrow('this Trunkline was closed');
    expect(processesWith(folder)).toEqual([]);
  });

  it('carry the questions of a server to the client that caused them', async () => {
    const trunkline = await openFor(configuration('lab'));
    const transport = trunkline.transport();
    const send = (message: object) => transport.send({ jsonrpc: '2.0', ...message });
    const answered = new Promise<string>((resolve) => {
      transport.onmessage = (message: Message) => {
        if (message.method === 'roots/list')
          void send({ id: message.id, result: { roots: [{ uri: 'file:///work' }] } });
        else if (message.id === 2) resolve(JSON.stringify(message));
      };
    });
    await transport.start();
    const clientInfo = { name: 'test', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo };
    await send({ id: 1, method: 'initialize', params });
    await send({ method: 'notifications/initialized' });
    await send({ id: 2, method: 'tools/call', params: { name: 'lab__ask', arguments: { method: 'roots/list' } } });
    expect(await answered).toContain('file:///work');
  });

  it('report what a client throws at a message to its onerror, and go on', async () => {
    const trunkline = await openFor(configuration('lab'));
    const transport = trunkline.transport();
    const reported = new Promise<Error>((resolve) => {
      transport.onerror = resolve;
    });
    transport.onmessage = () => {
      throw new Error('of the client');
    };
    await transport.start();
    await transport.send({ jsonrpc: '2.0', id: 1, method: 'ping' });
    expect((await reported).message).toBe('of the client');
    expect(await toolsOf(await connect(trunkline))).toContain('lab__echo');
  });
});

describe('the configuration of openTrunkline', () => {
  it('is a file, whose changes are applied', async () => {
    const file = join(folder, 'trunkline.yaml');
    writeFileSync(file, JSON.stringify(configuration('lab')));
    const trunkline = await openFor(file);
    expect(trunkline.status()).toMatchObject({ configFile: file, servers: [{ server: 'lab' }] });
    writeFileSync(file, JSON.stringify(configuration('lab', 'second')));
    await expect.poll(() => trunkline.status().servers.map(({ server }) => server)).toEqual(['lab', 'second']);
  });

  it('is an object, whose mistakes are named by their places in it', async () => {
    const given = { servers: { lab: { command: 'node', timeout: 3 }, other: {} } };
    const name = join(folder, 'openTrunkline');
    await expect(openTrunkline(given, { folder })).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringMatching(/: servers\.lab\.timeout: found the number 3[^\n]*\n.*: servers\.other: found/s),
    });
    await expect(openTrunkline(given, { folder })).rejects.toThrow(`${name}: servers.lab.timeout: `);
  });

  it('may be an object whose paths begin in a folder of the program', async () => {
    writeFileSync(join(folder, 'env'), 'MARK=from the file\n');
    const lab = { command: 'node', args: [LAB, `\${MARK}`, `run=${folder}`], envFile: 'env' };
    const trunkline = await openFor({ servers: { lab }, gateway: { startupWait: '30s' } }, { folder });
    expect(await toolsOf(await connect(trunkline))).toContain('lab__echo');
    expect(processesWith('from the file').length).toBe(1);
  });
});

describe('the log of openTrunkline', () => {
  it('goes to a function as lines, and to a stream as lines that end', async () => {
    const lines: string[] = [];
    await openFor(configuration('lab'), { log: (line) => lines.push(line), logLevel: 'info' });
    const written: string[] = [];
    await openFor(configuration('lab'), { log: { write: (line) => written.push(line) }, logLevel: 'info' });
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ server: 'lab', msg: 'server starting' });
    expect(lines.some((line) => line.includes('\n'))).toBe(false);
    expect(written[0]).toMatch(/^\{.*\}\n$/);
  });

  it('may throw, which stops nothing', async () => {
    const log = () => {
      throw new Error('no space left');
    };
    const trunkline = await openFor(configuration('lab'), { log, logLevel: 'debug' });
    expect(await toolsOf(await connect(trunkline))).toContain('lab__echo');
  });
});
