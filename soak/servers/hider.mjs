// The server of many tests, which first starts processes that have no trace of their origin: neither its environment, nor
// its session, nor its process group. One of them ignores SIGTERM, the others start successors faster than anybody looks.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const [, , folder = ''] = process.argv;
const options = { env: { PATH: '/usr/bin:/bin' }, detached: true, stdio: 'ignore' };
const sleeper = fileURLToPath(new URL('../../test/fixtures/processes/ignore-sigterm.mjs', import.meta.url));
const chain = fileURLToPath(new URL('chain.sh', import.meta.url));

spawn(process.execPath, [sleeper, folder, 'hidden'], options).unref();
for (let count = 0; count < 2; count += 1) spawn('/bin/sh', [chain, folder], options).unref();
await import('../../test/fixtures/servers/lab.mjs');
