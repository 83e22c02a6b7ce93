// Kills, restarts and rekeys gateways behind nginx while clients of both eras call, and looks whether each call was answered
// once, not executed, or unknown: `docs/cluster.md` has the promises.
//
//   npm run -w lab cluster -- [C1 C2 …] [--short] [--users 200]
//
// A scenario with users has 1,000, or as many as `--users` says.
// Ends with 1 when a target is not met. Says so if a program is missing. The short form runs scenarios side by side, in
// processes of their own, and leaves out those that another one includes.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import '../bench/plain-node.mjs';
import { describeMachine, table } from '../bench/page.mjs';
import { capacity } from './capacity.mjs';
import { differentClocks } from './clocks.mjs';
import { cost } from './cost.mjs';
import { cutLinks } from './cut-links.mjs';
import { homes } from './homes.mjs';
import { idCosts } from './ids.mjs';
import { intruders } from './intruders.mjs';
import { clusterKills, kills } from './kills.mjs';
import { newKeys } from './new-keys.mjs';
import { pausedGateway } from './paused-gateway.mjs';
import { renewedLogins, renewedUserLogins } from './renewed-logins.mjs';
import { resumedMemory } from './resumed-memory.mjs';
import { clusterRestart, rollingRestart } from './rolling-restart.mjs';
import { storeFailsOver, storeKilled, storeStopped } from './store-away.mjs';
import { storeMemory } from './store-memory.mjs';

const SCENARIOS = [
  cost,
  kills,
  clusterKills,
  rollingRestart,
  clusterRestart,
  storeKilled,
  storeStopped,
  pausedGateway,
  cutLinks,
  differentClocks,
  storeFailsOver,
  renewedLogins,
  renewedUserLogins,
  newKeys,
  intruders,
  capacity,
  homes,
  resumedMemory,
  storeMemory,
  idCosts,
];
/**
 * The short form: each list runs beside the others. C3 is left out, because C11 restarts all gateways, too, and C13, because it
 * needs the processor for itself.
 */
const SHORT = [
  ['C11', 'C6', 'C16'],
  ['C2-store', 'C7', 'C4', 'C9'],
  ['C2', 'C12', 'C5', 'C8', 'C14', 'C1', 'C15', 'C15-store'],
  ['C10', 'C10-users'],
];
const names = SCENARIOS.map(({ name }) => name);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: 'boolean', default: false }, users: { type: 'string' } },
});
/** `C2` means `C2-store`, too, in the full form. */
const isMeant = (name) => positionals.some((each) => name === each || (!values.short && name.startsWith(`${each}-`)));
for (const each of positionals)
  if (!names.includes(each)) throw new Error(`There is no ${each}; take ${names.join(', ')}`);
// The listeners of `exit` end the processes.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

if (positionals.length > 0) await run(SCENARIOS.filter(({ name }) => isMeant(name)));
else if (values.short) await Promise.all(SHORT.map(runBeside));
else await run(SCENARIOS);

/** Runs scenarios one after another. */
async function run(scenarios) {
  say(`\`npm run -w lab cluster -- ${process.argv.slice(2).join(' ')}\`; ${describeMachine()}`);
  for (const { name, about, needs = [], missing = () => undefined, run: scenario } of scenarios) {
    const program = ['nginx', ...needs].find((each) => spawnSync(each, ['-v']).error !== undefined) ?? missing();
    say(`\n${name}: ${program === undefined ? about : `not run, because ${program} is not installed`}`);
    if (program === undefined)
      report(await scenario({ isShort: values.short, users: values.users && Number(values.users) }));
  }
}

function report({ figures, targets }) {
  say(`\n${table(['Figure', 'Measured'], Object.entries(figures))}`);
  const verdict = (isMet) => (isMet === undefined ? 'not judged' : isMet ? 'met' : '**not met**');
  const rows = targets.map(({ target, measured, isMet }) => [target, measured, verdict(isMet)]);
  say(`\n${table(['Target', 'Measured', ''], rows)}`);
  if (targets.some(({ isMet }) => isMet === false)) process.exitCode = 1;
}

/** Runs scenarios one after another, each in a process, whose output is printed whole. */
async function runBeside(scenarios) {
  for (const name of scenarios) {
    const child = spawn(process.execPath, [process.argv[1], name, '--short'], { stdio: ['ignore', 'pipe', 'pipe'] });
    const end = () => child.kill();
    process.once('exit', end);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    const [code] = await once(child, 'close');
    process.off('exit', end);
    say(output);
    if (code !== 0) process.exitCode = 1;
  }
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
