// The built CLI at a terminal, which the program `script` makes.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { CLI, type Workplace } from '../cli/cli-run.js';

export interface AtTerminal {
  readonly process: ChildProcessWithoutNullStreams;
  /** What the terminal has shown by now. */
  shown(): string;
  /** Resolves with the exit code when everything is shown. */
  readonly ended: Promise<number | null>;
}

/** Starts a command in the folder of a test. `args` are words of a shell, which reads `env`. */
export function startAtTerminal({ folder }: Workplace, args: string, env: Record<string, string> = {}): AtTerminal {
  const command = `"$NODE" "$CLI" ${args}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: folder,
    env: { ...process.env, HOME: folder, NODE: process.execPath, CLI, ...env },
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { process: child, shown: () => output, ended };
}
