// Kills, restarts and rekeys gateways behind nginx while clients of both eras call, and looks whether each call was answered
// once, not executed, or unknown: `docs/cluster.md` has the promises.
//
//   npm run cluster -- [C2 C3 C11 C15 C16] [--short]
//
// Ends with 1 when a target is not met. Says so and ends with 0 if there is no nginx.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import '../bench/plain-node.mjs';
import { describeMachine, table } from '../bench/page.mjs';
import { idCosts } from './ids.mjs';
import { kills } from './kills.mjs';
import { newKeys } from './new-keys.mjs';
import { resumedMemory } from './resumed-memory.mjs';
import { rollingRestart } from './rolling-restart.mjs';

const SCENARIOS = [kills, rollingRestart, newKeys, resumedMemory, idCosts];
const names = SCENARIOS.map(({ name }) => name);
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: 'boolean', default: false } },
});
for (const name of positionals)
  if (!names.includes(name)) throw new Error(`There is no ${name}; take ${names.join(', ')}`);

if (spawnSync('nginx', ['-v']).error === undefined) await run();
else say('not run: nginx is not installed');

async function run() {
  say(`\`npm run cluster -- ${process.argv.slice(2).join(' ')}\`; ${describeMachine()}; three gateways behind nginx`);
  for (const { name, about, run: scenario } of SCENARIOS) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    say(`\n${name}: ${about}`);
    const { figures, targets } = await scenario({ isShort: values.short });
    say(`\n${table(['Figure', 'Measured'], Object.entries(figures))}`);
    const verdict = (isMet) => (isMet === undefined ? 'not judged' : isMet ? 'met' : '**not met**');
    const rows = targets.map(({ target, measured, isMet }) => [target, measured, verdict(isMet)]);
    say(`\n${table(['Target', 'Measured', ''], rows)}`);
    if (targets.some(({ isMet }) => isMet === false)) process.exitCode = 1;
  }
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
