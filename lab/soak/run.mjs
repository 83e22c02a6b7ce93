// Runs what wears a gateway down, and looks whether it keeps what it promises: `docs/evidence.md` tells of each.
//
//   npm run -w lab soak -- [S-1 …] [--short] [--seed N] [flags of a run]
//
// A run is a seed and some measures; the flags are their names. Ends with 1 when a target is not met. Several runs of the short
// form go side by side, each in a process of its own, because most of them wait and none of them judges times.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import '../bench/plain-node.mjs';
import { describeMachine, table } from '../bench/page.mjs';
import { attachAtOnce } from './attach-at-once.mjs';
import { httpAttacks } from './attacks/http/run.mjs';
import { hostileServers } from './attacks/stdio/run.mjs';
import { eras } from './eras/run.mjs';
import { floods } from './floods.mjs';
import { garbage } from './garbage.mjs';
import { killChildren } from './kill-children.mjs';
import { killDaemons } from './kill-daemons.mjs';
import { killGateway } from './kill-gateway.mjs';
import { killHub } from './kill-hub.mjs';
import { largeResults } from './large-results.mjs';
import { manyCalls } from './many-calls.mjs';
import { neighbours } from './neighbours.mjs';
import { refreshRaces } from './refresh-races.mjs';
import { unreadClient } from './unread-client.mjs';

const SOAKS = [
  killChildren,
  killGateway,
  manyCalls,
  garbage,
  neighbours,
  floods,
  killDaemons,
  hostileServers,
  httpAttacks,
  killHub,
  attachAtOnce,
  unreadClient,
  eras,
  refreshRaces,
  largeResults,
];

/** The longest runs of the short form. */
const LONGEST = [hostileServers, httpAttacks, floods, eras, attachAtOnce];

const names = SOAKS.map(({ name }) => name);
const asked = process.argv.slice(2).filter((arg) => names.includes(arg));
const chosen = SOAKS.filter(({ name }) => asked.length === 0 || asked.includes(name));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    short: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    ...Object.fromEntries(chosen.flatMap(({ full }) => Object.entries(full).map(toOption))),
  },
});
for (const name of positionals)
  if (!names.includes(name)) throw new Error(`There is no ${name}; take ${names.join(', ')}`);
const seed = count('seed', values.seed);

const folder = mkdtempSync(join(tmpdir(), 'trunkline-soak-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
// Our end closes the pipes to all that was started, and with them it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

const isBeside = values.short && chosen.length > 1;
process.exit((isBeside ? await runBeside() : await runInTurn()) ? 0 : 1);

async function runInTurn() {
  let isEveryTargetMet = true;
  for (const soak of chosen) isEveryTargetMet = (await run(soak)) && isEveryTargetMet;
  return isEveryTargetMet;
}

/** Runs as many soaks at once as there are processors, the longest first. Prints the output of each when it has ended. */
async function runBeside() {
  const queue = [...new Set([...LONGEST, ...SOAKS])].filter((soak) => chosen.includes(soak));
  const missed = [];
  const work = async () => {
    for (let soak = queue.shift(); soak !== undefined; soak = queue.shift())
      if (!(await runApart(soak.name))) missed.push(soak.name);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  console.log(missed.length === 0 ? '\nEvery target is met.' : `\nNot met: ${missed.join(', ')}`);
  return missed.length === 0;
}

/** Resolves with whether every target is met. */
function runApart(name) {
  const own = new Set(Object.keys(SOAKS.find((soak) => soak.name === name).full).map(toFlag));
  const flags = Object.entries(values).filter(([flag]) => own.has(flag));
  const given = flags.map(([flag, value]) => (value === true ? `--${flag}` : `--${flag}=${value}`));
  const args = [fileURLToPath(import.meta.url), name, '--short', '--seed', String(seed), ...given];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const stop = () => child.kill();
  process.once('exit', stop);
  const chunks = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk));
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      process.off('exit', stop);
      if (signal !== null) chunks.push(Buffer.from(`\n**Not met**: ${name} was ended by ${signal}.\n`));
      process.stdout.write(Buffer.concat(chunks));
      resolve(code === 0);
    });
  });
}

async function run({ name, title, full, short, run: start }) {
  const measures = { ...full, ...(values.short ? short : {}) };
  for (const key of Object.keys(full)) {
    const given = values[toFlag(key)];
    if (given !== undefined) measures[key] = typeof given === 'boolean' ? given : count(key, given);
  }
  const flags = Object.entries(measures).map(([key, value]) => `--${toFlag(key)}${value === true ? '' : ` ${value}`}`);
  const shown = flags.filter((flag) => !flag.endsWith(' false'));
  console.log(
    `\n## ${name}: ${title}\n\n${describeMachine()}\n\n\`npm run -w lab soak -- ${name} --seed ${seed} ${shown.join(' ')}\`\n`,
  );
  const startedAt = performance.now();
  let outcome;
  try {
    outcome = await start({ ...measures, seed, folder: mkdtempSync(join(folder, 'run-')) });
  } catch (error) {
    console.log(`**Not met**: the run broke off. ${error.stack}`);
    return false;
  }
  const { facts, tables = [], targets } = outcome;
  console.log(`${table(['Measured', ''], facts)}\n`);
  for (const { head, rows } of tables) console.log(`${table(head, rows)}\n`);
  const rows = targets.map(({ target, measured, isMet }) => [target, measured, verdict(isMet)]);
  console.log(table(['Target', 'Measured', ''], rows));
  console.log(`\n${name} took ${((performance.now() - startedAt) / 1000).toFixed(0)} s.`);
  return targets.every(({ isMet }) => isMet !== false);
}

/** Too short a run cannot tell everything. */
function verdict(isMet) {
  if (isMet === undefined) return 'not judged';
  return isMet ? 'met' : '**not met**';
}

function toOption([key, value]) {
  return [toFlag(key), { type: typeof value === 'boolean' ? 'boolean' : 'string' }];
}

function toFlag(key) {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function count(option, value) {
  const number = Number(value);
  if (!Number.isFinite(number) || number < 0) throw new Error(`--${option} takes a number`);
  return number;
}
