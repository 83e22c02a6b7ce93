// Starts a worker again and again, as a gateway does, and speaks with it as a gateway does: a process of its own, because
// to start a process holds up whoever does it. Arguments: the file that makes the worker end, and the milliseconds from an
// end to the next start. Begins and stops as it is told over IPC.
import { spawn } from 'node:child_process';
import { worker } from './gateway.mjs';

const [crashWhile, restartMs] = process.argv.slice(2);
const { command, args } = worker({ args: ['name=crashing', `crash-while=${crashWhile}`] });
const INITIALIZE = {
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'soak', version: '1' } },
};
let child;
let restart;

process.on('message', (what) => {
  stop();
  if (what === 'begin') start();
});
process.on('disconnect', stop);

function stop() {
  clearTimeout(restart);
  child?.removeAllListeners('exit').kill('SIGKILL');
  child = undefined;
}

function start() {
  const started = spawn(command, args);
  child = started;
  const tell = (message) => started.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  started.stdin.on('error', () => {});
  started.stderr.resume();
  started.stdout.once('data', () => {
    tell({ method: 'notifications/initialized' });
    tell({ id: 2, method: 'tools/list' });
    started.stdout.resume();
  });
  tell({ id: 1, ...INITIALIZE });
  started.once('exit', () => {
    restart = setTimeout(start, Number(restartMs));
  });
}
