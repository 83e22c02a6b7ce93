// Figures of the page of `trunkline web`, in a real browser: its size, its speed, and its cost for the hub. Linux only.
// `--only size,first` takes some of the parts, `--calls 10000` makes fewer calls.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launchBrowser } from '../../scripts/chromium.mjs';
import { cpuOf, HubPlace } from './hub-place.mjs';
import { inRounds } from './measure.mjs';
import { describeMachine, table } from './page.mjs';
import { median, quantile, ratios } from './statistics.mjs';
import { tinyServer } from './ways.mjs';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const PARTS = { size, url, first, event, idle, throughput, heap, closed };
const ROUNDS = 5;
const IN_FLIGHT = 64;
const OVERDUE_MS = 60_000;

const { values } = parseArgs({ options: { only: { type: 'string' }, calls: { type: 'string', default: '100000' } } });
const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const browser = await launchBrowser(['--js-flags=--expose-gc']);
console.log(describeMachine());
const rows = [];
/** Ends what a part has opened, also if it fails, the latest first. */
const ends = [];
try {
  for (const name of values.only?.split(',') ?? Object.keys(PARTS)) {
    try {
      rows.push(...(await PARTS[name]()));
    } finally {
      for (const context of browser.contexts()) await context.close();
      for (const end of ends.splice(0).reverse()) await end();
    }
  }
} finally {
  await browser.close();
}
// Missed ones first.
rows.sort((one, other) => Number(isMet(one)) - Number(isMet(other)));
const cells = rows.map((row) => [
  row.name,
  shown(row.value),
  row.aim === undefined ? '' : `${row.atLeast ? '≥' : '≤'} ${row.aim}`,
  row.aim === undefined ? '' : isMet(row) ? 'met' : 'not met',
]);
console.log(`\n${table(['Figure', 'Measured', 'Aim', ''], cells)}`);

function isMet({ value, aim, atLeast }) {
  return aim === undefined || (atLeast ? value >= aim : value <= aim);
}

function shown(value) {
  return typeof value === 'number' ? String(Math.round(value * 100) / 100) : value;
}

/** A hub with a client and `trunkline web`. `env` is that of the client, and of the hub that it starts. */
async function open({ servers = 1, tools = 0, env = {} } = {}) {
  const entries = Array.from({ length: servers }, (_, at) => [
    `s${at}`,
    tools === 0 ? tinyServer() : tinyServer('--tools', String(tools - 4)),
  ]);
  const place = new HubPlace(folder, Object.fromEntries(entries));
  Object.assign(place.env, env);
  ends.push(() => place.end());
  const client = place.open();
  ends.push(() => client.close());
  await client.initialize();
  await client.open(servers * (tools || 4));
  const web = await openWeb(place);
  return {
    place,
    client,
    web,
    echo: client.toolNamed('echo', 's0'),
    hub: place.processes().find(({ kind }) => kind === 'hub').pid,
    page: () => pageOf(web),
  };
}

/** Starts `trunkline web`. `ms` is the time until its URL is printed. */
async function openWeb({ env, config }) {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [join(DIST, 'cli.js'), 'web', '--no-open', '-q', '--config', config], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  ends.push(() => child.kill('SIGTERM'));
  let text = '';
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (text.includes('\n')) break;
  }
  return { child, url: text.trim(), ms: performance.now() - startedAt };
}

async function pageOf({ url: address }) {
  const page = await (await browser.newContext()).newPage();
  await page.goto(address);
  await page.locator('main h1').waitFor();
  return page;
}

async function show(page, part) {
  await page.evaluate(`location.hash = '#/${part}'`);
}

async function showCalls(page) {
  await show(page, 'calls');
  await page.getByText(/No call yet|calls? since/).waitFor();
}

/** Bytes and number of what a browser loads, and what the package grows by. */
async function size() {
  const opened = await open();
  const requests = [];
  const context = await browser.newContext();
  const page = await context.newPage();
  page.on('response', (answer) => requests.push(answer));
  await page.goto(opened.web.url);
  await page.locator('main h1').waitFor();
  const files = requests.filter((answer) => !/\/(session|stream|findings)/.test(answer.url()));
  const sizes = await Promise.all(files.map(async (answer) => (await answer.request().sizes()).responseBodySize));
  const own = readdirSync(DIST).filter((name) => /^(web|hub-source|page-commands|followed-calls)\.js$/.test(name));
  const added = [...own, ...readdirSync(join(DIST, 'page')).map((name) => join('page', name))];
  return [
    { name: 'all files of the page, compressed, kB', value: sum(sizes) / 1e3, aim: 60 },
    { name: 'requests for them', value: files.length, aim: 3 },
    {
      name: `dist/page and ${own.join(', ')}, kB`,
      value: sum(added.map((name) => statSync(join(DIST, name)).size)) / 1e3,
      aim: 300,
    },
  ];
}

async function url() {
  const opened = await open();
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const web = await openWeb(opened.place);
    times.push(web.ms);
  }
  return [{ name: `\`trunkline web\` to its URL, ms, median of ${ROUNDS}`, value: median(times), aim: 250 }];
}

/** From the opening of the address to the first server and the first count of tools in the document. */
async function first() {
  const opened = await open({ servers: 20, tools: 25 });
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const web = await openWeb(opened.place);
    const page = await (await browser.newContext()).newPage();
    await page.addInitScript(`new MutationObserver(() => {
      if (self.first === undefined && document.querySelector('nav')?.innerText.includes('500')) self.first = performance.now();
    }).observe(document, { childList: true, subtree: true, characterData: true })`);
    await page.goto(web.url);
    times.push(await until(page, 'self.first'));
    await page.context().close();
  }
  return [{ name: `first data of 20 servers with 500 tools, ms, median of ${ROUNDS}`, value: median(times), aim: 400 }];
}

/** From the answer at the client to the changed document. */
async function event() {
  const opened = await open();
  const page = await opened.page();
  await showCalls(page);
  await page.evaluate(`{
    self.seen = [];
    new MutationObserver(() => {
      const count = Number(/([\\d,]+)\\s+calls? since/.exec(document.querySelector('main').textContent)?.[1].replaceAll(',', '') ?? 0);
      while (self.seen.length < count) self.seen.push(Date.now());
    }).observe(document.querySelector('main'), { childList: true, subtree: true, characterData: true });
  }`);
  const answered = [];
  for (let call = 0; call < 100; call += 1) {
    await opened.client.echo(opened.echo, { count: 1, inFlight: 1 });
    answered.push(Date.now());
    // In no step with the frames of the stream.
    await wait(40 + ((call * 37) % 120));
  }
  await until(page, 'self.seen.length >= 100');
  const seen = await page.evaluate('self.seen');
  const delays = answered.map((at, index) => seen[index] - at);
  return [
    { name: 'event to document, ms, median of 100 calls', value: median(delays) },
    { name: 'event to document, ms, p95', value: quantile(delays, 0.95), aim: 250 },
  ];
}

/** Processor time of hub and `trunkline web` in 30 seconds without a call. */
async function idle() {
  const opened = await open();
  const cpu = () => ({ hub: cpuOf(opened.hub), web: cpuOf(opened.web.child.pid) });
  const share = async () => {
    const before = cpu();
    const startedAt = performance.now();
    await wait(30_000);
    const after = cpu();
    const perCent = (name) => ((after[name] - before[name]) / 1e3 / (performance.now() - startedAt)) * 100;
    return { hub: perCent('hub'), web: perCent('web') };
  };
  await wait(2_000);
  const without = await share();
  const page = await opened.page();
  await show(page, 'servers');
  await page.getByRole('row').nth(1).waitFor();
  await wait(2_000);
  const withPage = await share();
  return [
    { name: 'idle for 30 s, hub and `trunkline web`, % of a core', value: withPage.hub + withPage.web, aim: 0.3 },
    { name: 'of it the hub; the hub without a page', value: `${shown(withPage.hub)}; ${shown(without.hub)}` },
  ];
}

/**
 * Calls a second, and processor time of the hub for a call: with the list of calls shown, with its stream read by a program that draws
 * nothing, and with neither, in turns. A browser that draws takes processor time that the calls lack on a machine with few.
 */
async function throughput() {
  const opened = await open();
  const count = Number(values.calls);
  const page = await opened.page();
  const reader = await readerOf(await openWeb(opened.place));
  const ways = [
    {
      name: 'shown',
      begin: async () => {
        await page.goto(`${new URL(opened.web.url).origin}/#/calls`);
        await page.getByText(/No call yet|calls? since/).waitFor();
      },
      end: () => page.goto('about:blank'),
    },
    { name: 'read', begin: reader.begin, end: reader.end },
    { name: 'neither', begin: () => {}, end: () => {} },
  ];
  await page.goto('about:blank');
  const results = await inRounds(ways, ROUNDS, 1, async ({ begin, end }) => {
    await begin();
    const before = cpuOf(opened.hub);
    const { elapsed } = await opened.client.echo(opened.echo, { count, inFlight: IN_FLIGHT });
    const cpu = (cpuOf(opened.hub) - before) / count;
    await end();
    await wait(300);
    return { rate: (count / elapsed) * 1e3, cpu };
  });
  const change = (name, measure) => (median(ratios(results, name, measure, 'neither')) - 1) * 100;
  const of = (measure) =>
    ways.map(({ name }) => shown(median(results.get(name).map((each) => each[measure])))).join('; ');
  return [
    {
      name: `throughput with ${IN_FLIGHT} in flight, list of calls shown against no page, %, median of ${ROUNDS} rounds`,
      value: change('shown', 'rate'),
      aim: -3,
      atLeast: true,
    },
    { name: 'the same, its stream read without a browser', value: change('read', 'rate'), aim: -3, atLeast: true },
    { name: 'calls a second: shown; read; neither', value: of('rate') },
    { name: 'µs of the hub for a call: shown; read; neither', value: of('cpu') },
  ];
}

/** A program in place of the page: reads its stream, and does nothing with it. */
async function readerOf(web) {
  const { origin, hash } = new URL(web.url);
  const answer = await fetch(`${origin}/session`, {
    method: 'POST',
    headers: { Origin: origin, 'Content-Type': 'application/json' },
    body: JSON.stringify({ code: hash.slice(1) }),
  });
  const [cookie = ''] = answer.headers.getSetCookie();
  const headers = { Origin: origin, Cookie: cookie.split(';')[0], 'X-Trunkline-Key': await answer.text() };
  let stop;
  return {
    begin: async () => {
      stop = new AbortController();
      const { ok, body } = await fetch(`${origin}/stream`, { headers, signal: stop.signal });
      if (!ok) throw new Error('The stream is refused');
      void body.pipeTo(new WritableStream()).catch(() => {});
      await wait(300);
    },
    end: () => stop.abort(),
  };
}

async function heap() {
  const opened = await open();
  const page = await opened.page();
  await showCalls(page);
  const count = Number(values.calls);
  await opened.client.echo(opened.echo, { count, inFlight: IN_FLIGHT });
  await until(
    page,
    `[...document.querySelector('main').textContent.matchAll(/([\\d,]+)(?=\\s+calls since| more, not shown)/g)].reduce((sum, [each]) => sum + Number(each.replaceAll(',', '')), 0) >= ${count}`,
  );
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return [{ name: `heap of the tab after ${count} calls, MB`, value: usedSize / 1e6, aim: 40 }];
}

/** Active resources of the hub before a page was open and after it, as Node lists them on a signal. */
async function closed() {
  const probe = join(folder, 'probe.cjs');
  const answers = join(folder, 'resources');
  writeFileSync(
    probe,
    `if (process.argv.includes('--place')) process.on('SIGUSR2', () => {
      const listeners = process.eventNames().map((name) => [String(name), process.listenerCount(name)]);
      require('node:fs').writeFileSync(${JSON.stringify(answers)}, JSON.stringify([process.getActiveResourcesInfo().sort(), listeners]));
    });`,
  );
  const opened = await open({ env: { NODE_OPTIONS: `--require=${probe}` } });
  const ask = async () => {
    rmSync(answers, { force: true });
    process.kill(opened.hub, 'SIGUSR2');
    for (;;) {
      await wait(20);
      try {
        return JSON.stringify(JSON.parse(readFileSync(answers, 'utf8')));
      } catch {
        // It is being written.
      }
    }
  };
  await wait(3_000);
  const before = await ask();
  const page = await opened.page();
  await showCalls(page);
  await opened.client.echo(opened.echo, { count: 100, inFlight: 4 });
  await show(page, 'servers/s0');
  await wait(1_000);
  const during = await ask();
  await page.context().close();
  // The hub is followed for some seconds more, because the page may be loaded again.
  await wait(8_000);
  const after = await ask();
  return [
    {
      name: 'active resources and listeners of the hub are the same after a page was open (0 is yes)',
      value: before === after ? 0 : 1,
      aim: 0,
    },
    {
      name: 'resources before; during; after',
      value: [before, during, after].map((each) => JSON.parse(each)[0].length).join('; '),
    },
    ...(before === after
      ? []
      : [
          { name: 'before', value: before },
          { name: 'after', value: after },
        ]),
  ];
}

/** The value of an expression in the page, once it is true. Playwright's own wait would need `eval`, which the page forbids. */
async function until(page, expression) {
  const overdueAt = performance.now() + OVERDUE_MS;
  for (;;) {
    const value = await page.evaluate(expression);
    if (value) return value;
    if (performance.now() > overdueAt) throw new Error(`Waited in vain: ${expression}`);
    await wait(20);
  }
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}
