// The metrics of the built program, by all ways to read them.
import { execFile } from 'node:child_process';
import * as http from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import { CLI, GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { sharedPlace } from '../support/hub-place.js';
import { dataIn } from '../support/platform.js';

const run = promisify(execFile);

type Where = { readonly port: number } | { readonly socketPath: string };

/** Status and text of an answer; status 0 if nothing listens. */
async function get(where: Where, more: http.RequestOptions = {}): Promise<{ status: number; text: string }> {
  const request = http.request({ host: '127.0.0.1', path: '/metrics', agent: false, ...where, ...more });
  request.end();
  return await new Promise((resolve) => {
    request.once('error', () => resolve({ status: 0, text: '' }));
    request.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
  });
}

/** Value of one series, by its name and labels. */
function valueIn(text: string, series: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

function callsIn(text: string): number {
  const lines = text.split('\n').filter((line) => line.startsWith('trunkline_calls_total{'));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

const called = (tool: string, outcome: string) =>
  `trunkline_calls_total{server="lab",tool="${tool}",outcome="${outcome}"}`;

describe('the metrics of a hub', () => {
  it('count the calls of all clients, also across a restart and a reload, and are served at a local address', async () => {
    const servers = { lab: { sharing: 'all' } };
    const place = sharedPlace({ servers });
    const [one, two] = [await place.client(), await place.client()];
    const env = {
      ...process.env,
      TRUNKLINE_HUB: '',
      TRUNKLINE_HUB_DIR: place.hubs,
      ...dataIn(join(place.folder, 'data')),
    };
    const read = async () => (await run(process.execPath, [CLI, 'metrics', '--config', one.file], { env })).stdout;
    for (let times = 0; times < 3; times += 1) await Promise.all([one.call('lab__echo'), two.call('lab__echo')]);
    await one.call('no_such_tool');
    await one.call('lab__die');
    const text = await read();
    expect(valueIn(text, called('lab__echo', 'ok'))).toBe(6);
    expect(valueIn(text, called('lab__die', 'unknown'))).toBe(1);
    expect(valueIn(text, 'trunkline_sessions{front="hub",era="legacy"}')).toBe(2);
    await one.untilState('lab', 'ready');
    // The status is a tool call as well.
    const status = valueIn(
      await read(),
      'trunkline_calls_total{server="trunkline",tool="trunkline__status",outcome="ok"}',
    );
    const port = await freePort();
    one.configure(servers, { metrics: { listen: `127.0.0.1:${port}` } });
    await expect.poll(async () => (await get({ port })).status).toBe(200);
    await two.call('lab__echo');
    const { text: served } = await get({ port });
    expect(valueIn(served, called('lab__echo', 'ok'))).toBe(7);
    expect(valueIn(served, 'trunkline_server_restarts_total{server="lab",reason="failed"}')).toBe(1);
    expect(valueIn(served, 'trunkline_server_state{server="lab",state="ready"}')).toBe(1);
    expect(callsIn(served)).toBe(7 + 2 + status);
    expect((await get({ port }, { headers: { host: `rebound.example:${port}` } })).status).toBe(403);
    expect((await get({ port }, { headers: { origin: 'http://localhost:1' } })).status).toBe(403);
    expect((await get({ port }, { method: 'POST' })).status).toBe(405);
    expect((await get({ port }, { path: '/mcp' })).status).toBe(404);

    one.configure(servers, { metrics: { listen: './metrics.sock', tools: false } });
    const socketPath = join(place.folder, 'metrics.sock');
    await expect.poll(async () => (await get({ socketPath })).status).toBe(200);
    await one.call('lab__echo');
    expect(valueIn((await get({ socketPath })).text, 'trunkline_calls_total{server="lab",tool="",outcome="ok"}')).toBe(
      1,
    );
    expect((await get({ port })).status).toBe(0);
  });
});

describe('two processes with one address for their metrics', () => {
  let first: GatewayProcess;
  let second: GatewayProcess;
  let port: number;
  let options: StartOptions;
  beforeEach(async () => {
    port = await freePort();
    options = { servers: { lab: {} }, gateway: { metrics: { listen: `127.0.0.1:${port}` } } };
    first = await GatewayProcess.start(options);
  });
  afterEach(async () => {
    await first.dispose();
    await second.dispose();
  });

  it('the second one says that the address is taken, goes on, and takes it when the first one ends', async () => {
    await expect.poll(async () => (await get({ port })).status).toBe(200);
    second = await GatewayProcess.start(options);
    await second.untilStatus('names the address', ({ advice }) => String(advice).includes('another process listens'));
    expect(second.stderr).toContain(`The metrics cannot be served at 127.0.0.1:${port}`);
    await second.call('lab__echo');
    await first.end();
    await expect.poll(async () => (await get({ port })).text).toContain(called('lab__echo', 'ok'));
    await second.untilStatus('is content', ({ advice }) => !String(advice).includes('metrics'));
  });
});
