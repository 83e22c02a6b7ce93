import { validateHeaderName, validateHeaderValue } from 'node:http';
import { endGroup, type GroupEnd } from '../../servers/process/end-group.js';
import { type SpawnedChild, spawnChild } from '../../servers/process/spawn-child.js';
import type { ChildExit } from '../../spec/launch.js';
import type { HeadersCommand } from '../../spec/server-spec.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { type AccessHeaders, asClause, type Blocked, type Challenge, isBlocked, type RemoteAccess } from './access.js';

/** Time limit of a command that gives headers, in milliseconds. */
const COMMAND_MS = 10_000;
const MAX_OUTPUT_BYTES = 64 * 1024;
/** SIGTERM at once, and SIGKILL for processes that do not end then. */
const LADDER = { termAfterMs: 0, killAfterMs: 500 };

export interface ConfiguredAccess extends RemoteAccess {
  /** Ends the running command with its processes, and starts no other. Never rejects. */
  end(): Promise<void>;
}

export interface ConfiguredAccessOptions {
  readonly clock: Clock;
  /** Keeps the values of headers out of logs. The returned function ends this. */
  readonly keepSecret: (headers: AccessHeaders) => () => void;
}

/** Access with the headers of the configuration, and with those that its command gives. */
export function configuredAccess(
  { headers, headersCommand }: { readonly headers: AccessHeaders; readonly headersCommand?: HeadersCommand },
  options: ConfiguredAccessOptions,
): ConfiguredAccess {
  if (headersCommand !== undefined) return new CommandAccess(headers, headersCommand, options);
  return {
    headers: () => Promise.resolve(headers),
    rejected: ({ status, words }) =>
      Promise.resolve(loginRequired(`it answers HTTP ${status} to the headers of the configuration${asClause(words)}`)),
    end: () => Promise.resolve(),
  };
}

/** Runs the command before the first request, and again when the server does not accept the headers anymore. */
class CommandAccess implements ConfiguredAccess {
  readonly #fixed: AccessHeaders;
  readonly #command: HeadersCommand;
  readonly #options: ConfiguredAccessOptions;
  /** The latest run. Requests that need headers meanwhile wait for the same run. */
  #latest: Promise<AccessHeaders | Blocked> | undefined;
  #running: CommandRun | undefined;
  #isEnded = false;
  /** Lets logs show the values of the latest run again. */
  #release = () => {};

  constructor(fixed: AccessHeaders, command: HeadersCommand, options: ConfiguredAccessOptions) {
    this.#fixed = fixed;
    this.#command = command;
    this.#options = options;
  }

  headers(): Promise<AccessHeaders | Blocked> {
    return this.#latest ?? this.#start();
  }

  async rejected({ status, words }: Challenge, used: AccessHeaders): Promise<'again' | Blocked> {
    if (status !== 401)
      return loginRequired(`it answers HTTP ${status} to the headers of \`headersCommand\`${asClause(words)}`);
    const known = await this.headers();
    // Another request may have run the command again since.
    const latest = known === used ? await (this.#running === undefined ? this.#start() : this.headers()) : known;
    if (isBlocked(latest)) return latest;
    return JSON.stringify(latest) === JSON.stringify(used)
      ? loginRequired(`it answers HTTP 401 to the headers of \`headersCommand\`${asClause(words)}`)
      : 'again';
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    await this.#running?.end();
  }

  #start(): Promise<AccessHeaders | Blocked> {
    if (this.#isEnded) return Promise.resolve(loginRequired('its connection is over'));
    const running = new CommandRun(this.#command, this.#options.clock);
    this.#running = running;
    this.#latest = running.outcome.then((given) => {
      this.#running = undefined;
      if (isBlocked(given)) return given;
      this.#release();
      this.#release = this.#options.keepSecret(given);
      return { ...this.#fixed, ...given };
    });
    return this.#latest;
  }
}

/** One run of the command in a shell. Its output may be secret, so no reason repeats it. */
class CommandRun {
  /** Resolves when the command and all processes of its group have ended, or cannot be ended. */
  readonly outcome: Promise<AccessHeaders | Blocked>;
  readonly #clock: Clock;
  readonly #child: SpawnedChild;
  readonly #cancelLimit: Cancel;
  readonly #output: Buffer[] = [];
  #size = 0;
  /** Reason for which Trunkline ends the command. */
  #ended: string | undefined;
  #fault: string | undefined;

  constructor({ line, env }: HeadersCommand, clock: Clock) {
    this.#clock = clock;
    const own = Object.fromEntries(Object.entries(process.env).flatMap(([name, value = '']) => [[name, value]]));
    this.#child = spawnChild(
      { command: line, args: [], cwd: process.cwd(), env: { ...own, ...env }, isShell: true },
      {
        onExit: () => {},
        onSpawnError: ({ code }) => {
          this.#fault = `could not be run (${code})`;
        },
      },
    );
    const { stdin, stdout, stderr, exit } = this.#child;
    stdin.end();
    stderr.resume();
    stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#cancelLimit = clock.schedule(COMMAND_MS, () => void this.#stop(`did not end within ${COMMAND_MS / 1_000} s`));
    this.outcome = exit.then((ended) => this.#read(ended));
  }

  async end(): Promise<void> {
    await this.#stop('was ended with its connection');
  }

  #take(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > MAX_OUTPUT_BYTES) void this.#stop(`wrote more than ${MAX_OUTPUT_BYTES / 1024} KiB`);
    else this.#output.push(chunk);
  }

  #stop(because: string): Promise<GroupEnd> {
    this.#ended ??= because;
    return endGroup(this.#child, LADDER, this.#clock);
  }

  async #read({ code, signal }: ChildExit): Promise<AccessHeaders | Blocked> {
    // Processes that the command has left behind would hold its output open.
    await endGroup(this.#child, LADDER, this.#clock);
    this.#cancelLimit();
    const end = code === 0 ? undefined : signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
    const fault = this.#fault ?? this.#ended ?? end;
    if (fault !== undefined) return loginRequired(`\`headersCommand\` ${fault}`);
    return readHeaders(Buffer.concat(this.#output).toString());
  }
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
