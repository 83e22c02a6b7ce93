// What a call costs with clients and servers of each protocol era, next to a pair of the legacy era.
// `docs/performance.md` tells what is measured, and how.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { aimsTable, brokenAims } from './aims.mjs';
import { eraPairs, eraTables, measureEras } from './era-calls.mjs';
import './plain-node.mjs';
import { describeMachine, writeSection } from './page.mjs';
import { buildsWith } from './ways.mjs';

const PAGE = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
const FULL = { rounds: 30, calls: 2_000 };
const SHORT = { rounds: 5, calls: 1_000 };

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    against: { type: 'string' },
    short: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const size = values.short ? SHORT : FULL;
if (values.rounds !== undefined) size.rounds = Number(values.rounds);
if (!Number.isInteger(size.rounds) || size.rounds < 1) throw new Error('--rounds takes a whole number above 0');
const isWhole = !values.short && values.against === undefined;
if (values.write && !isWhole) throw new Error('--write is for full runs: leave out --short and --against');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
// What was kept by earlier runs of the gateway is not to be found.
process.env.XDG_DATA_HOME = folder;
// Our end closes the pipes to all that was started, and with them it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
const eras = await measureEras(eraPairs(buildsWith(values.against)), folder, size);
const report = [machine, ...eraTables(eras, size), ...aimsTable({ eras })].join('\n\n');
console.log(report);
if (values.write) writeSection(PAGE, 'bench-eras', report);

const broken = values.short ? brokenAims({ eras }) : [];
for (const each of broken) console.error(`Far off: ${each}`);
if (broken.length > 0) process.exitCode = 1;
