import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CallToolResultSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Message } from '../support/gateway-process.js';
import { type Headers, INITIALIZE, Place, type Running } from '../support/http-place.js';
import { until } from '../support/processes.js';

const STUBBORN = fileURLToPath(new URL('../fixtures/cli/ignores-the-end.mjs', import.meta.url));

/** One gateway for the tests that need no settings of their own and leave it as it is. */
const sharedPlace = new Place();
let shared: Running;
beforeAll(async () => {
  shared = await sharedPlace.serve({
    servers: { lab: sharedPlace.lab(), one: sharedPlace.lab(), two: sharedPlace.lab() },
    // All tests together send more requests than one token may send in a second.
    gateway: { http: { requestsPerSecond: 1_000, requestBurst: 1_000 } },
  });
});
afterAll(() => sharedPlace.dispose());

/** For tests with a gateway of their own. */
let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

describe('the official client', () => {
  it('lists and calls tools, and receives progress', async () => {
    const client = await sharedPlace.connect(shared);
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
  });

  it('is notified when the list of tools changes', async () => {
    const client = await sharedPlace.connect(shared);
    const told = new Promise((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, resolve);
    });
    await client.listTools();
    await client.callTool({ name: 'lab__change' });
    await told;
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('lab__added1');
  });

  it('gets every byte of large results, which use the same memory one after the other', async () => {
    const clients = [await sharedPlace.connect(shared), await sharedPlace.connect(shared)];
    const calls = Array.from({ length: 24 }, async (_, index) => {
      const [server, bytes] = [['one', 'two'][index % 2], [20_000, 300_000, 1_100_000, 3_000_000][index % 4] ?? 0];
      const mark = `<${index} of ${server}>`;
      const result = await clients[index % 3 === 0 ? 1 : 0]?.callTool({
        name: `${server}__big`,
        arguments: { mark, bytes },
      });
      const [{ text }] = (result?.content ?? []) as [{ text: string }];
      return text === mark.repeat(bytes / mark.length + 1).slice(0, bytes);
    });
    expect(await Promise.all(calls)).toEqual(calls.map(() => true));
  });

  it('gets its own answers while another one calls the same servers', async () => {
    const clients = [await sharedPlace.connect(shared), await sharedPlace.connect(shared)];
    const calls = Array.from({ length: 30 }, (_, call) =>
      clients.map(async (client, index) => {
        const marker = `client ${index}, call ${call}, ${randomUUID()}`;
        const name = call % 2 === 0 ? 'one__wait' : 'two__wait';
        const { content } = await client.callTool({ name, arguments: { marker, delayMs: (call * 7) % 20 } });
        return { marker, content };
      }),
    );
    for (const { marker, content } of await Promise.all(calls.flat())) {
      expect(content).toEqual([{ type: 'text', text: marker }]);
    }
  });
});

describe('a session', () => {
  it('answers each of 50 requests that all have the same id', async () => {
    const session = await sharedPlace.initialize(shared);
    await shared.untilReady();
    const markers = Array.from({ length: 50 }, () => randomUUID());
    const answers = await Promise.all(
      markers.map(async (marker, call) => {
        const params = { name: 'lab__wait', arguments: { marker, delayMs: (call * 7) % 20 } };
        const response = await sharedPlace.post(
          shared,
          { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
          session,
        );
        return (await response.json()) as Message;
      }),
    );
    expect(answers.map(({ id }) => id)).toEqual(markers.map(() => 1));
    expect(answers.map(({ result }) => result.content[0].text)).toEqual(markers);
  });
});

describe('requests without a session', () => {
  it('need the token, which is in a file of the user and printed by `trunkline token`', async () => {
    const running = await place.serve();
    const refused = await place.post(running, INITIALIZE, { authorization: undefined });
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toMatch(/^Bearer /);
    const wrong = await place.post(running, INITIALIZE, { authorization: `Bearer ${'x'.repeat(43)}` });
    expect(wrong.status).toBe(401);
    expect((await place.post(running, INITIALIZE)).status).toBe(200);

    expect(statSync(place.tokenFile).mode & 0o777).toBe(0o600);
    const printed = await place.run(['token']);
    expect(printed).toEqual({ code: 0, stdout: `${place.token}\n`, stderr: '' });
    expect(running.stderr).not.toContain(place.token);
  });

  it('are accepted with the token that `trunkline token` made before', async () => {
    const { stdout } = await place.run(['token']);
    const running = await place.serve();
    const authorization = `Bearer ${stdout.trim()}`;
    expect((await place.post(running, INITIALIZE, { authorization })).status).toBe(200);
  });

  it('need no token on loopback with --no-auth', async () => {
    const running = await place.serve({ args: ['--no-auth'] });
    expect((await place.post(running, INITIALIZE, { authorization: undefined })).status).toBe(200);
    expect(existsSync(place.tokenFile)).toBe(false);
  });

  it('are refused under another host name, and from a web page', async () => {
    const running = await place.serve({ args: ['--allowed-origin', 'https://app.example'] });
    const statusOf = (headers: Headers) => place.statusOf(running, headers);
    expect(await statusOf({})).toBe(200);
    expect(await statusOf({ host: `rebound.example:${running.port}` })).toBe(403);
    expect(await statusOf({ host: '127.0.0.1' })).toBe(403);
    expect(await statusOf({ origin: 'https://page.example' })).toBe(403);
    expect(await statusOf({ origin: 'null' })).toBe(403);
    expect(await statusOf({ origin: 'https://app.example' })).toBe(200);
  });
});

describe('the command line', () => {
  it.each([
    [['--http', '0.0.0.0:0', '--no-auth'], /0\.0\.0\.0 without authentication/],
    [['--http', '0.0.0.0:0', '--no-auth', '--allowed-host', 'a.example'], /0\.0\.0\.0 without authentication/],
    [['--http', '[::]:0', '--no-auth'], /:: without authentication/],
    [['--http', '0.0.0.0:0'], /needs a list of allowed hosts/],
    [['--http', '127.0.0.1:0', '--allowed-host', 'http://a.example'], /must be host or host:port/],
    [['--http', '127.0.0.1:0', '--allowed-origin', 'a.example'], /must be scheme:\/\/host/],
    [['--http', '127.0.0.1:0', '--tls-cert', 'a.pem'], /belong together/],
    [['--http', 'nowhere'], /has no valid port/],
    [['--no-auth'], /works only with HTTP/],
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

  it('does not come with the end of stdin when only HTTP is served', async () => {
    shared.process.stdin.end();
    const client = await sharedPlace.connect(shared);
    expect((await client.callTool({ name: 'lab__progress' })).content).toEqual([{ type: 'text', text: 'done' }]);
  });

  it('comes with the end of stdin when stdio and HTTP are served, and both are served until then', async () => {
    const running = await place.serve({ args: ['--stdio'], servers: { lab: place.lab(), mute: place.lab('mute') } });
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
