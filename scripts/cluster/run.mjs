// Kills, restarts and rekeys gateways behind nginx while clients of both eras call, and looks whether each call was answered
// once, not executed, or unknown: `docs/cluster.md` has the promises.
//
//   npm run cluster -- [C2 C3 C11 C15 C16] [--short]
//
// Ends with 1 when a target is not met. Says so and ends with 0 if there is no nginx. The short form runs scenarios side by side, in
// processes of their own, and leaves out those that another one includes.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import '../bench/plain-node.mjs';
import { describeMachine, table } from '../bench/page.mjs';
import { idCosts } from './ids.mjs';
import { kills } from './kills.mjs';
import { newKeys } from './new-keys.mjs';
import { resumedMemory } from './resumed-memory.mjs';
import { rollingRestart } from './rolling-restart.mjs';

const SCENARIOS = [kills, rollingRestart, newKeys, resumedMemory, idCosts];
/** The short form: each list runs beside the other one. C3 is left out, because C11 restarts all gateways, too. */
const SHORT = [
  ['C11', 'C16'],
  ['C2', 'C15'],
];
const names = SCENARIOS.map(({ name }) => name);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: 'boolean', default: false } },
});
const isMeant = (name) => positionals.includes(name);
for (const each of positionals)
  if (!names.includes(each)) throw new Error(`There is no ${each}; take ${names.join(', ')}`);
// The listeners of `exit` end the processes.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

if (spawnSync('nginx', ['-v']).error !== undefined) say('not run: nginx is not installed');
else if (positionals.length > 0) await run(SCENARIOS.filter(({ name }) => isMeant(name)));
else if (values.short) await Promise.all(SHORT.map(runBeside));
else await run(SCENARIOS);

/** Runs scenarios one after another. */
async function run(scenarios) {
  say(`\`npm run cluster -- ${process.argv.slice(2).join(' ')}\`; ${describeMachine()}`);
  for (const { name, about, run: scenario } of scenarios) {
    say(`\n${name}: ${about}`);
    report(await scenario({ isShort: values.short }));
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
