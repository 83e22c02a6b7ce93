import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const KEPT_OUTPUT_CHARS = 4_000;
const END_WITHIN_MS = 5_000;

const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A process that is killed when this process exits. */
export class OwnedProcess {
  /** The end of its output. */
  output = '';

  constructor(program, args, options = {}) {
    this.child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(this.child);
    for (const stream of [this.child.stdout, this.child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        this.output = (this.output + text).slice(-KEPT_OUTPUT_CHARS);
      });
    this.exited = new Promise((resolve) => {
      this.child.once('error', (error) => {
        this.output += error;
      });
      this.child.once('close', (code, signal) => resolve(code ?? signal));
    }).finally(() => running.delete(this.child));
  }

  get pid() {
    return this.child.pid;
  }

  get hasEnded() {
    return this.child.pid === undefined || this.child.exitCode !== null || this.child.signalCode !== null;
  }

  signal(name) {
    this.child.kill(name);
  }

  /** Resolves with the exit code, or the signal, when it has ended. */
  async end(signal) {
    this.child.kill(signal);
    return await this.exited;
  }

  async close(signal = 'SIGTERM') {
    if (this.hasEnded) return;
    // A stopped process takes no other signal.
    this.child.kill('SIGCONT');
    this.child.kill(signal);
    const killed = sleep(END_WITHIN_MS, 'late', { ref: false });
    if ((await Promise.race([this.exited, killed])) === 'late') await this.end('SIGKILL');
  }
}
