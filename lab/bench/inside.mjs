// What a call, a scan and a line cost inside the gateway, where no pipe and no other process hides a difference of some
// percent. `docs/performance.md` tells what is measured, and how.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundle } from './inside-bundle.mjs';
import { PARTS } from './inside-parts.mjs';
import { insideTables, pageTable } from './inside-report.mjs';
import { describeMachine, writeSection } from './page.mjs';
import { OTHER_BUILD, TRUNKLINE } from './ways.mjs';

const PAGE = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
/** Far more than any part takes: a call that is never answered must not keep us for ever. */
const PART_WITHIN_MS = 300_000;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    runs: { type: 'string' },
    rounds: { type: 'string' },
    against: { type: 'string' },
    short: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const runs = count('runs', values.short ? 1 : 5);
const rounds = values.rounds && count('rounds');
const only = values.only?.split(',') ?? Object.keys(PARTS);
const unknown = only.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) throw new Error(`--only takes ${Object.keys(PARTS)}, not ${unknown}`);

const isWhole = !values.short && values.only === undefined && values.against === undefined;
if (values.write && !isWhole) throw new Error('--write is for full runs: leave out --short, --only and --against');

const folder = mkdtempSync(join(realpathSync(tmpdir()), 'trunkline-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
// What was forked ends with the channel between us.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const machine = describeMachine();
console.log(machine);
const builds = [{ name: TRUNKLINE, checkout: fileURLToPath(new URL('../..', import.meta.url)) }];
if (values.against !== undefined) builds.push({ name: OTHER_BUILD, checkout: values.against });
for (const [index, build] of builds.entries())
  build.program = await bundle(build.checkout, join(folder, String(index)));

/** By part and build: of each run the rows of the part. */
const measured = new Map(only.map((part) => [part, new Map(builds.map(({ name }) => [name, []]))]));
for (let run = 0; run < runs; run += 1) {
  for (const part of only) {
    for (let turn = 0; turn < builds.length; turn += 1) {
      const { name, program } = builds[(run + turn) % builds.length];
      measured
        .get(part)
        .get(name)
        .push(await measure(program, part));
    }
  }
}
for (const [part, byBuild] of measured) {
  for (const paragraph of insideTables(PARTS[part].title(sizeOf(part), runs), byBuild)) console.log(`\n${paragraph}`);
}

if (values.write) writeSection(PAGE, 'bench-inside', [machine, pageTable(measured)].join('\n\n'));

/** One part, in a process of its own: what the engine learns from one must not change another. */
async function measure(program, part) {
  const child = fork(program, [part, JSON.stringify(sizeOf(part))], {
    execArgv: ['--expose-gc'],
    timeout: PART_WITHIN_MS,
  });
  const ended = once(child, 'exit').then(([code, signal]) => {
    if (code !== 0) throw new Error(`${part} of ${program} ended (${code ?? signal})`);
  });
  const [[rows]] = await Promise.all([once(child, 'message'), ended]);
  return rows;
}

function sizeOf(part) {
  const { full, short } = PARTS[part];
  return { ...(values.short ? short : full), ...(rounds && { rounds }) };
}

function count(option, byDefault) {
  const value = Number(values[option] ?? byDefault);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${option} takes a whole number above 0`);
  return value;
}
