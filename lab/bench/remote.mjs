// What Trunkline costs between a client on stdin and a server behind a URL, next to a client that uses HTTP itself. Both clients
// measure in turns.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as requestHttp } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { describeMachine, table } from './page.mjs';
import { median, quantile } from './statistics.mjs';
import './plain-node.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const ORIGIN = fileURLToPath(new URL('./remote-origin.mjs', import.meta.url));
const HELLO = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } };
const SERVERS = 20;
const HANGING = 5;

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
const rounds = Number(values.rounds);
if (!(rounds >= 1)) throw new Error('--rounds takes a whole number above 0');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
const children = new Set();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

/** Calls over HTTP, each in a POST on a connection that is kept open. */
class DirectClient {
  #agent = new Agent({ keepAlive: true });
  #url;
  #lastId = 0;

  constructor(url) {
    this.#url = url;
  }

  /** Resolves with the milliseconds until the first byte of the answer's body, and until its end. */
  call(name, args) {
    this.#lastId += 1;
    const body = messageOf(this.#lastId, name, args);
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'content-length': Buffer.byteLength(body),
    };
    return new Promise((resolve, reject) => {
      const sentAt = performance.now();
      let firstMs;
      const sent = requestHttp(this.#url, { method: 'POST', agent: this.#agent, headers }, (response) => {
        response.on('data', () => {
          firstMs ??= performance.now() - sentAt;
        });
        response.on('end', () => resolve({ firstMs, ms: performance.now() - sentAt }));
      });
      sent.on('error', reject).end(body);
    });
  }

  close() {
    this.#agent.destroy();
  }
}

/** Calls through Trunkline, which this client starts. */
class StdioClient {
  #child;
  #lastId = 0;
  #waiting = new Map();
  #head = '';

  constructor(servers, prefix) {
    const config = join(folder, `${prefix}.yaml`);
    writeFileSync(config, JSON.stringify({ servers }));
    const env = { ...process.env, HOME: folder, XDG_DATA_HOME: join(folder, prefix), TRUNKLINE_HUB: 'off' };
    this.#child = spawn(process.execPath, [CLI, '--config', config], { env, stdio: ['pipe', 'pipe', 'ignore'] });
    children.add(this.#child);
    this.#child.stdout.on('data', (chunk) => this.#read(chunk));
  }

  request(method, params) {
    this.#lastId += 1;
    return this.#send(this.#lastId, JSON.stringify({ jsonrpc: '2.0', id: this.#lastId, method, params }));
  }

  call(name, args) {
    this.#lastId += 1;
    return this.#send(this.#lastId, messageOf(this.#lastId, `s0__${name}`, args));
  }

  async open() {
    await this.request('initialize', HELLO);
    this.#child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return await this.request('tools/list', {});
  }

  async close() {
    const ended = once(this.#child, 'exit');
    this.#child.stdin.end();
    await ended;
    children.delete(this.#child);
  }

  #send(id, text) {
    return new Promise((resolve) => {
      const one = { sentAt: performance.now(), firstMs: undefined, resolve };
      this.#waiting.set(id, one);
      this.#child.stdin.write(`${text}\n`);
    });
  }

  /** Looks at the beginning of each line only, which has the id in the messages of this measurement. */
  #read(chunk) {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, from)) {
      this.#noteHead(chunk, from, end);
      this.#lineEnded(this.#head);
      this.#head = '';
      from = end + 1;
    }
    this.#noteHead(chunk, from, chunk.length);
  }

  #noteHead(chunk, from, to) {
    if (this.#head.length < 200) this.#head += chunk.toString('latin1', from, Math.min(to, from + 200));
  }

  #lineEnded(head) {
    const now = performance.now();
    const token = /"progressToken":(\d+)/.exec(head)?.[1];
    const one = this.#waiting.get(Number(token ?? /"id":(\d+)/.exec(head)?.[1]));
    if (one === undefined) return;
    one.firstMs ??= now - one.sentAt;
    if (token === undefined) one.resolve({ firstMs: one.firstMs, ms: now - one.sentAt });
  }
}

function messageOf(id, name, args) {
  const params = { name, arguments: args, _meta: { progressToken: id } };
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
}

/** Calls one after the other, or many at a time. Returns the p50 in milliseconds, or calls in a second. */
async function measure(client) {
  const one = async (name) => await client.call(name, { text: 'hello' });
  const each = async (name, count, pick) => {
    const all = [];
    for (let number = 0; number < count; number += 1) all.push(pick(await one(name)));
    return quantile(all, 0.5);
  };
  await each('echo', 500, ({ ms }) => ms);
  const callMs = await each('echo', 1_500, ({ ms }) => ms);
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: 64 }, () => each('echo', 60, ({ ms }) => ms)));
  const callsPerSecond = (64 * 60 * 1_000) / (performance.now() - startedAt);
  const firstEventMs = await each('report', 50, ({ firstMs }) => firstMs);
  const largeMs = await each('large', 7, ({ ms }) => ms);
  return { callMs, callsPerSecond, firstEventMs, largeMs };
}

/** The milliseconds from the start of Trunkline to the list of the servers that answer. */
async function timeList(origin) {
  const path = (number) => (number < SERVERS - HANGING ? 'mcp' : 'hang');
  const entries = Array.from({ length: SERVERS }, (_, number) => [`s${number}`, { url: `${origin}/${path(number)}` }]);
  const startedAt = performance.now();
  const client = new StdioClient(Object.fromEntries(entries), 'twenty');
  await client.open();
  const ms = performance.now() - startedAt;
  await client.close();
  return ms;
}

console.log(describeMachine());
const originProcess = spawn(process.execPath, [ORIGIN], { stdio: ['ignore', 'pipe', 'inherit'] });
children.add(originProcess);
const [port] = await once(originProcess.stdout, 'data');
const origin = `http://127.0.0.1:${Number(port)}`;

const direct = new DirectClient(`${origin}/mcp`);
// More calls are in flight than the usual limit lets through.
const through = new StdioClient({ s0: { url: `${origin}/mcp`, concurrency: 64 } }, 'one');
await through.open();
const measured = [];
for (let round = 0; round < rounds; round += 1) {
  const turns = round % 2 === 0 ? ['direct', 'through'] : ['through', 'direct'];
  const results = {};
  for (const turn of turns) results[turn] = await measure(turn === 'direct' ? direct : through);
  measured.push(results);
}
direct.close();
await through.close();
const firstListMs = await timeList(origin);
const secondListMs = await timeList(origin);

const of = (pick) => median(measured.map(pick));
const row = (label, pick, digits, compare, aim) => [
  label,
  of(({ direct: one }) => pick(one)).toFixed(digits),
  of(({ through: one }) => pick(one)).toFixed(digits),
  compare,
  aim,
];
const plus = (pick) => `+ ${of(({ direct: one, through: other }) => pick(other) - pick(one)).toFixed(2)} ms`;
const times = (pick) => `${of(({ direct: one, through: other }) => pick(other) / pick(one)).toFixed(2)} ×`;
const rows = [
  row(
    'Call, p50, ms',
    ({ callMs }) => callMs,
    2,
    plus(({ callMs }) => callMs),
    '+ 0.2 ms',
  ),
  row(
    '64 calls in flight, calls/s',
    (one) => one.callsPerSecond,
    0,
    times((one) => one.callsPerSecond),
    '≥ 0.8 ×',
  ),
  row(
    'First event of a stream, p50, ms',
    (one) => one.firstEventMs,
    2,
    plus((one) => one.firstEventMs),
    '+ 2 ms',
  ),
  row(
    '10 MiB result, p50, ms',
    ({ largeMs }) => largeMs,
    0,
    times(({ largeMs }) => largeMs),
    '≤ 1.3 ×',
  ),
];
const results = table(['', 'Direct', 'Through Trunkline', 'Median of the rounds', 'Aim'], rows);
const lists = table(
  [`Start to the list, ${SERVERS} servers of which ${HANGING} hang`, 'ms', 'Aim'],
  [
    ['First run', firstListMs.toFixed(0), '≤ 3500 ms'],
    ['Second run', secondListMs.toFixed(0), '≤ 200 ms'],
  ],
);
console.log(`\n${results}\n\n${lists}`);
process.exit();
