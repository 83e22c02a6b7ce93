import type { ServerConfig } from '../config/config.js';
import { formatProblem } from '../config/config-error.js';
import type { ServerReport } from '../gateway/status/status-report.js';

export interface Diagnosis {
  /** What happened, one line. */
  readonly reason: string;
  /** What to try; may be several lines. */
  readonly hint: string;
}

/** Why a server that was tried once is not ready, in words; `undefined` if it is. */
export function diagnose(file: string, server: ServerConfig, report: ServerReport): Diagnosis | undefined {
  const { child, problem } = server;
  if (problem !== undefined) {
    const { hint, ...fault } = problem;
    return { reason: formatProblem(file, fault), hint };
  }
  if (report.state === 'ready' || child === undefined) return undefined;
  const failure = report.lastFailure ?? 'unknown';
  // Which of the two is noticed first is chance: the end of the process, or that of its handshake.
  if (failure === 'exited' || failure.endsWith(': exited')) {
    return {
      reason: `it ended ${describeEnd(report)} before it was ready`,
      hint: 'look at its last lines; often an argument, a variable in `env` or a file is missing',
    };
  }
  if (failure === 'start-timeout' || failure.endsWith(': timeout')) {
    return {
      reason: `it was not ready within ${child.timeouts.startMs / 1000} s`,
      hint: 'is it an MCP server that speaks over stdio? If it only needs longer, raise `startTimeout`',
    };
  }
  if (failure.includes('(ENOENT)')) {
    const isLine = /\s/.test(child.command);
    const hint = isLine
      ? '`command` is the program alone; put what follows it into `args`'
      : 'install it, or set `command` to its full path';
    return { reason: failure, hint };
  }
  return { reason: failure, hint: HINTS.find(([sign]) => failure.includes(sign))?.[1] ?? FALLBACK };
}

const COULD_NOT_INSTALL = 'could not be installed: ';

const HINTS: readonly (readonly [sign: string, hint: string])[] = [
  ['(EACCES)', 'make the program executable, or run it with its interpreter as `command`'],
  [COULD_NOT_INSTALL, 'is there a network? its last lines are what npm said; `trunkline install` tries again'],
  ['protocol version', 'look for a newer version of this server'],
];

const FALLBACK = 'its last lines may tell more; so does `-vv`';

function describeEnd({ lastExit }: ServerReport): string {
  if (lastExit === null) return 'by itself';
  return lastExit.signal === null ? `with exit code ${lastExit.code}` : `by signal ${lastExit.signal}`;
}
