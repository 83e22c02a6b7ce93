import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import * as https from 'node:https';
import { fileURLToPath } from 'node:url';
import { CallToolResultSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import type { Message } from '../support/gateway-process.js';
import { INITIALIZE, Place, type Running } from '../support/http-place.js';
import { until } from '../support/processes.js';

const MANY = fileURLToPath(new URL('../fixtures/cli/many.mjs', import.meta.url));
const STUBBORN = fileURLToPath(new URL('../fixtures/cli/ignores-the-end.mjs', import.meta.url));

/** One gateway for the tests that need no settings of their own and leave it as it is. */
const sharedPlace = new Place();
let shared: Running;
beforeAll(async () => {
  const servers = { lab: sharedPlace.lab(), one: sharedPlace.lab(), two: sharedPlace.lab() };
  // All tests together send more requests than one token may send in a second.
  const gateway = { http: { requestsPerSecond: 1_000, requestBurst: 1_000 } };
  shared = await sharedPlace.serve({ servers, gateway });
});
afterAll(() => sharedPlace.dispose());

/** For tests with a gateway of their own. */
let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

describe('the official client', () => {
  it('lists and calls tools, receives progress, and is notified of a changed list', async () => {
    const client = await sharedPlace.connect(shared);
    const told = new Promise((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, resolve);
    });
    expect(client.getServerVersion()?.name).toBe('trunkline');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['lab__echo', 'trunkline__status']));

    const steps: number[] = [];
    const result = await client.callTool({ name: 'lab__progress' }, CallToolResultSchema, {
      onprogress: ({ progress }) => steps.push(progress),
    });
    expect(result.content).toEqual([{ type: 'text', text: 'done' }]);
    // Of two steps that are the same, the second is no progress.
    expect(steps).toEqual([1, 2, 3]);

    await client.callTool({ name: 'lab__change' });
    await told;
    const { tools: changed } = await client.listTools();
    expect(changed.map(({ name }) => name)).toContain('lab__added1');
  });

  it('gets its own answers, every byte of them, while another one calls the same servers', async () => {
    const clients = [await sharedPlace.connect(shared), await sharedPlace.connect(shared)];
    const sizes = [0, 20, 300_000, 0, 1_100_000];
    const calls = Array.from({ length: 30 }, (_, call) =>
      clients.map(async (client, index) => {
        const [server, bytes = 0] = [call % 2 === 0 ? 'one' : 'two', sizes[call % sizes.length]];
        const mark = `client ${index}, call ${call}, ${randomUUID()}`;
        const tool = bytes > 0 ? 'big' : 'wait';
        const args = { mark, bytes, marker: mark, delayMs: (call * 7) % 20 };
        const { content } = await client.callTool({ name: `${server}__${tool}`, arguments: args });
        const [{ text }] = content as [{ text: string }];
        return text === (bytes > 0 ? mark.repeat(bytes / mark.length + 1).slice(0, bytes) : mark);
      }),
    );
    expect(await Promise.all(calls.flat())).toEqual(Array(60).fill(true));
  });
});

describe('clients of revision 2026-07-28', () => {
  async function listTools(running: Running, cursor?: string) {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const method = 'tools/list';
    const params = { _meta, ...(cursor !== undefined && { cursor }) };
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
    const response = await place.post(running, { jsonrpc: '2.0', id: 1, method, params }, headers);
    return (await response.json()) as { result?: { tools: object[]; nextCursor?: string }; error?: { code: number } };
  }

  it('continue a list at another gateway that has the same key', async () => {
    writeFileSync(place.file('key'), `${'k'.repeat(44)}\n`, { mode: 0o600 });
    // Together they have more tools than fit on one page.
    const servers = { one: place.server(MANY), two: place.server(MANY) };
    const options = { servers, gateway: { sealKeyFile: 'key', startupWait: '300s' } };
    const [first, second] = [await place.serve(options), await place.serve(options)];
    const { result } = await listTools(first);
    expect(result?.tools).toHaveLength(1_000);
    expect((await listTools(second)).result?.nextCursor).toBe(result?.nextCursor);
    expect((await listTools(second, result?.nextCursor)).result?.tools.length).toBeGreaterThanOrEqual(200);
    expect((await listTools(second, `${result?.nextCursor}x`)).error?.code).toBe(-32602);
  });
});

describe('the command line', () => {
  it.each([
    [['--http', '0.0.0.0:0', '--no-auth'], /0\.0\.0\.0 without authentication/],
    [['--http', '127.0.0.1:0', '--allowed-origin', 'a.example'], /must be scheme:\/\/host/],
  ])('that says %j is refused in one line', async (args, reason) => {
    const { code, stdout, stderr } = await place.run([...args, ...place.configure({ lab: place.lab() })]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^trunkline: .+\n$/);
    expect(stderr).toMatch(reason);
  });

  it('that names a port in use is refused in one line', async () => {
    const { port } = shared;
    const { code, stderr } = await place.run(['--http', `127.0.0.1:${port}`, ...place.configure({ lab: place.lab() })]);
    expect(code).toBe(2);
    expect(stderr).toBe(
      `trunkline: cannot listen on 127.0.0.1:${port}: another program already uses the port; choose another address with --http HOST:PORT\n`,
    );
  });

  it('that says --no-auth on loopback needs no token', async () => {
    const running = await place.serve({ args: ['--no-auth'] });
    expect((await place.post(running, INITIALIZE, { authorization: undefined })).status).toBe(200);
    expect(existsSync(place.tokenFile)).toBe(false);
  });
});

describe('a file for TLS', () => {
  const files = () => ['--tls-cert', place.file('cert.pem'), '--tls-key', place.file('key.pem')];
  const hint = 'pass readable PEM files with --tls-cert and --tls-key';

  it.each([
    ['a pipe that nobody writes', () => execFileSync('mkfifo', [place.file('key.pem')]), /it is a pipe/],
    ['absent', () => {}, /it does not exist/],
    ['no PEM', () => writeFileSync(place.file('key.pem'), 'something'), /cannot use the TLS certificate or key/],
  ])('F85: that is %s ends the start with one line', async (_what, create, reason) => {
    writeFileSync(place.file('cert.pem'), 'something');
    create();
    const config = place.configure({ lab: place.lab() });
    const { code, stdout, stderr } = await place.run(['--http', '127.0.0.1:0', ...files(), ...config]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(new RegExp(`^trunkline: .+; ${hint}\n$`));
    expect(stderr).toMatch(reason);
  });

  it('may be a symbolic link, as programs that renew certificates leave it', async () => {
    const made = createCertificate(place.file('.'));
    symlinkSync(made.certFile, place.file('cert.pem'));
    symlinkSync(made.keyFile, place.file('key.pem'));
    const { port } = await place.serve({ args: files() });
    const ca = readFileSync(made.certFile);
    const request = https.get({ host: '127.0.0.1', servername: 'localhost', port, path: '/healthz', ca });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
  });
});

describe('the probes', () => {
  it('report that the process runs, and when every server has started that waits for no client', async () => {
    const slow = { ...place.lab('slow=700'), sharing: 'all' };
    const running = await place.serve({ servers: { quick: place.lab(), slow } });
    // Asked at once: the slow server cannot have started yet.
    expect(await running.probe('/readyz')).toEqual({ status: 503, text: 'not ready' });
    expect(await running.probe('/healthz')).toEqual({ status: 200, text: 'ok' });
    await running.untilReady();
    expect(await running.probe('/readyz')).toEqual({ status: 200, text: 'ready' });
  });
});

// `test/app/run-to-end.test.ts` proves the deadline of three seconds, on a clock of its own.
describe('the end', () => {
  it('comes after SIGTERM, with open streams and with servers that ignore signals', async () => {
    const running = await place.serve({
      servers: { lab: place.lab(), mute: place.lab('mute'), stubborn: place.server(STUBBORN) },
    });
    await until('all servers run', () => place.leftovers().length === 4);
    const session = await place.initialize(running);
    const listening = await fetch(running.url, {
      headers: place.headers({ ...session, accept: 'text/event-stream' }),
    });
    expect(listening.status).toBe(200);
    const params = { name: 'lab__effect', arguments: { file: place.file('calls'), marker: 'x', delayMs: 60_000 } };
    const call = place.post(running, { jsonrpc: '2.0', id: 2, method: 'tools/call', params }, session);
    await until('the call has reached its server', () => existsSync(place.file('calls')));

    running.process.kill('SIGTERM');
    const { code, stdout } = await running.finished;
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(place.leftovers()).toEqual([]);
    expect(await listening.text()).not.toContain('data: {');
    const { result } = (await (await call).json()) as Message;
    expect(result._meta['trunkline/failure']).toMatchObject({ reason: 'stopped', outcome: 'unknown' });
  });

  it.each([
    ['SIGTERM', (running: Running) => Promise.resolve(running.process.kill('SIGTERM'))],
    ['`trunkline drain`', () => place.run(['drain', '--config', place.file('trunkline.yaml')])],
  ])('F314: comes after the answers to the calls in flight: %s', async (_by, drain) => {
    const running = await place.serve({ gateway: { drain: '30s' } });
    const session = await place.initialize(running);
    const params = { name: 'lab__effect', arguments: { file: place.file('calls'), marker: 'x', delayMs: 1_500 } };
    const call = place.post(running, { jsonrpc: '2.0', id: 2, method: 'tools/call', params }, session);
    await until('the call has reached its server', () => existsSync(place.file('calls')));

    const drained = drain(running);
    await expect.poll(() => running.probe('/readyz')).toEqual({ status: 503, text: 'draining' });
    expect((await running.probe('/livez')).status).toBe(200);
    const { result } = (await (await call).json()) as Message;
    expect(result.isError).toBeUndefined();
    expect((await running.finished).code).toBe(0);
    expect(await drained).not.toMatchObject({ code: 1 });
    expect(place.leftovers()).toEqual([]);
  });

  it('F310: does not end sessions, which go on at the next start, also after a kill', async () => {
    const first = await place.serve();
    const session = await place.initialize(first);
    first.process.kill('SIGKILL');
    await first.finished;
    const second = await place.serve();
    const listed = await place.post(second, { jsonrpc: '2.0', id: 2, method: 'tools/list' }, session);
    expect(((await listed.json()) as Message).result.tools.length).toBeGreaterThan(0);
    expect(
      (await place.post(second, { jsonrpc: '2.0', id: 3, method: 'ping' }, { 'mcp-session-id': 'x' })).status,
    ).toBe(404);
  });

  it('does not come with the end of stdin when only HTTP is served', async () => {
    shared.process.stdin.end();
    const client = await sharedPlace.connect(shared);
    expect((await client.callTool({ name: 'lab__progress' })).content).toEqual([{ type: 'text', text: 'done' }]);
  });

  it('comes with the end of stdin when stdio and HTTP are served, and both are served until then', async () => {
    const servers = { lab: place.lab(), mute: place.lab('mute') };
    const running = await place.serve({ args: ['--stdio'], servers, gateway: { startupWait: '1s' } });
    const client = await place.connect(running);
    await running.say(INITIALIZE);
    const call = (marker: string) => ({ name: 'lab__wait', arguments: { marker, delayMs: 20 } });
    const [overHttp, overStdio] = await Promise.all([
      client.callTool(call('over HTTP')),
      running.say({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: call('over stdio') }),
    ]);
    expect(overHttp.content).toEqual([{ type: 'text', text: 'over HTTP' }]);
    expect(overStdio.result.content).toEqual([{ type: 'text', text: 'over stdio' }]);

    running.process.stdin.end();
    const { code } = await running.finished;
    expect(code).toBe(0);
    expect(place.leftovers()).toEqual([]);
    await expect(fetch(running.url)).rejects.toThrow();
  });
});
