// What Trunkline costs: time of a call, calls a second, time to start; next to no gateway at all, to a process that
// copies bytes, and to a gateway made of the official SDK. `docs/performance.md` tells how it is measured.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measureCalls, measureStarts } from './measure.mjs';
import { describeMachine, writeSection } from './page.mjs';
import { callPaths, startPaths } from './paths.mjs';
import { toReport } from './report.mjs';

const PAGE = fileURLToPath(new URL('../docs/performance.md', import.meta.url));

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    calls: { type: 'string' },
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const rounds = count('rounds', values.quick ? 3 : 30);
const calls = count('calls', values.quick ? 300 : 2000);
const starts = values.quick ? 3 : 12;
if (values.write && values.quick) throw new Error('--write is for full runs: leave out --quick');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
// Our end closes the pipes to all that was started, and with them it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
const callResults = await measureCalls(callPaths(folder), { rounds, calls });
const startResults = await measureStarts(startPaths(folder), starts);
const report = toReport({ machine, rounds, calls, starts, callResults, startResults });
console.log(report);
if (values.write) writeSection(PAGE, 'bench', report);

function count(option, byDefault) {
  const value = Number(values[option] ?? byDefault);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${option} takes a whole number above 0`);
  return value;
}
