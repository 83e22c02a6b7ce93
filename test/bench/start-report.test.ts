import { expect, it } from 'vitest';
import { COUNTS, PARTIAL } from '../../lab/bench/start-cases.mjs';
import { buildsReport, startReport } from '../../lab/bench/start-report.mjs';

const start = (list: number) => ({ initialize: 20, list, call: list + 5, atOnce: list + 1 });

/** Two rounds: in the second the machine is busy, for the direct client as for Trunkline. */
function resultsOf({ first, second, share = 0.75 }: { first: number; second: number; share?: number }) {
  const compared = [100, 1_000].map((direct) => ({
    direct: start(direct),
    first: start(direct + first),
    second: start(direct + second),
  }));
  const listed = { first: { list: 3_000, share }, second: { list: 70, share: share / 0.75 } };
  return {
    compared: new Map(COUNTS.map((count) => [count, compared])),
    partial: new Map(PARTIAL.map(({ name }) => [name, [listed]])),
    manyTools: [{ list: 700, all: 800, peak: 90 }],
    idleMemory: [{ peak: 61 }],
  };
}

const report = (times: { first: number; second: number; share?: number }) =>
  startReport(resultsOf(times), 2).join('\n\n');

it('the aims of a start compare Trunkline with the direct client of the same round', () => {
  const met = report({ first: 150, second: 75 });
  expect(met).toContain('| first run, 1 server: `tools/list` ≤ direct + 150 ms | + 150 ms | met |');
  expect(met).toContain('| second run, 20 servers: `tools/list` ≤ direct + 75 ms | + 75 ms | met |');
  const missed = report({ first: 251, second: 76 });
  expect(missed).toContain('| first run, 20 servers: `tools/list` ≤ direct + 250 ms | + 251 ms | not met |');
  expect(missed).toContain('| second run, 20 servers: `tools/list` ≤ direct + 75 ms | + 76 ms | not met |');
});

it('the report of a start shows which share of the tools the first list had', () => {
  const text = report({ first: 0, second: 0 });
  expect(text).toContain('| 15 servers, and 5 that take 6 s | 3000 (3000–3000) | 75 % | 70 (70–70) | 100 % |');
  expect(text).toContain('| first run, 5 servers, idle: peak memory ≤ 60 MiB | 61 MiB | not met |');
});

it('the aim for the first list of the first run counts only servers that can be there in time', () => {
  const met = report({ first: 0, second: 0 });
  expect(met).toContain(
    '| first run, 15 servers, and 5 that take 6 s: share of the tools that are there within 3 s ≥ 95 % | 100 % | met |',
  );
  expect(met).toContain('| second run, 15 servers, and 5 that take 6 s: share of all tools ≥ 100 % | 100 % | met |');
  const missed = report({ first: 0, second: 0, share: 0.7 });
  expect(missed).toContain(
    '| first run, 15 servers, and 5 that take 6 s: share of the tools that are there within 3 s ≥ 95 % | 93 % | not met |',
  );
  expect(missed).toContain(
    '| second run, 15 servers, and 5 that take 6 s: share of all tools ≥ 100 % | 93 % | not met |',
  );
});

it('the report of two builds divides the times of a round by those of the other build in that round', () => {
  const [, table] = buildsReport(resultsOf({ first: 100, second: 0 }), resultsOf({ first: 300, second: 0 }));
  expect(table).toContain('| 5 servers: `tools/list` | 0.67 (0.50–0.85) | 1.00 (1.00–1.00) |');
});

it('the report compares `initialize` with a Node that does nothing', () => {
  expect(report({ first: 0, second: 0 })).toContain(
    '| first run, 1 server: `initialize` ≤ `node -e 0` + 20 ms | + 0 ms | met |',
  );
});
