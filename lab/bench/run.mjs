// What Trunkline costs, next to no gateway at all, to a process that copies bytes, and to a gateway made of the official
// SDK. `docs/performance.md` tells what is measured, and how.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { aimsTable, brokenAims } from './aims.mjs';
import './plain-node.mjs';
import { describeMachine, writeSection } from './page.mjs';
import { PARTS } from './parts.mjs';
import { allWays, NAIVE } from './ways.mjs';

const PAGE = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string' },
    against: { type: 'string' },
    peer: { type: 'string', multiple: true },
    short: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const rounds = values.rounds && Number(values.rounds);
if (rounds !== undefined && !(rounds >= 1)) throw new Error('--rounds takes a whole number above 0');
const only = values.only?.split(',') ?? Object.keys(PARTS).filter((name) => !values.short || PARTS[name].short);
const unknown = only.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(PARTS)}, not ${unknown}`);
const isWhole = !values.short && values.only === undefined && values.against === undefined;
if (values.write && !isWhole) throw new Error('--write is for full runs: leave out --short, --only and --against');

const folder = mkdtempSync(join(tmpdir(), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
// What was kept by earlier runs of the gateway is not to be found.
process.env.XDG_DATA_HOME = folder;
// Our end closes the pipes to all that was started, and with them it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
const ways = allWays({ against: values.against, peers: values.peer }).filter(
  ({ name }) => !values.short || name !== NAIVE,
);
const measured = {};
const report = [machine];
console.log(machine);
for (const name of only) {
  const { measure, tables, full, short } = PARTS[name];
  const size = { ...(values.short ? (short ?? full) : full), ...(rounds && { rounds }) };
  measured[name] = await measure(ways, folder, size);
  add(...tables(measured[name], size));
}
add(...aimsTable(measured));
if (values.write) writeSection(PAGE, 'bench', report.join('\n\n'));

const broken = values.short ? brokenAims(measured) : [];
for (const each of broken) console.error(`Far off: ${each}`);
if (broken.length > 0) process.exitCode = 1;

function add(...paragraphs) {
  for (const paragraph of paragraphs) console.log(`\n${paragraph}`);
  report.push(...paragraphs);
}
