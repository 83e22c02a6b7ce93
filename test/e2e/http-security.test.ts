// The protections that show in a process only: its files, its command line, its servers and its listening sockets.
// `test/downstream/http` has all others.
import { readFileSync, statSync } from 'node:fs';
import * as net from 'node:net';
import { networkInterfaces } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayFolders } from '../../src/hub/hub-folder.js';
import { findGateways } from '../../src/state/gateway-file.js';
import type { Message } from '../support/gateway-process.js';
import { INITIALIZE, Place, type Running } from '../support/http-place.js';

const WITNESS = fileURLToPath(new URL('../fixtures/servers/witness.mjs', import.meta.url));
const HELLO = JSON.stringify(INITIALIZE);

/** One gateway for all tests, with its only session. */
const place = new Place();
let running: Running;
let session: { 'mcp-session-id': string };
beforeAll(async () => {
  const servers = { witness: place.server(WITNESS, place.file('seen')) };
  const gateway = { http: { maxBody: '1KiB', maxSessions: 1 } };
  const args = ['-v', '--log-file', place.file('log')];
  running = await place.serve({ servers, gateway, address: ['--http', '0'], args });
  session = await place.initialize(running);
});
afterAll(() => place.dispose());

describe('a request under a name that is not allowed', () => {
  it('F192: is counted in the status and told by the doctor', async () => {
    for (const host of ['evil.test', 'gateway.test:7411']) expect(await place.statusOf(running, { host })).toBe(403);
    const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'trunkline__status' } };
    const { result } = (await (await place.post(running, call, session)).json()) as Message;
    const named = { header: 'Host', count: 2, last: 'gateway.test:7411', code: 'TL-HTTP-HOST-REFUSED' };
    expect(result.structuredContent).toMatchObject({ refusedNames: [named] });
    const known = async () => await findGateways(gatewayFolders(place.environment.TRUNKLINE_HUB_DIR));
    const names = async () => (await known()).flatMap(({ refused }) => refused.map(({ last }) => last));
    await expect.poll(names).toEqual(['gateway.test:7411']);
    const args = ['doctor', '--no-start', '--offline', '--json', '--config', place.file('trunkline.yaml')];
    const findings = JSON.parse((await place.run(args)).stdout).findings as { code: string }[];
    const sentence = expect.stringContaining(`Trunkline ${running.process.pid} `);
    expect(findings.filter(({ code }) => code.startsWith('TL-HTTP'))).toMatchObject([{ code: named.code, sentence }]);
  });
});

describe('the port', () => {
  it('is open on loopback alone', async () => {
    const others = Object.values(networkInterfaces()).flatMap((addresses = []) =>
      addresses.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address),
    );
    expect(await connects('127.0.0.1', running.port)).toBe(true);
    // A socket that listens on 0.0.0.0 listens on all of 127.0.0.0/8, too.
    for (const address of ['127.0.0.2', ...others]) expect(await connects(address, running.port)).toBe(false);
  });

  // One object has all limits. `test/downstream/http` proves what each does.
  it('has the limits of the configuration for bodies and sessions', async () => {
    expect((await place.send(running, { body: HELLO.padEnd(1_025) })).status).toBe(413);
    expect((await place.send(running, { body: HELLO.padEnd(1_024) })).status).toBe(503);
  });
});

describe('the token', () => {
  it('is printed by `trunkline token`, and stands in no list of processes and no log', async () => {
    expect((await place.run(['token'])).stdout).toBe(`${place.token}\n`);
    expect(await place.statusOf(running, { authorization: `Bearer ${place.token}x` })).toBe(401);
    expect(statSync(place.tokenFile).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(place.tokenFile)).mode & 0o777).toBe(0o700);
    expect(place.leftovers().length).toBeGreaterThan(0);
    const log = readFileSync(place.file('log'), 'utf8');
    const visible = [...place.leftovers().map(({ args }) => args), running.stderr, log].join('\n');
    expect(visible).not.toContain(place.token);
  });

  it('reaches no server, and no session or other header does, in its environment, the handshake or a call', async () => {
    const canaries = { cookie: 'a=canary-cookie', 'x-canary': 'canary-header', 'user-agent': 'canary-agent' };
    const headers = { ...session, ...canaries };
    const call = { name: 'witness__look', arguments: { marker: 'seen by the server' }, _meta: { progressToken: 1 } };
    for (const [method, params] of [
      ['tools/list', {}],
      ['tools/call', call],
    ] as const) {
      expect((await place.post(running, { jsonrpc: '2.0', id: 2, method, params }, headers)).status).toBe(200);
    }
    await place.post(running, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } }, headers);

    const text = readFileSync(place.file('seen'), 'utf8');
    for (const expected of ['"PATH"', '"initialize"', 'seen by the server']) expect(text).toContain(expected);
    for (const secret of [place.token, session['mcp-session-id'], 'canary', 'Bearer', 'uthorization']) {
      expect(text).not.toContain(secret);
    }
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
