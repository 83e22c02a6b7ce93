import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configIn, homeIn } from '../support/platform.js';
import { killAll, type ProcessEntry, processesWith, until } from '../support/processes.js';

export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function isServing([first]: readonly string[]): boolean {
  return first === undefined || first === 'serve' || first.startsWith('-');
}

/** A folder of its own for one test, in which the built CLI runs. */
export class Workplace {
  /** Part of every command line below it, so that what is left of a run can be found. */
  readonly folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
  /** Variables for the CLI, besides our own. */
  readonly env: Record<string, string> = {};
  /** The built program; a test can replace it with a copy. */
  cli = CLI;

  write(name: string, text: string): string {
    const file = join(this.folder, name);
    writeFileSync(file, text);
    return file;
  }

  /** Writes `trunkline.yaml`; a server given as text is the fixture of that name. `others` are the other keys. */
  configure(servers: Record<string, string | Record<string, unknown>>, others: object = {}): void {
    const entries = Object.entries(servers).map(([key, entry]) => [key, this.#entry(entry)]);
    this.write('trunkline.yaml', JSON.stringify({ servers: Object.fromEntries(entries), ...others }));
  }

  /** Resolves when stderr holds `text`. */
  async says({ stderr }: ChildProcessWithoutNullStreams, text: string): Promise<void> {
    let said = '';
    const listen = (chunk: Buffer) => {
      said += chunk;
    };
    stderr.on('data', listen);
    await until(`"${text}" on stderr`, () => said.includes(text));
    stderr.off('data', listen);
  }

  /** Runs the CLI to its end. `via` is a command that starts it, given its command line. */
  async run(args: readonly string[], input = '', via: readonly string[] = []): Promise<Finished> {
    const running = this.start(args, via);
    running.process.stdin.end(input);
    return await running.finished;
  }

  start(
    args: readonly string[],
    via: readonly string[] = [],
  ): { process: ChildProcessWithoutNullStreams; finished: Promise<Finished> } {
    const { TRUNKLINE_CONFIG: _, FORCE_COLOR: _forced, NO_COLOR: _none, ...inherited } = process.env;
    const config = join(this.folder, 'trunkline.yaml');
    // A server whose stdin is no terminal does not search its folder, so clients name the configuration.
    const named = isServing(args) && existsSync(config) ? { TRUNKLINE_CONFIG: config } : {};
    const folders = { ...homeIn(this.folder), ...configIn(join(this.folder, 'none')) };
    const env = { ...inherited, ...named, ...folders, ...this.env };
    const [program = '', ...words] = [...via, process.execPath, this.cli, ...args];
    const child = spawn(program, words, { cwd: this.folder, env });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.stdin.on('error', () => {});
    const finished = new Promise<Finished>((resolve) => {
      child.once('close', (code) => {
        resolve({ code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() });
      });
    });
    return { process: child, finished };
  }

  /** The running processes of this folder's servers. */
  leftovers(): ProcessEntry[] {
    return processesWith(`run=${this.folder}`);
  }

  /** Ends the servers that a failed test left behind. */
  dispose(): void {
    killAll(`run=${this.folder}`);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #entry(entry: string | Record<string, unknown>): Record<string, unknown> {
    if (typeof entry === 'string') return this.#entry({ fixture: entry });
    const { fixture, ...rest } = entry;
    if (fixture === undefined) return rest;
    const program = fileURLToPath(new URL(`../fixtures/cli/${fixture}.mjs`, import.meta.url));
    return { command: 'node', args: [program, `run=${this.folder}`], ...rest };
  }
}
