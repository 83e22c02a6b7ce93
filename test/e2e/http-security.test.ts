// The protections that show in a process only: its files, its command line, its servers and its listening sockets.
// `test/downstream/http` has all others.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import * as net from 'node:net';
import { networkInterfaces } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { gatewayFolders } from '../../src/hub/hub-folder.js';
import { findGateways } from '../../src/state/gateway-file.js';
import { INITIALIZE, Place } from '../support/http-place.js';

const WITNESS = fileURLToPath(new URL('../fixtures/servers/witness.mjs', import.meta.url));
const HELLO = JSON.stringify(INITIALIZE);

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

const serve = (options: Parameters<Place['serve']>[0] = {}) =>
  place.serve({ ...options, args: ['-v', ...(options.args ?? [])] });

describe('a request under a name that is not allowed', () => {
  it('F192: is counted in the status and told by the doctor, who also sees a second gateway of the same configuration', async () => {
    const [running, other] = await Promise.all([serve(), serve()]);
    const client = await place.connect(running);
    for (const host of ['evil.test', 'gateway.test:7411']) expect(await place.statusOf(running, { host })).toBe(403);
    const status = await client.callTool({ name: 'trunkline__status', arguments: {} });
    const named = { header: 'Host', count: 2, last: 'gateway.test:7411', code: 'TL-HTTP-HOST-REFUSED' };
    expect(status.structuredContent).toMatchObject({ refusedNames: [named] });
    const known = async () => await findGateways(gatewayFolders(place.environment.TRUNKLINE_HUB_DIR));
    const names = async () => (await known()).flatMap(({ refused }) => refused.map(({ last }) => last));
    await expect.poll(names).toEqual(['gateway.test:7411']);
    const examine = async () => {
      const args = ['doctor', '--no-start', '--offline', '--json', '--config', place.file('trunkline.yaml')];
      return JSON.parse((await place.run(args)).stdout).findings as { code: string; sentence: string }[];
    };
    const [twice, ...rest] = (await examine()).filter(({ code }) => /^TL-(?:RUN-TWICE|HTTP)/.test(code));
    expect(twice).toMatchObject({ code: 'TL-RUN-TWICE', evidence: ['~/trunkline.yaml'] });
    const pids = [running, other].map(({ process: { pid } }) => `Trunkline ${pid} `);
    for (const pid of pids) expect(twice?.sentence).toContain(pid);
    expect(rest).toMatchObject([{ code: 'TL-HTTP-HOST-REFUSED', sentence: expect.stringContaining(pids[0] ?? '') }]);
    other.process.kill('SIGTERM');
    await other.finished;
    expect((await examine()).map(({ code }) => code)).not.toContain('TL-RUN-TWICE');
  });
});

describe('the port', () => {
  it('is open on loopback alone, unless the command line names another address', async () => {
    const running = await serve({ address: ['--http', '0'] });
    const others = Object.values(networkInterfaces()).flatMap((addresses = []) =>
      addresses.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address),
    );
    expect(await connects('127.0.0.1', running.port)).toBe(true);
    // A socket that listens on 0.0.0.0 listens on all of 127.0.0.0/8, too.
    for (const address of ['127.0.0.2', ...others]) expect(await connects(address, running.port)).toBe(false);
  });

  it('accepts nothing without the token or under another name than the allowed ones, where others can reach it', async () => {
    const running = await serve({ address: ['--http', '0.0.0.0:0', '--allowed-host', 'gateway.test'] });
    expect(await place.statusOf(running, { host: 'gateway.test', authorization: undefined })).toBe(401);
    expect(await place.statusOf(running, { host: `127.0.0.1:${running.port}` })).toBe(403);
    expect(await place.statusOf(running, { host: 'gateway.test' })).toBe(200);
  });
});

describe('the token', () => {
  it('is printed by `trunkline token`, and stands in no list of processes and no log', async () => {
    const { stdout } = await place.run(['token']);
    const running = await serve({ args: ['--log-file', place.file('log')] });
    expect(stdout).toBe(`${place.token}\n`);
    expect(await place.statusOf(running, { authorization: `Bearer ${place.token}x` })).toBe(401);
    await place.initialize(running);
    expect(statSync(place.tokenFile).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(place.tokenFile)).mode & 0o777).toBe(0o700);
    expect(place.leftovers().length).toBeGreaterThan(0);
    const log = readFileSync(place.file('log'), 'utf8');
    const visible = [...place.leftovers().map(({ args }) => args), running.stderr, log].join('\n');
    expect(visible).not.toContain(place.token);
  });

  it('is not served from a file that others can read', async () => {
    mkdirSync(dirname(place.tokenFile), { recursive: true });
    writeFileSync(place.tokenFile, 't'.repeat(43), { mode: 0o640 });
    const { code, stderr } = await place.run(['--http', '0', ...place.configure({ lab: place.lab() })]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^trunkline: Other users can access the token file .+\n$/);
    expect(stderr).not.toContain('ttt');
  });

  it('reaches no server, and no session or other header does, in its environment, the handshake or a call', async () => {
    const seen = place.file('seen');
    const running = await serve({ servers: { witness: place.server(WITNESS, seen) } });
    const canaries = { cookie: 'a=canary-cookie', 'x-canary': 'canary-header', 'user-agent': 'canary-agent' };
    const session = { ...(await place.initialize(running)), ...canaries };
    const call = { name: 'witness__look', arguments: { marker: 'seen by the server' }, _meta: { progressToken: 1 } };
    for (const [method, params] of [
      ['tools/list', {}],
      ['tools/call', call],
    ] as const) {
      expect((await place.post(running, { jsonrpc: '2.0', id: 2, method, params }, session)).status).toBe(200);
    }
    await place.post(running, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }, session);

    const text = readFileSync(seen, 'utf8');
    for (const expected of ['"PATH"', '"initialize"', 'seen by the server']) expect(text).toContain(expected);
    for (const secret of [place.token, session['mcp-session-id'], 'canary', 'Bearer', 'uthorization']) {
      expect(text).not.toContain(secret);
    }
  });
});

// One object has all of them. `test/downstream/http` proves what each does.
describe('the limits of the configuration', () => {
  it('apply to bodies and sessions', async () => {
    const running = await serve({ gateway: { http: { maxBody: '1KiB', maxSessions: 1 } } });
    expect((await place.send(running, { body: HELLO.padEnd(1_025) })).status).toBe(413);
    expect((await place.send(running, { body: HELLO.padEnd(1_024) })).status).toBe(200);
    expect((await place.send(running, { body: HELLO })).status).toBe(503);
  });
});

/** Resolves with true if something listens there. */
function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port, timeout: 1_000 });
    const end = (isOpen: boolean) => () => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', end(true)).once('error', end(false)).once('timeout', end(false));
  });
}
