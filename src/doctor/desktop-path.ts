import { spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Machine, variableOf } from './machine.js';

type Asked = Pick<Machine, 'platform' | 'env' | 'home'>;

/** The PATH of programs that no shell has started, on Debian and systems derived from it. */
const USUAL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** A login shell may be slow, or wait for input that never comes. */
const SHELL_WITHIN_MS = 2_000;
const TOOL_WITHIN_MS = 1_000;

/**
 * The PATH of a desktop program, without the additions of a shell.
 *
 * The part for macOS is untried: `launchctl` names the PATH of the session if somebody has set one, otherwise it is the one
 * of `/etc/paths`.
 */
export async function desktopPath(machine: Asked): Promise<string> {
  switch (machine.platform) {
    // Programs of the desktop and of a console have the same variables.
    case 'win32':
      return variableOf(machine, 'PATH') ?? '';
    case 'darwin':
      return (await outputOf('launchctl', ['getenv', 'PATH'], machine, TOOL_WITHIN_MS)).trim() || (await pathsOfMac());
    case 'linux': {
      const session = await outputOf('systemctl', ['--user', 'show-environment'], machine, TOOL_WITHIN_MS);
      const inSession = /^PATH=(.*)$/m.exec(session)?.[1];
      const everywhere = await readFile('/etc/environment', 'utf8').catch(() => '');
      return inSession ?? /^PATH="?([^"\n]*)"?$/m.exec(everywhere)?.[1] ?? USUAL_PATH;
    }
  }
}

/** The PATH of the user's login shell; `undefined` if it does not say it in time. Windows has no such shell. */
export async function shellPath(machine: Asked): Promise<string | undefined> {
  const { SHELL } = machine.env;
  if (machine.platform === 'win32' || !SHELL) return undefined;
  // What the shell's profile prints stands before the mark.
  const output = await outputOf(
    SHELL,
    ['-ilc', 'printf "<trunkline>%s</trunkline>" "$PATH"'],
    machine,
    SHELL_WITHIN_MS,
  );
  return /<trunkline>(.*)<\/trunkline>/.exec(output)?.[1];
}

async function pathsOfMac(): Promise<string> {
  const more = (await readdir('/etc/paths.d').catch((): string[] => [])).map((name) => join('/etc/paths.d', name));
  const texts = await Promise.all(['/etc/paths', ...more].map((file) => readFile(file, 'utf8').catch(() => '')));
  return texts.flatMap((text) => text.split('\n').filter(Boolean)).join(':') || USUAL_PATH;
}

/** Runs a program without terminal and input, and returns its stdout; empty if it fails or exceeds the time limit. */
async function outputOf(
  command: string,
  args: readonly string[],
  { env, home }: Asked,
  limitMs: number,
): Promise<string> {
  return await new Promise((resolve) => {
    let output = '';
    // A session of its own, so that an interactive shell cannot stop this process by asking for the terminal.
    const child = spawn(command, args, { env, cwd: home, stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    const timer = setTimeout(() => end(), limitMs);
    const end = () => {
      clearTimeout(timer);
      child.stdout.destroy();
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
      resolve(output);
    };
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
    });
    child.stdout.on('error', () => {});
    child.on('error', end);
    child.on('close', end);
  });
}
