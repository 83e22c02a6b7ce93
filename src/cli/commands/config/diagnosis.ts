import { formatProblem } from '../../../config/file/config-error.js';
import type { ServerConfig } from '../../../config/resolve/config.js';
import { findNetworkTrouble, reportStatus, type ServerReport } from '../../../gateway/status/status.js';
import type { ChildSpec } from '../../../supervision/launcher.js';
import type { Once } from '../calls/run-once.js';

export interface Diagnosis {
  /** Cause of the failure, in one line. */
  readonly reason: string;
  /** Advice for the user; may have several lines. */
  readonly hint: string;
  /** Network problem found in the output; worded alike for all servers, so that they can be grouped. */
  readonly trouble?: string;
}

/** The most telling lines of the server's output: those that name the cause, or else the last ones. */
export function outputOf({ cause, log }: ServerReport): readonly string[] {
  return cause.length > 0 ? cause : log;
}

/** A server that was started once, with the reasons why it does not work. */
export interface TriedServer {
  readonly server: ServerConfig;
  readonly report: ServerReport;
  readonly diagnosis: Diagnosis | undefined;
  /** Why the server does not list its tools, although it is ready. */
  readonly unlisted: Diagnosis | undefined;
}

/** The servers of a gateway that has started each of them once. */
export function examine({ config, composition }: Pick<Once, 'config' | 'composition'>): TriedServer[] {
  const status = composition.status();
  return config.servers.flatMap((server) => {
    const { servers } = reportStatus(status, server.key);
    return servers.map((report): TriedServer => {
      return { server, report, diagnosis: diagnose(config.file, server, report), unlisted: diagnoseTools(report) };
    });
  });
}

/** Explains why a server did not start; `undefined` when it is ready. */
function diagnose(file: string, server: ServerConfig, report: ServerReport): Diagnosis | undefined {
  const { child, problem } = server;
  if (problem !== undefined) {
    const { hint, ...fault } = problem;
    return { reason: formatProblem(file, fault), hint };
  }
  if (report.state === 'ready' || child === undefined) return undefined;
  const failure = report.lastFailure ?? 'unknown';
  const trouble = findNetworkTrouble(report.log);
  if (trouble !== undefined) {
    return {
      ...diagnoseFailure(failure, child, report),
      hint: `its output shows ${trouble.problem}: ${trouble.cure}`,
      trouble: trouble.problem,
    };
  }
  return diagnoseFailure(failure, child, report);
}

function diagnoseFailure(failure: string, child: ChildSpec, report: ServerReport): Diagnosis {
  // The end of the process and the failure of the handshake can be noticed in either order.
  if (failure === 'exited' || failure.endsWith(': exited')) {
    return {
      reason: `it ended ${describeEnd(report)} before it was ready`,
      hint:
        outputOf(report).length > 0
          ? 'its output above says why; often an argument, a variable in `env` or a file is missing'
          : 'it printed nothing; often an argument, a variable in `env` or a file is missing',
    };
  }
  if (failure === 'start-timeout' || failure.endsWith(': timeout')) {
    return {
      reason: `it was not ready within ${child.timeouts.startMs / 1000} s`,
      hint: 'check that it is an MCP server for stdio; if it needs more time, raise `startTimeout`',
    };
  }
  if (failure.includes('(ENOENT)')) {
    const isLine = /\s/.test(child.command);
    const hint = isLine
      ? '`command` must be the program alone; put the rest of the line into `args`'
      : 'install it, or set `command` to its full path';
    return { reason: failure, hint };
  }
  return { reason: failure, hint: HINTS.find(([sign]) => failure.includes(sign))?.[1] ?? FALLBACK };
}

/** Explains why a server that is ready does not list its tools; `undefined` when it does. */
function diagnoseTools({ state, tools, approval }: ServerReport): Diagnosis | undefined {
  if (state !== 'ready' || tools.failure === null) return undefined;
  const cause = 'look at the log of the server; often the network or a service that it needs is missing';
  const effect =
    approval === null ? 'calls by name still reach it' : 'its tools need approval, so none can be called until then';
  return { reason: `it runs, but its tools cannot be listed: ${tools.failure}`, hint: `${cause}; ${effect}` };
}

const COULD_NOT_INSTALL = 'could not be installed: ';

const HINTS: readonly (readonly [sign: string, hint: string])[] = [
  ['(EACCES)', 'make the program executable, or run it with its interpreter as `command`'],
  [COULD_NOT_INSTALL, 'the lines above are the output of npm; `trunkline install` tries again'],
  ['protocol version', 'install a newer version of this server'],
];

const FALLBACK = 'its output above may show the cause; `-vv` logs all of it';

function describeEnd({ lastExit }: ServerReport): string {
  if (lastExit === null) return 'without an exit code';
  return lastExit.signal === null ? `with exit code ${lastExit.code}` : `by signal ${lastExit.signal}`;
}
