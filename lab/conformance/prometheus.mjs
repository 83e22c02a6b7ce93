// Do the metrics say what happened? Clients call real servers through the hub for ten minutes and count the outcomes
// themselves. A real Prometheus (Debian package `prometheus`) scrapes the hub. Then its counters must be those of the clients,
// `promtool check metrics` must find nothing, and every query of the dashboard must have an answer. At last, scrapes of a hub
// with 50 servers are timed. `npm run -w lab prometheus`; `--short` takes half a minute and 10 servers;
// `--scrapes` only times the scrapes. Needs no network.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CLI } from './targets.mjs';

const { values: options } = parseArgs({
  options: { short: { type: 'boolean', default: false }, scrapes: { type: 'boolean', default: false } },
});
const LOAD_MS = options.short ? 30_000 : 600_000;
const KILL_EVERY_MS = options.short ? 10_000 : 60_000;
const MANY_SERVERS = options.short ? 10 : 50;
const SCRAPE_SECONDS = 1;
const CLIENTS = 3;
const PAUSE_MS = 20;
const RATE_INTERVAL = options.short ? '20s' : '1m';
const SCRAPES = 40;

const own = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const server = (name) => ({
  command: process.execPath,
  args: [own(`node_modules/@modelcontextprotocol/${name}/dist/index.js`)],
});

if (spawnSync('promtool', ['--version'], { stdio: 'ignore' }).error !== undefined) {
  say('not run: prometheus is not installed');
  process.exit(0);
}
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tl-prom-')));
let failures = 0;
try {
  if (!options.scrapes) await compareCounters();
  await timeScrapes();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
say(failures === 0 ? 'The metrics are right.' : `${failures} checks failed.`);
process.exitCode = failures === 0 ? 0 : 1;

async function compareCounters() {
  mkdirSync(join(folder, 'files'));
  writeFileSync(join(folder, 'files', 'note.txt'), 'A note.\n');
  const files = server('server-filesystem');
  const hub = await openHub('real', {
    files: { ...files, args: [...files.args, join(folder, 'files')] },
    memory: { ...server('server-memory'), env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') } },
    everything: server('server-everything'),
  });
  const prometheus = await startPrometheus(hub.port);
  const counts = new Map();
  try {
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => hub.connect()));
    const deadline = performance.now() + LOAD_MS;
    const killer = killNowAndThen(hub, deadline);
    await Promise.all(clients.map((client) => call(client, deadline, counts)));
    await killer;
    const total = [...counts.values()].reduce((sum, each) => sum + each, 0);
    say(`${total} calls by ${CLIENTS} clients in ${LOAD_MS / 1_000} s`);
    for (const [key, count] of [...counts].sort()) say(`  ${count} ${key}`);
    await until(
      'the last scrape',
      async () => (await prometheus.query('sum(trunkline_calls_total)'))[0]?.value[1] === String(total),
    );
    check('the sum of all outcomes is the count of the clients', true);
    const series = await prometheus.query('sum by (tool, outcome) (trunkline_calls_total) > 0');
    const scraped = new Map(series.map(({ metric, value }) => [`${metric.tool} ${metric.outcome}`, Number(value[1])]));
    check('each tool and outcome has the count of the clients', isSame(counts, scraped), [...scraped].join('; '));
    const [
      {
        value: [, up],
      } = { value: [] },
    ] = await prometheus.query(`min_over_time(up[${Math.floor(LOAD_MS / 1_000)}s])`);
    check('no scrape failed', up === '1');
    const [slowest] = await prometheus.query(`max_over_time(scrape_duration_seconds[${Math.floor(LOAD_MS / 1_000)}s])`);
    const [usual] = await prometheus.query(
      `quantile_over_time(0.5, scrape_duration_seconds[${Math.floor(LOAD_MS / 1_000)}s])`,
    );
    say(`a scrape under load took ${ms(usual)}, at most ${ms(slowest)}`);
    checkText(await hub.scrape());
    await checkDashboard(prometheus);
    for (const client of clients) await client.close();
  } finally {
    prometheus.stop();
    hub.stop();
  }
}

/** Calls that end in every way, counted by tool and outcome. */
async function call(client, deadline, counts) {
  const path = join(folder, 'files', 'note.txt');
  const calls = [
    ['files__read_text_file', { path }],
    ['files__read_text_file', { path: '/etc/none' }],
    ['memory__read_graph', {}],
    ['everything__echo', { message: 'x' }],
    ['everything__trigger-long-running-operation', { duration: 0.2, steps: 1 }],
    ['trunkline__status', {}],
    ['files__no_such_tool', {}],
    ['no_such_tool', {}],
  ];
  for (let at = 0; performance.now() < deadline; at += 1) {
    const [name, args] = calls[at % calls.length];
    const isCancelled = at % 50 === 49;
    const signal = isCancelled ? AbortSignal.timeout(30) : undefined;
    const sent = isCancelled
      ? ['everything__trigger-long-running-operation', { duration: 20, steps: 1 }]
      : [name, args];
    const outcome = await outcomeOf(
      client.callTool({ name: sent[0], arguments: sent[1] }, undefined, { signal }),
      isCancelled,
    );
    const key = `${sent[0].endsWith('no_such_tool') ? 'other' : sent[0]} ${outcome}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    await sleep(PAUSE_MS);
  }
}

async function outcomeOf(calling, isCancelled) {
  try {
    const { isError, _meta } = await calling;
    return _meta?.['trunkline/failure']?.outcome ?? (isError === true ? 'tool_error' : 'ok');
  } catch (error) {
    // -32602 is Trunkline's answer about a tool that no server has.
    if (!isCancelled) return error.code === -32602 ? 'not_sent' : 'failed';
    // A call that the client cancels while its server starts again was not sent. The client cannot know, so none is cancelled then.
    return 'unknown';
  }
}

/** Kills a server that is called, but not the one whose calls are cancelled. */
async function killNowAndThen(hub, deadline) {
  while (performance.now() + KILL_EVERY_MS < deadline) {
    await sleep(KILL_EVERY_MS);
    const [pid] = hub.pidsOf('server-filesystem');
    if (pid) process.kill(pid, 'SIGKILL');
  }
}

function checkText(text) {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
  check('promtool finds nothing', status === 0 && stdout + stderr === '', stdout + stderr);
}

async function checkDashboard(prometheus) {
  const { panels } = JSON.parse(readFileSync(own('deploy/grafana/trunkline.json'), 'utf8'));
  // Rows have no queries. A hub is in no cluster.
  const all = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
  const queries = all.filter(({ expr }) => !expr.includes('trunkline_cluster_'));
  const empty = [];
  for (const { title, expr } of queries) {
    // A comparison at the end leaves out the series of servers that are well.
    const filled = expr
      .replace(/ (?:==|>) \d$/, '')
      .replaceAll('$__rate_interval', RATE_INTERVAL)
      .replaceAll(/\$(?:job|instance|server)/g, '.*');
    const found = await prometheus.query(filled).catch((error) => error);
    if (!Array.isArray(found) || found.length === 0) empty.push(`${title}: ${filled}: ${found}`);
  }
  check(`the ${queries.length} queries of the dashboard have answers`, empty.length === 0, empty.join('\n'));
}

async function timeScrapes() {
  const tools = 20;
  const tiny = {
    command: process.execPath,
    args: [own('lab/bench/tiny-server.mjs'), '--tools', String(tools - 4)],
  };
  const servers = Object.fromEntries(Array.from({ length: MANY_SERVERS }, (_, at) => [`tiny${at}`, tiny]));
  const hub = await openHub('many', servers);
  try {
    const client = await hub.connect();
    await until('all tools are listed', async () => (await client.listTools()).tools.length >= MANY_SERVERS * tools);
    const { tools: listed } = await client.listTools();
    for (const { name } of listed)
      if (!name.startsWith('trunkline__'))
        await client.callTool({ name, arguments: argumentsOf(name) }).catch(() => {});
    const durations = [];
    let text = await hub.scrape();
    const cpuBefore = processorSeconds(text);
    for (let at = 0; at < SCRAPES; at += 1) {
      const startedAt = performance.now();
      text = await hub.scrape();
      durations.push(performance.now() - startedAt);
      await sleep(100);
    }
    durations.sort((a, b) => a - b);
    const cpu = ((processorSeconds(text) - cpuBefore) / SCRAPES) * 1_000;
    const lines = text.split('\n').length;
    const [median, p95] = [0.5, 0.95].map((share) => durations[Math.floor(share * durations.length)]);
    say(`${MANY_SERVERS} servers with ${tools} tools, each called: ${lines} lines, ${text.length} bytes`);
    say(
      `a scrape takes ${median.toFixed(1)} ms (median), ${p95.toFixed(1)} ms (95 %), and ${cpu.toFixed(1)} ms of processor time`,
    );
    checkText(text);
    await client.close();
  } finally {
    hub.stop();
  }
}

function processorSeconds(text) {
  return Number(/^process_cpu_seconds_total (.+)$/m.exec(text)?.[1]);
}

function argumentsOf(name) {
  const tool = name.split('__')[1];
  return { echo: { text: '' }, produce: { kind: 'text', bytes: 10 }, sleep: { ms: 0 } }[tool] ?? { text: '' };
}

/** A hub with default settings but the address of its metrics, in a folder of its own. */
async function openHub(name, servers) {
  const place = join(folder, name);
  mkdirSync(place);
  const port = await freePort();
  const config = join(place, 'trunkline.json');
  writeFileSync(config, JSON.stringify({ servers, gateway: { metrics: { listen: `127.0.0.1:${port}` } } }));
  const env = {
    ...process.env,
    TRUNKLINE_HUB: 'auto',
    TRUNKLINE_HUB_DIR: join(place, 'hubs'),
    XDG_DATA_HOME: join(place, 'data'),
  };
  const scrape = async () => await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return {
    port,
    scrape,
    connect: async () => {
      const client = new Client({ name: 'prometheus-check', version: '1.0.0' });
      await client.connect(
        new StdioClientTransport({ command: process.execPath, args: [CLI, '--config', config], env }),
      );
      await until('the servers are ready', async () => {
        const text = await scrape().catch(() => '');
        const ready = text.match(/^trunkline_server_state\{.*state="ready"\} 1$/gm) ?? [];
        return ready.length === Object.keys(servers).length;
      });
      return client;
    },
    pidsOf: (program) => {
      const listed = spawnSync(process.execPath, [CLI, 'ps', '--json', '--config', config], {
        env,
        encoding: 'utf8',
      }).stdout;
      return JSON.parse(listed).hub.servers.flatMap(({ server: key, pid }) =>
        program.endsWith(key === 'files' ? 'filesystem' : key) ? [pid] : [],
      );
    },
    stop: () => execFileSync(process.execPath, [CLI, 'stop', '--config', config], { env, stdio: 'ignore' }),
  };
}

async function startPrometheus(target) {
  const port = await freePort();
  const file = join(folder, 'prometheus.yml');
  const every = `${SCRAPE_SECONDS}s`;
  writeFileSync(
    file,
    `global: { scrape_interval: ${every}, scrape_timeout: ${every} }
scrape_configs: [{ job_name: trunkline, static_configs: [{ targets: ['127.0.0.1:${target}'] }] }]
`,
  );
  const flags = [
    `--config.file=${file}`,
    `--storage.tsdb.path=${join(folder, 'tsdb')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn('prometheus', [...flags, '--log.level=error'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const url = `http://127.0.0.1:${port}`;
  await until('Prometheus is ready', async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok === true);
  return {
    query: async (query) => {
      const answer = await (await fetch(`${url}/api/v1/query?${new URLSearchParams({ query })}`)).json();
      if (answer.status !== 'success') throw new Error(answer.error);
      return answer.data.result;
    },
    stop: () => child.kill('SIGTERM'),
  };
}

async function freePort() {
  const listening = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => listening.once('listening', resolve));
  const { port } = listening.address();
  await new Promise((resolve) => listening.close(resolve));
  return port;
}

async function until(what, isSo) {
  const deadline = performance.now() + 60_000;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain: ${what}`);
    await sleep(100);
  }
}

function isSame(some, others) {
  return some.size === others.size && [...some].every(([key, value]) => others.get(key) === value);
}

function ms(sample) {
  return sample === undefined ? '?' : `${(Number(sample.value[1]) * 1_000).toFixed(1)} ms`;
}

function check(what, isSo, details = '') {
  if (!isSo) failures += 1;
  say(`${isSo ? 'ok' : 'NOT OK'}: ${what}${isSo || details === '' ? '' : `\n${details}`}`);
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
