// How many tools of thirty real servers does the first list have, when nothing is cached, and how many do the same servers
// deliver in that time to a client of each? `docs/performance.md` tells how it is measured.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import './plain-node.mjs';
import { prepareServers } from '../conformance/real-servers.mjs';
import { describeMachine, table } from './page.mjs';
import { StartClient } from './start-client.mjs';
import { median, spread } from './statistics.mjs';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
/** As long as the first list waits for servers by default. */
const WAIT_MS = 3_000;
/** Of the tools that the servers themselves deliver in that time, in percent. */
const SHARE = 95;

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' } },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number above 0');

const machine = describeMachine();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
const { folder, entries, goodKeys, commands } = await prepareServers({ isShort: false });
const results = [];
for (let round = 0; round < rounds; round += 1) {
  const ways = [inTime, firstLists];
  const [first, second] = round % 2 === 0 ? ways : ways.toReversed();
  results.push({ ...(await first()), ...(await second()) });
}

/** The tools that the servers list within the time, each to a client of its own; all are started side by side. */
async function inTime() {
  const startedAt = performance.now();
  const clients = commands.map(
    ({ args, env }) => new StartClient(args, { env, cwd: folder, stderr: 'ignore', startedAt }),
  );
  let direct = 0;
  for (const client of clients) {
    client
      .initialize()
      .then(() => client.list())
      .then(({ tools, at }) => {
        if (at <= WAIT_MS) direct += tools;
      })
      // Two of the servers are broken, and the others are ended in the middle of their start.
      .catch(() => {});
  }
  await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  await Promise.all(clients.map((client) => client.close()));
  return { direct };
}

/** The tools of the first list of three runs, without Trunkline's own, and when it was there. */
async function firstLists() {
  const place = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
  try {
    symlinkSync(join(folder, 'node_modules'), join(place, 'node_modules'));
    const config = join(place, 'trunkline.yaml');
    writeFileSync(config, JSON.stringify({ servers: entries }));
    const first = await firstList(config, place, true);
    const second = await firstList(config, place, false);
    const third = await firstList(config, place, false);
    return { first, second, third };
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function firstList(config, place, isFirst) {
  const env = { XDG_DATA_HOME: join(place, 'data') };
  const client = new StartClient([CLI, 'serve', '--config', config], { env, cwd: place, stderr: 'ignore' });
  try {
    await client.initialize();
    const { at, tools } = await client.list();
    if (isFirst) await client.untilReady(goodKeys.length);
    return { at, tools: tools - 1 };
  } finally {
    await client.close();
  }
}

const shares = results.map(({ direct, first }) => (100 * first.tools) / direct);
const cell = (numbers) => {
  const { median: middle, min, max } = spread(numbers);
  return `${middle.toFixed(0)} (${min.toFixed(0)}–${max.toFixed(0)})`;
};
const row = (name, lists) => [name, cell(lists.map(({ at }) => at)), cell(lists.map(({ tools }) => tools))];
const report = [
  machine,
  `The first list of ${commands.length} real servers, of which two are broken, median (smallest–largest) of ${rounds} rounds:`,
  table(
    ['', 'ms', 'tools'],
    [
      ['direct, all side by side', `${WAIT_MS}`, cell(results.map(({ direct }) => direct))],
      row(
        'Trunkline, first run',
        results.map(({ first }) => first),
      ),
      row(
        'second run',
        results.map(({ second }) => second),
      ),
      row(
        'third run',
        results.map(({ third }) => third),
      ),
    ],
  ),
  table(
    ['Aim', 'Measured', ''],
    [
      [
        `first run: tools of the first list ÷ those that the servers deliver within 3 s ≥ ${SHARE} %`,
        `${median(shares).toFixed(0)} %`,
        median(shares) >= SHARE ? 'met' : 'not met',
      ],
    ],
  ),
].join('\n\n');
console.log(report);
