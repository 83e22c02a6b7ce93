import { EXIT } from '../errors/usage-error.js';
import { printableLines } from '../json/printable.js';

/** Writes lines for the user to stderr. Control and invisible characters are escaped. */
export function tell(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

let isQuiet = false;

/** With `--quiet`, only results, warnings and failures are written. Set once, before a command runs. */
export function setQuiet(quiet: boolean): void {
  isQuiet = quiet;
}

/** Whether `--quiet` was given. */
export function isQuietWanted(): boolean {
  return isQuiet;
}

/** Tells the user that all went well, unless that is not wanted. */
export function note(text: string): void {
  if (!isQuiet) tell(text);
}

/**
 * Runs a command, and says when stdout could not be written, as on a full disk. A reader that closes its end early, as
 * `head` does, is not an error.
 */
export async function withGuardedOutput(run: () => Promise<number>): Promise<number> {
  let fault: Error | undefined;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') fault ??= error;
  });
  // There is no other stream to report it to.
  process.stderr.on('error', () => {});
  const code = await run();
  if (fault === undefined) return code;
  tell(`trunkline: cannot write to stdout: ${fault.message}`);
  return code === EXIT.ok ? EXIT.failed : code;
}

/** Prints text, and resolves when stdout has taken it: an exit before that would cut it off. */
export async function print(text: string): Promise<void> {
  await write(`${text}\n`);
}

/** Prints what `--json` asks for: one value on one line. */
export async function printJson(value: unknown): Promise<void> {
  await print(JSON.stringify(value));
}

/** Takes what `--json` would print. `trunkline init` puts the values of several commands together. */
export type EmitJson = (value: unknown) => Promise<void> | void;

/** Resolves when stdout has taken everything that was written. */
export async function flushed(): Promise<void> {
  await write('');
}

function write(text: string): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      process.stdout.off('error', done);
      resolve();
    };
    // A reader may close its end early.
    process.stdout.once('error', done);
    process.stdout.write(text, done);
  });
}

/** Text from a server for stdout: unchanged for a file or a pipe, escaped for a terminal. */
export function forStream(text: string, { isTTY }: { readonly isTTY?: boolean }): string {
  return isTTY ? printableLines(text) : text;
}
