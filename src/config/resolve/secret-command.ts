import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface SecretCommandOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  /** What the command reads on stdin; nothing by default. */
  readonly input?: string;
}

/** What a command has printed, or what became of it, as a phrase that has none of its output. */
export type SecretOutcome = { readonly value: string } | { readonly fault: string };

/** Two faults that some commands do not count as faults, or that are said in other words. */
export const PRINTED_NOTHING = 'it printed nothing';
export const PROGRAM_NOT_FOUND = 'its program was not found';

/** A person may have to confirm with a fingerprint. All servers wait meanwhile. */
const SECRET_TIMEOUT_MS = 30_000;

/** Larger than any key or certificate. */
const MAX_OUTPUT_BYTES = 64 * 1024;

/** Runs a command without a shell. Its stdout is the value, without the line break at the end. */
export async function runSecretCommand(
  [program = '', ...args]: readonly string[],
  { cwd, env, timeoutMs = SECRET_TIMEOUT_MS, input = '' }: SecretCommandOptions,
): Promise<SecretOutcome> {
  const file = /^~(?=[\\/])/.test(program) ? join(homedir(), program.slice(1)) : program;
  const limits = { timeout: timeoutMs, maxBuffer: MAX_OUTPUT_BYTES, killSignal: 'SIGKILL' } as const;
  return await new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      { cwd, env, ...limits, encoding: 'utf8', windowsHide: true },
      (error, stdout) => {
        const value = stdout.replace(/\r?\n$/, '');
        if (error !== null) resolve({ fault: faultOf(error, timeoutMs) });
        else if (value === '') resolve({ fault: PRINTED_NOTHING });
        else resolve({ value });
      },
    );
    // The command must not read what a client writes, or wait for it.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

type ExecFault = Pick<Error, 'message'> & {
  readonly code?: string | number | null | undefined;
  readonly signal?: string | null | undefined;
  readonly killed?: boolean | undefined;
};

/** The message of the error has the command line and the output, which may be secrets. */
function faultOf({ code, signal, killed }: ExecFault, timeoutMs: number): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `it printed more than ${MAX_OUTPUT_BYTES / 1024} KiB`;
  if (killed === true) return `it took longer than ${timeoutMs / 1000} s`;
  if (typeof code === 'number') return `it ended with exit code ${code}`;
  if (signal !== null && signal !== undefined) return `it was ended by ${signal}`;
  return code === 'ENOENT' ? PROGRAM_NOT_FOUND : `it could not be started (${code ?? 'unknown'})`;
}
