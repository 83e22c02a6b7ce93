// Runs what wears a gateway down, and looks whether it keeps what it promises: `docs/evidence.md` tells of each.
//
//   npm run soak -- [S-1 …] [--short] [--seed N] [flags of a run]
//
// A run is a seed and some measures; the flags are their names. Ends with 1 when a target is not met.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
];

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

let isEveryTargetMet = true;
for (const soak of chosen) isEveryTargetMet = (await run(soak)) && isEveryTargetMet;
process.exit(isEveryTargetMet ? 0 : 1);

async function run({ name, title, full, short, run: start }) {
  const measures = { ...full, ...(values.short ? short : {}) };
  for (const key of Object.keys(full)) {
    const given = values[toFlag(key)];
    if (given !== undefined) measures[key] = typeof given === 'boolean' ? given : count(key, given);
  }
  const flags = Object.entries(measures).map(([key, value]) => `--${toFlag(key)}${value === true ? '' : ` ${value}`}`);
  const shown = flags.filter((flag) => !flag.endsWith(' false'));
  console.log(
    `\n## ${name}: ${title}\n\n${describeMachine()}\n\n\`npm run soak -- ${name} --seed ${seed} ${shown.join(' ')}\`\n`,
  );
  let outcome;
  try {
    outcome = await start({ ...measures, seed, folder: mkdtempSync(join(folder, 'run-')) });
  } catch (error) {
    // Nobody asked for a run that this machine does not allow.
    const isExcused = error.isOfMachine === true && asked.length === 0;
    console.log(isExcused ? `**Not run**: ${error.message}` : `**Not met**: the run broke off. ${error.stack}`);
    return isExcused;
  }
  const { facts, tables = [], targets } = outcome;
  console.log(`${table(['Measured', ''], facts)}\n`);
  for (const { head, rows } of tables) console.log(`${table(head, rows)}\n`);
  const rows = targets.map(({ target, measured, isMet }) => [target, measured, verdict(isMet)]);
  console.log(table(['Target', 'Measured', ''], rows));
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
