// Gateways of a cluster as processes, with a real Redis: what only the built CLI shows.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import type { Message } from '../support/gateway-process.js';
import type { Running } from '../support/http-place.js';
import { ProcessCluster } from '../support/process-cluster.js';
import { processesWith, until } from '../support/processes.js';

const HOOKS = new URL('../fixtures/modules/log-modules.mjs', import.meta.url);

let place: ProcessCluster;

beforeEach(async () => {
  place = await ProcessCluster.open();
});

afterEach(async () => {
  await place.dispose();
});

const gateway = () => place.gateway({ lab: place.lab() });

async function call(at: Running, session: object, name: string, args: object): Promise<Message> {
  const params = { name: `lab__${name}`, arguments: args };
  const answer = await place.post(at, { jsonrpc: '2.0', id: 7, method: 'tools/call', params }, { ...session });
  return ((await answer.json()) as Message).result;
}

/** The processes of the server that a gateway has started. */
const serversOf = ({ process: { pid } }: Running) =>
  processesWith(place.folder).filter(({ args, parent }) => args.includes('lab.mjs') && parent === pid);

/** Starts a call that does not end. Resolves when it has taken effect. */
async function callWithEffect(at: Running, session: object) {
  const file = place.file('effects');
  const answer = call(at, session, 'effect', { file, marker: 'once', delayMs: 600_000 });
  await until('the call has an effect', () => existsSync(file));
  return { answer, effects: () => readFileSync(file, 'utf8') };
}

describe('a session of a cluster', () => {
  it('F366: goes on elsewhere while its gateway is stopped, and its process there ends when the gateway continues', async () => {
    const [first, second] = [await gateway(), await gateway()];
    const session = await place.initialize(first);
    await expect.poll(async () => (await call(second, session, 'echo', {})).isError).toBeUndefined();
    const { answer, effects } = await callWithEffect(second, session);
    const before = serversOf(first).map(({ pid }) => pid);
    first.process.kill('SIGSTOP');
    expect((await answer)._meta['trunkline/failure']).toMatchObject({ code: 'TL-CALL-INSTANCE-LOST' });
    expect((await call(second, session, 'echo', {})).isError).toBeUndefined();
    first.process.kill('SIGCONT');
    expect((await call(first, session, 'echo', {})).isError).toBeUndefined();
    await until('a process of the first gateway has ended', () => {
      const left = serversOf(first).map(({ pid }) => pid);
      return before.some((pid) => !left.includes(pid));
    });
    expect(effects()).toBe('once\n');
  });

  it('F362: goes on elsewhere after its gateway was killed, and no call is executed twice', async () => {
    const [first, second] = [await gateway(), await gateway()];
    const session = await place.initialize(first);
    await expect.poll(async () => (await call(second, session, 'echo', {})).isError).toBeUndefined();
    const { answer, effects } = await callWithEffect(second, session);
    first.process.kill('SIGKILL');
    expect((await answer)._meta['trunkline/failure']).toMatchObject({ code: 'TL-CALL-INSTANCE-LOST' });
    await first.finished;
    expect((await call(second, session, 'echo', {})).isError).toBeUndefined();
    expect(effects()).toBe('once\n');
    const response = await fetch(new URL('/metrics', second.url), { headers: place.headers() });
    const metrics = await response.text();
    expect(metrics).toContain('trunkline_cluster_store_up 1\n');
    expect(metrics).toContain('trunkline_cluster_homes 1\n');
    expect(metrics).toContain('trunkline_cluster_hops_total{direction="out",outcome="lost"} 1\n');
  });
});

describe('a call that waits for input', () => {
  it('goes on at its gateway when another one gets the input', async () => {
    const [first, second] = [await gateway(), await gateway()];
    const send = async (at: Running, more: object = {}): Promise<Message> => {
      const elicitation = { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } };
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
      };
      const args = { method: 'elicitation/create', params: elicitation };
      const params = { name: 'lab__ask', arguments: args, _meta, ...more };
      const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'lab__ask' };
      const answer = await place.post(at, { jsonrpc: '2.0', id: 7, method: 'tools/call', params }, headers);
      return ((await answer.json()) as Message).result;
    };
    const session = await place.initialize(first);
    await expect.poll(async () => (await call(second, session, 'echo', {})).isError).toBeUndefined();
    const asked = await send(first);
    expect(asked.resultType).toBe('input_required');
    const [key = ''] = Object.keys(asked.inputRequests);
    const input = { inputResponses: { [key]: { action: 'accept', content: {} } }, requestState: asked.requestState };
    expect((await send(second, input)).content[0].text).toContain('"action":"accept"');
  });
});

describe('the code of a cluster', () => {
  const modulesLoaded = (log: string) => {
    const files = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('file:'));
    const texts = files.filter((url) => url.includes('/dist/')).map((url) => readFileSync(fileURLToPath(url), 'utf8'));
    return texts.flatMap((text) =>
      [...text.matchAll(/^\/\/(?:#region)? (src\/extras\/cluster\/\S+)$/gm)].map(([, file]) => file),
    );
  };

  it.each([
    ['is loaded with', true],
    ['is not loaded without', false],
  ])('%s `gateway.cluster`', async (_, isSet) => {
    const config = place.configOf({ lab: place.lab() }, await freePort(), isSet ? {} : { cluster: undefined });
    const log = place.file('modules.log');
    const env = { NODE_OPTIONS: `--import ${HOOKS}`, MODULE_LOG: log };
    const running = place.start(['serve', '--config', config, '--http', '127.0.0.1:0'], undefined, env);
    await running.untilListening();
    await place.initialize(running);
    expect(modulesLoaded(log).includes('src/extras/cluster/cluster-member.ts')).toBe(isSet);
    if (!isSet) expect(modulesLoaded(log)).toEqual([]);
  });
});

describe('a peer port', () => {
  it('that another program uses is named at the start', async () => {
    const port = await freePort();
    const other = createServer().listen(port, '127.0.0.1');
    try {
      const config = place.configOf({ lab: place.lab() }, port, {
        cluster: { store: place.redis.url, advertise: `127.0.0.1:${port}`, listen: `127.0.0.1:${port}` },
      });
      const { code, stderr } = await place.run(['serve', '--config', config, '--http', '127.0.0.1:0']);
      expect(code).toBe(2);
      expect(stderr).toContain(
        `cannot listen on 127.0.0.1:${port} for the other gateways: another program already uses`,
      );
      expect(stderr).toContain('gateway.cluster.listen');
    } finally {
      other.close();
    }
  });

  it('is another one than the port for clients', async () => {
    const port = await freePort();
    const { code, stderr } = await place.run([
      'serve',
      '--config',
      place.configOf({ lab: place.lab() }, port),
      '--http',
      `127.0.0.1:${port}`,
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain(`cannot listen on 127.0.0.1:${port}: it is the port for the other gateways, too`);
  });
});
