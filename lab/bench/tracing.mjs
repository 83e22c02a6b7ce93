// What traces cost: the same calls without traces, with 1 % of the calls traced, and with all of them, in turns.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measured, WARM_UP_ROUNDS } from './calls.mjs';
import { inRounds } from './measure.mjs';
import { describeMachine, table } from './page.mjs';
import './plain-node.mjs';
import { median, quantile, shownRatio } from './statistics.mjs';
import { buildsWith, IN_FLIGHT, OpenWay, TRUNKLINE, tinyServer } from './ways.mjs';

const ONE_PERCENT = '1 % traced';
const ALL = 'all traced';
/** Enough calls that the limit of spans a second counts, and not the burst before it. */
const IN_FLIGHT_FACTOR = 50;

if (process.argv[2] === 'collector') collect();
else await report();

/** Takes requests as a collector of OpenTelemetry, and reads nothing of them. */
function collect() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end('{}'));
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('disconnect', () => process.exit());
}

async function report() {
  const options = { rounds: { type: 'string', default: '12' }, calls: { type: 'string', default: '2000' } };
  const { values } = parseArgs({ options: { ...options, against: { type: 'string' } } });
  const [rounds, calls] = [Number(values.rounds), Number(values.calls)];
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  process.env.XDG_DATA_HOME = folder;
  const collector = fork(fileURLToPath(import.meta.url), ['collector'], { execArgv: [] });
  const [port] = await once(collector, 'message');
  const tracing = { endpoint: `http://127.0.0.1:${port}` };
  const [own, ...others] = buildsWith(values.against);
  const ways = [
    own,
    ...others,
    { ...own, name: ONE_PERCENT, settings: { tracing: { ...tracing, sample: 0.01 } } },
    { ...own, name: ALL, settings: { tracing: { ...tracing, sample: 1 } } },
  ];
  const machine = describeMachine();
  const opened = [];
  try {
    for (const way of ways) opened.push(await OpenWay.open(way, folder, { tiny: tinyServer() }));
    const results = await inRounds(ways, rounds, WARM_UP_ROUNDS, async (_, index) => {
      const [way, target] = [opened[index], opened[index].to('tiny', 'echo')];
      const alone = await measured(way, target, { count: calls, inFlight: 1 });
      const count = calls * IN_FLIGHT_FACTOR;
      const apart = await measured(way, target, { count, inFlight: IN_FLIGHT, isApart: true });
      return {
        p50: quantile(alone.durations, 0.5) * 1000,
        aloneCpu: alone.cpu,
        aloneCalls: (calls / alone.elapsed) * 1000,
        callsPerSecond: (count / apart.elapsed) * 1000,
        cpu: apart.cpu,
      };
    });
    console.log(
      `${machine}\n\n${rounds} rounds of ${calls} calls alone, and of ${calls * IN_FLIGHT_FACTOR} calls, ${IN_FLIGHT} in flight:\n`,
    );
    console.log(tableOf(results));
  } finally {
    await Promise.all(opened.map((way) => way.close()));
    collector.disconnect();
  }
}

function tableOf(results) {
  const measures = ['p50', 'aloneCalls', 'aloneCpu', 'callsPerSecond', 'cpu'];
  const head = ['', 'p50, µs', 'one at a time: calls/s', 'CPU, µs', '64 in flight: calls/s', 'CPU, µs'];
  const shown = (rounds, measure) => median(rounds.map((ofRound) => ofRound[measure]));
  const rows = [...results].map(([name, rounds]) => [
    name === TRUNKLINE ? 'without traces' : name,
    ...measures.map((measure) => {
      const digits = measure === 'cpu' || measure === 'aloneCpu' ? 1 : 0;
      return `${shown(rounds, measure).toFixed(digits)} · ${shownRatio(results, name, measure, TRUNKLINE)}`;
    }),
  ]);
  return table(head, rows);
}
