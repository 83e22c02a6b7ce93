import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import * as https from 'node:https';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import type { Message } from '../support/gateway-process.js';
import { INITIALIZE, Place } from '../support/http-place.js';
import { IS_WINDOWS } from '../support/platform.js';
import { until } from '../support/processes.js';

const STUBBORN = fileURLToPath(new URL('../fixtures/cli/ignores-the-end.mjs', import.meta.url));

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

describe('a file for TLS', () => {
  const files = () => ['--tls-cert', place.file('cert.pem'), '--tls-key', place.file('key.pem')];
  const hint = 'pass readable PEM files with --tls-cert and --tls-key';

  it.each<[string, () => unknown, RegExp]>([
    IS_WINDOWS
      ? ['a folder', () => mkdirSync(place.file('key.pem')), /it is a folder/]
      : ['a pipe that nobody writes', () => execFileSync('mkfifo', [place.file('key.pem')]), /it is a pipe/],
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
  it('comes after SIGTERM, or after `stop` on Windows, with open streams and with servers that ignore signals', async () => {
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

    if (IS_WINDOWS)
      expect(await place.run(['stop', '--config', place.file('trunkline.yaml')])).toMatchObject({ code: 0 });
    else running.process.kill('SIGTERM');
    const { code, stdout } = await running.finished;
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(place.leftovers()).toEqual([]);
    expect(await listening.text()).not.toContain('data: {');
    const { result } = (await (await call).json()) as Message;
    expect(result._meta['trunkline/failure']).toMatchObject({ reason: 'stopped', outcome: 'unknown' });
  });

  it('F314: comes after the answers to the calls in flight, by `trunkline drain`', async () => {
    const running = await place.serve({ gateway: { drain: '30s' } });
    const session = await place.initialize(running);
    const params = { name: 'lab__effect', arguments: { file: place.file('calls'), marker: 'x', delayMs: 1_500 } };
    const call = place.post(running, { jsonrpc: '2.0', id: 2, method: 'tools/call', params }, session);
    await until('the call has reached its server', () => existsSync(place.file('calls')));

    const drained = place.run(['drain', '--config', place.file('trunkline.yaml')]);
    await expect.poll(() => running.probe('/readyz')).toEqual({ status: 503, text: 'draining' });
    expect((await running.probe('/livez')).status).toBe(200);
    const { result } = (await (await call).json()) as Message;
    expect(result.isError).toBeUndefined();
    expect((await running.finished).code).toBe(0);
    expect((await drained).code).toBe(0);
    expect(place.leftovers()).toEqual([]);
  });

  it('F310: does not come with the end of stdin, and ends no session, which goes on at the next start after a kill', async () => {
    const first = await place.serve();
    first.process.stdin.end();
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
