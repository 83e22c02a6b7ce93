import { stripVTControlCharacters } from 'node:util';
import { ConfigError } from '../config/file/config-error.js';
import { explain, FileError, fileErrorIn, systemFault } from '../host/errors/file-error.js';
import { EXIT, HintedError, UsageError } from '../host/errors/usage-error.js';
import { printableLines } from '../wire/json/printable.js';

/** Writes lines for the user to stderr. Escapes control and invisible characters, and folds lines to the width of a terminal. */
export function tell(text: string): void {
  process.stderr.write(`${folded(printableLines(text), terminalWidth(process.stderr))}\n`);
}

/** Columns of a terminal; `undefined` for a file or a pipe. */
export function terminalWidth({ isTTY, columns }: { readonly isTTY?: boolean; readonly columns?: number }) {
  return isTTY === true ? columns || DEFAULT_WIDTH : undefined;
}

const DEFAULT_WIDTH = 80;

/**
 * Breaks lines that are wider than a terminal at spaces. Text in backticks stays whole, because a person copies it. Further lines have the
 * indentation of the first one, or `hang` spaces if that has none.
 */
export function folded(text: string, width: number | undefined, hang = 0): string {
  if (width === undefined) return text;
  const fits = (line: string) => stripVTControlCharacters(line).length <= width;
  return text
    .split('\n')
    .flatMap((line) => {
      if (fits(line)) return [line];
      const indent = ' '.repeat(/^ *(?:[|-] )?/.exec(line)?.[0].length || hang);
      const lines: string[] = [];
      for (const [part] of line.matchAll(/\s*(?:`[^`]*`|\S)+/g)) {
        const last = lines.at(-1);
        if (last !== undefined && fits(last + part)) lines[lines.length - 1] = last + part;
        else lines.push(last === undefined ? part : indent + part.trimStart());
      }
      return lines;
    })
    .join('\n');
}

let isQuiet = false;

/** With `--quiet`, only results, warnings and failures are written. Set once, before a command runs. */
export function setQuiet(quiet: boolean): void {
  isQuiet = quiet;
}

export function isQuietWanted(): boolean {
  return isQuiet;
}

/** Tells the user about a success, unless `--quiet` was given. */
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
  tell(`trunkline: cannot write to stdout: ${systemFault(fault).reason}`);
  return code === EXIT.ok ? EXIT.failed : code;
}

/** Ends the process when the reader of a long output closes its end early, as `head` does. */
export function endWithReader(): void {
  process.stdout.on('error', () => process.exit(EXIT.ok));
}

/** Prints sentences, with lines folded to the width of a terminal. */
export async function say(text: string): Promise<void> {
  await print(folded(text, terminalWidth(process.stdout)));
}

/** Prints text, and resolves when stdout has taken it, because an exit before that would cut it off. */
export async function print(text: string): Promise<void> {
  await write(`${text}\n`);
}

/** Prints the value of `--json` on one line. */
export async function printJson(value: unknown): Promise<void> {
  await print(JSON.stringify(value));
}

/** Prints the result of a command: the value of `--json`, or else the text. Returns the exit code. */
export async function answer(
  isJson: boolean,
  value: unknown,
  text: () => string,
  code: number = EXIT.ok,
): Promise<number> {
  await (isJson ? printJson(value) : say(text()));
  return code;
}

/** Takes the value that `--json` would print, because `trunkline init` merges the values of several commands. */
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

/** The time since `since`, as `12 s`. */
export function elapsed(since: number): string {
  return `${Math.round((performance.now() - since) / 1_000)} s`;
}

/** Text from a server for stdout: unchanged for a file or a pipe, escaped for a terminal. */
export function forStream(text: string, { isTTY }: { readonly isTTY?: boolean }): string {
  return isTTY ? printableLines(text) : text;
}

/** Replaces the home folder by `~`, so that the text can be shown to others. */
export function withoutHome(text: string, home: string): string {
  if (home.length < 2) return text;
  return text.split(home).reduce((before, after) => before + (/^(?![\w-])/.test(after) ? '~' : home) + after);
}

/** Reports an error that prevented a command, and resolves with the exit code. */
export async function reportFault(error: unknown): Promise<number> {
  if (error instanceof ConfigError) {
    tell(error.report);
    return error.cause instanceof FileError ? EXIT.failed : EXIT.usage;
  }
  if (error instanceof HintedError || fileErrorIn(error) !== undefined) {
    tell(`trunkline: ${explain(error)}`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
  if ((error as NodeJS.ErrnoException | undefined)?.syscall === 'uv_os_homedir') {
    const reason = 'this user has no home folder: HOME is not set, and the system has no account for the user';
    return await reportFault(new UsageError(reason, 'set HOME to a folder that only this user can write'));
  }
  // The message or the stack can contain secrets. Loads the redactor here, because most commands do without the module of serving.
  const { createRedactor } = await import('../host/observe/redact.js');
  const text = error instanceof Error ? error.stack : String(error);
  tell(createRedactor([])(`trunkline: internal error, please report this bug: ${text}`));
  return EXIT.internal;
}
