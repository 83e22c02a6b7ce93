import { type ExecException, exec } from 'node:child_process';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { RemoteSpec } from '../../supervision/launcher.js';

/** Headers that identify the gateway to a remote server, such as `Authorization`, by lower-case names. */
export type AccessHeaders = Readonly<Record<string, string>>;

/** Reason for which requests to a server cannot be authorized now. Only a person, or the server, can change it. */
export interface Blocked {
  readonly blocked: 'login_required' | 'scope_missing' | 'refused';
  /** Reason as a clause, without a period or a secret. */
  readonly because: string;
}

/** The answer with which a server refused the headers of a request. */
export interface Challenge {
  readonly status: 401 | 403;
  /** The values of `WWW-Authenticate`. */
  readonly authenticate: readonly string[];
}

/** Authorization of the requests to one remote server. There is one for each server and resource. */
export interface RemoteAccess {
  /** Headers of the next request. */
  headers(): Promise<AccessHeaders | Blocked>;
  /** The server refused the headers `used`. Resolves with `again` if other headers may be accepted. Never rejects. */
  rejected(challenge: Challenge, used: AccessHeaders): Promise<'again' | Blocked>;
}

export function isBlocked(access: AccessHeaders | Blocked | 'again'): access is Blocked {
  return typeof access === 'object' && typeof (access as Partial<Blocked>).blocked === 'string' && 'because' in access;
}

/** Thrown when a request cannot be authorized. It was not processed. */
export class BlockedError extends Error {
  override readonly name = 'BlockedError';

  constructor({ because }: Blocked) {
    super(because);
  }
}

/** Time limit of a command that gives headers, in milliseconds. */
const COMMAND_MS = 10_000;
const MAX_OUTPUT_BYTES = 64 * 1024;

/** Access with the headers of the configuration, and with those that its command gives. */
export function configuredAccess(
  { headers, headersCommand }: Pick<RemoteSpec, 'headers' | 'headersCommand'>,
  keepSecret: (headers: AccessHeaders) => () => void,
): RemoteAccess {
  if (headersCommand !== undefined) return new CommandAccess(headers, headersCommand, keepSecret);
  return {
    headers: () => Promise.resolve(headers),
    rejected: ({ status }) =>
      Promise.resolve(loginRequired(`it answers HTTP ${status} to the headers of the configuration`)),
  };
}

/** Runs the command before the first request, and again when the server does not accept the headers anymore. */
class CommandAccess implements RemoteAccess {
  readonly #fixed: AccessHeaders;
  readonly #command: string;
  /** The latest run. Requests that need headers meanwhile wait for the same run. */
  #run: Promise<AccessHeaders | Blocked> | undefined;
  #isRunning = false;
  /** Keeps the values of the latest run out of logs. Returns a function that ends this. */
  readonly #keepSecret: (headers: AccessHeaders) => () => void;
  #release = () => {};

  constructor(fixed: AccessHeaders, command: string, keepSecret: (headers: AccessHeaders) => () => void) {
    this.#fixed = fixed;
    this.#command = command;
    this.#keepSecret = keepSecret;
  }

  headers(): Promise<AccessHeaders | Blocked> {
    return this.#run ?? this.#start();
  }

  async rejected({ status }: Challenge, used: AccessHeaders): Promise<'again' | Blocked> {
    if (status !== 401) return loginRequired(`it answers HTTP ${status} to the headers of \`headersCommand\``);
    const known = await this.headers();
    // Another request may have had the command run since.
    const latest = known === used ? await (this.#isRunning ? this.headers() : this.#start()) : known;
    if (isBlocked(latest)) return latest;
    return isSame(latest, used) ? loginRequired('it answers HTTP 401 to the headers of `headersCommand`') : 'again';
  }

  #start(): Promise<AccessHeaders | Blocked> {
    this.#isRunning = true;
    this.#run = runCommand(this.#command).then((given) => {
      this.#isRunning = false;
      if (isBlocked(given)) return given;
      this.#release();
      this.#release = this.#keepSecret(given);
      return { ...this.#fixed, ...given };
    });
    return this.#run;
  }
}

function isSame(one: AccessHeaders, other: AccessHeaders): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Runs the command in a shell. What it writes may be secret, so no reason repeats it. */
function runCommand(command: string): Promise<AccessHeaders | Blocked> {
  const options = {
    timeout: COMMAND_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_OUTPUT_BYTES,
    windowsHide: true,
  } as const;
  return new Promise((resolve) => {
    const child = exec(command, options, (error, output) => {
      resolve(error === null ? readHeaders(output) : loginRequired(`\`headersCommand\` ${describeEnd(error)}`));
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end();
  });
}

function describeEnd({ code, killed, signal }: ExecException): string {
  if (typeof code === 'number') return `ended with exit code ${code}`;
  if (String(code) === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `wrote more than ${MAX_OUTPUT_BYTES / 1024} KiB`;
  if (killed === true) return `did not end within ${COMMAND_MS / 1_000} s`;
  return signal ? `was ended by ${signal}` : `could not be run (${code})`;
}

function readHeaders(output: string): AccessHeaders | Blocked {
  const problem = loginRequired(
    '`headersCommand` did not write a JSON object whose members are names and values of headers',
  );
  try {
    const given: unknown = JSON.parse(output);
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return problem;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(given)) {
      if (typeof value !== 'string') return problem;
      validateHeaderName(name);
      validateHeaderValue(name, value);
      headers[name.toLowerCase()] = value;
    }
    return headers;
  } catch {
    return problem;
  }
}

function loginRequired(because: string): Blocked {
  return { blocked: 'login_required', because };
}
