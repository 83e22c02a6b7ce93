// Real servers of Redis and Sentinels, each test with its own.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './free-port.js';
import { endRun } from './processes.js';

/** A server that listens. It keeps its address when it is started again. */
export interface RedisProcess {
  readonly port: number;
  readonly url: string;
  /** Stops and continues the process. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Returns the answer to a command of `redis-cli`. */
  ask(...args: readonly string[]): Promise<string>;
  /** Ends the process. Its data are lost. */
  kill(): Promise<void>;
  /** Starts the process again, empty. */
  restart(): Promise<void>;
}

/** The servers of one test, in a folder of their own. */
export class RedisPlace {
  readonly folder = mkdtempSync(join(tmpdir(), 'trunkline-redis-'));
  readonly #running = new Set<ChildProcess>();

  /** Starts a server with these lines of its configuration; with `sentinel`, a Sentinel. */
  async start(lines: readonly string[] = [], { sentinel = false } = {}): Promise<RedisProcess> {
    const port = await freePort();
    const file = join(this.folder, `${port}.conf`);
    const isTls = lines.some((line) => line.startsWith('tls-port'));
    const common = [
      `port ${isTls ? 0 : port}`,
      'bind 127.0.0.1',
      `dir ${this.folder}`,
      // The command line keeps the name of the folder, by which `end` finds processes that are left.
      'set-proc-title no',
      ...(sentinel ? [] : ['save ""', 'appendonly no', 'repl-diskless-sync-delay 0']),
    ];
    const write = () => writeFileSync(file, [...common, ...lines, ''].join('\n').replaceAll('PORT', String(port)));
    const launch = () => {
      write();
      return this.#launch(file, sentinel);
    };
    let child = await launch();
    return {
      port,
      url: `redis://127.0.0.1:${port}`,
      signal: (signal) => void child.kill(signal),
      ask: async (...args) => {
        const { stdout } = await promisify(execFile)('redis-cli', ['-p', String(port), '--no-auth-warning', ...args]);
        return stdout;
      },
      kill: async () => void (await this.#kill(child)),
      restart: async () => {
        child = await launch();
      },
    };
  }

  /** Ends all processes, and fails if one is left. */
  async end(): Promise<void> {
    await Promise.all([...this.#running].map((child) => this.#kill(child)));
    await endRun(this.folder);
  }

  async #launch(file: string, sentinel: boolean): Promise<ChildProcess> {
    const args = [file, ...(sentinel ? ['--sentinel'] : [])];
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#running.add(child);
    let output = '';
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', () => reject(new Error(`redis-server has ended:\n${output}`)));
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (/Ready to accept connections|Sentinel ID is/.test(output)) resolve();
      });
    });
    return child;
  }

  async #kill(child: ChildProcess): Promise<void> {
    this.#running.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}
