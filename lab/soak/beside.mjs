import { fork, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { worker } from './gateway.mjs';

const RESTARTER = fileURLToPath(new URL('./restarter.mjs', import.meta.url));

/**
 * The same neighbours beside the gateway instead of behind it, as loud and ending as often: what they take of the
 * machine, and of whoever reads what they say, without a gateway having to do with them. The client reads the chatty one,
 * as it does with what a gateway passes on; a process of its own starts the crashing one, as the gateway is one.
 */
export class Beside {
  #crashWhile;
  #chatty = run(['name=chatty']);
  #restarter;

  /** `crashWhile` is a file of its own; `restartMs` passes between an end and the next start. */
  constructor({ crashWhile, restartMs }) {
    this.#crashWhile = crashWhile;
    this.#restarter = fork(RESTARTER, [crashWhile, String(restartMs)]);
  }

  loud() {
    tell(this.#chatty, { id: 1, method: 'tools/call', params: { name: 'loud', arguments: {} } });
    writeFileSync(this.#crashWhile, '');
    this.#restarter.send('begin');
  }

  quiet() {
    tell(this.#chatty, { id: 2, method: 'tools/call', params: { name: 'quiet', arguments: {} } });
    rmSync(this.#crashWhile, { force: true });
    this.#restarter.send('stop');
  }

  close() {
    this.quiet();
    this.#chatty.kill('SIGKILL');
    this.#restarter.disconnect();
  }
}

/** What it says is read and parsed, as a client does with what a gateway passes on. */
function run(given) {
  const { command, args } = worker({ args: given });
  const process = spawn(command, args);
  process.stdin.on('error', () => {});
  process.stderr.resume();
  let unfinished = '';
  process.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (unfinished + text).split('\n');
    unfinished = lines.pop();
    for (const line of lines) JSON.parse(line);
  });
  return process;
}

function tell(process, message) {
  process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
