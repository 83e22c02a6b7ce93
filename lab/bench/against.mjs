// Compares this build with the build of another checkout in calls, starts and the hub: `npm run -w lab bench:against -- ../other`.
// Each script measures both builds in turns. Further options, such as `--rounds 5`, are passed to all of them.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const SCRIPTS = ['run.mjs', 'start-up.mjs', 'hub.mjs'];

const [checkout, ...options] = process.argv.slice(2);
if (checkout === undefined || checkout.startsWith('-')) throw new Error('The first argument is the other checkout');
for (const script of SCRIPTS) {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const { status } = spawnSync(process.execPath, [file, '--against', checkout, ...options], { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
