// A `Wire` over the stdio of a process.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readLines } from '../../fixtures/servers/odd/lines.mjs';
import type { OnMessage, Wire } from './wire.js';

/** The pipes of a process that it starts. */
export class StdioWire implements Wire {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #exited: Promise<unknown>;

  /** `args` are Node's; `env` is added to the environment of this process. */
  constructor(args: readonly string[], onMessage: OnMessage, env: Readonly<Record<string, string>> = {}) {
    this.#process = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } });
    this.#exited = once(this.#process, 'exit');
    this.#process.stdin.on('error', () => {});
    this.#process.stderr.resume();
    readLines(this.#process.stdout, (line) => onMessage(line, 'pipe'));
  }

  /** A message takes one line here, so line breaks between its tokens become spaces. */
  async send(text: string): Promise<void> {
    this.#process.stdin.write(`${text.replaceAll('\n', ' ')}\n`);
  }

  async listen(): Promise<void> {}

  async close(): Promise<void> {
    this.#process.stdin.end();
    await this.#exited;
  }
}
