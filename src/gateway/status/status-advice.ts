import type { Code } from '../../errors/codes.js';
import { ERROR_SIGNS } from '../../errors/error-signs.js';
import type { Backend } from '../registry/backend.js';
import { type ServerFacts, type StatusFacts, stateOf } from './status-facts.js';

/** Sentences of the status about one server. Each is empty if there is nothing to say. */
interface Assessment {
  /** The problem and its effect on the tools. */
  readonly problem: string;
  /** The stable code of the problem; null without one. */
  readonly code: Code | null;
  /** Advice to a person, or Trunkline's own next step. */
  readonly advice: string;
}

/** Says what is wrong with a server, what that means, and what to do about it. */
export function assess(facts: StatusFacts, server: ServerFacts): Assessment {
  const { problem, code, advice } = assessState(facts, server);
  const tools = assessTools(server.backend);
  return {
    problem: problem === '' ? tools.problem : problem,
    code: code ?? tools.code,
    advice: [advice, tools.advice, adviseOnNetwork(server), adviseOnApproval(server.backend)].filter(Boolean).join(' '),
  };
}

function assessState(facts: StatusFacts, { backend, lifecycle, problem, instances }: ServerFacts): Assessment {
  if (problem !== undefined) return assessConfiguration(problem);
  const next = describeWait(facts.now, lifecycle?.retryAt);
  const restart = howToRestart(facts, backend.key);
  switch (stateOf(backend, lifecycle)) {
    case 'installing':
      return fine(
        'Its package is being installed, which may take a minute or more. Its tools appear when it is ready.',
      );
    case 'parked':
      if (lifecycle?.missing !== undefined)
        return {
          code: 'TL-SERVER-NOT-INSTALLED',
          problem: 'Its package could not be installed, so it does not run and its tools are not listed.',
          advice: `Fix the cause, then ${restart}, or run \`trunkline install\`. Without that, Trunkline tries again ${next}.`,
        };
      return {
        code: 'TL-SERVER-PARKED',
        problem: `It is parked, because it failed ${times(lifecycle?.consecutiveFailures ?? 0)} in a row: ${itsTools(backend)} not listed.`,
        advice: `Fix the cause, then ${restart}. Without that, Trunkline tries again ${next}, and when one of its tools is called.`,
      };
    case 'backoff': {
      const problem = `It failed. ${untilItRuns(backend)}`;
      if (lifecycle?.lastFailure?.isHostFault === true)
        return { problem: `${problem} ${SHORT_OF_RESOURCES}`, code: 'TL-SERVER-RESOURCES', advice: FREE_RESOURCES };
      const advice = `Trunkline restarts it automatically, ${next}. ${IF_IT_FAILS_AGAIN}`;
      return { problem, code: 'TL-SERVER-RESTARTING', advice };
    }
    case 'starting':
      if (instances.some((instance) => instance.backend === backend && instance.isUnclaimed))
        return fine('Its process runs. The MCP handshake follows when the first client connects.');
      if ((lifecycle?.consecutiveFailures ?? 0) > 0)
        return {
          code: 'TL-SERVER-RESTARTING',
          problem: `It failed and is being started again. ${untilItRuns(backend)}`,
          advice: IF_IT_FAILS_AGAIN,
        };
      return fine(`It is still starting. ${untilItRuns(backend)}`);
    case 'suspect':
      return {
        code: 'TL-SERVER-UNRESPONSIVE',
        problem: 'It has stopped answering, so new calls wait.',
        advice: 'Trunkline probes it, and restarts it if it does not answer.',
      };
    case 'idle':
      return fine('It does not run because no client needs it now. A call of one of its tools starts it.');
    case 'ready':
      if (backend.dispatcher.breaker.state === 'closed') return fine('');
      return {
        code: 'TL-SERVER-BREAKER-OPEN',
        problem: 'It runs, but too many of its recent calls failed, so Trunkline refuses calls to it.',
        advice: `Trunkline accepts calls again when it answers a test request. To restart it now, ${restart}.`,
      };
    case 'stopped':
    case 'stopping':
      return fine('');
  }
}

/** A hub, and a Trunkline that serves over HTTP, outlive their clients. */
function howToRestart({ canRestart, service, restartCommand }: StatusFacts, server: string): string {
  if (canRestart) return `call trunkline__restart with server "${server}"`;
  if (service?.kind === 'hub' && restartCommand !== undefined) return `run \`${restartCommand(server)}\``;
  if (service?.kind === 'hub' || service?.kind === 'http') return 'restart Trunkline';
  return 'restart the client, which restarts Trunkline';
}

/** Message and hint are phrases without a capital letter and without a period. */
function assessConfiguration({ message, hint }: NonNullable<ServerFacts['problem']>): Assessment {
  return {
    code: 'TL-SERVER-MISCONFIGURED',
    problem: `Its configuration is wrong: ${message}. It cannot run, so its tools are not listed.`,
    advice: `To fix it, ${hint}.`,
  };
}

function adviseOnNetwork({ lifecycle, logLines }: ServerFacts): string {
  const { state, consecutiveFailures = 0 } = lifecycle ?? {};
  const isFailing = state === 'parked' || state === 'backoff' || (state === 'starting' && consecutiveFailures > 0);
  const trouble = isFailing ? findNetworkTrouble(logLines) : undefined;
  return trouble === undefined ? '' : `Its log shows ${trouble.problem}: ${trouble.cure}.`;
}

/** A server that runs, but cannot list its tools. */
function assessTools({ listFailures, approval }: Backend): Assessment {
  if (!listFailures.some(({ kind }) => kind === 'tools')) return fine('');
  const calls =
    approval === undefined
      ? 'Calls of its tools by name are sent to it'
      : 'Its tools need approval, so none is called before it lists them';
  return {
    code: 'TL-SERVER-LISTS',
    problem: 'It runs, but it does not list its tools.',
    advice: `${calls}. Its answer may say what it lacks, such as the network. Trunkline asks for the list again.`,
  };
}

function fine(advice: string): Assessment {
  return { problem: '', code: null, advice };
}

const SHORT_OF_RESOURCES = 'This machine lacks what a new process needs; the server is not to blame.';

const FREE_RESOURCES =
  'Close other programs, or raise the limit that the last failure names (`ulimit -n` for open files). Trunkline retries every 5 s.';

const IF_IT_FAILS_AGAIN = 'If it keeps failing, its log lines show why.';

function adviseOnApproval(backend: Backend): string {
  const { approval } = backend;
  const verdicts = [...(backend.listsAs('exposed').tools.verdicts?.values() ?? [])];
  const withheld = verdicts.filter((verdict) => verdict !== 'approved').length;
  if (approval === undefined || withheld === 0) return '';
  return `${withheld} of its tools ${withheld === 1 ? 'waits' : 'wait'} for approval. ${approval.advice}`;
}

/** Effect on tools and calls until the next process is ready. */
function untilItRuns(backend: Backend): string {
  const count = toolCount(backend);
  if (count === 0) return 'Its tools appear when it is ready.';
  return `Its ${count === 1 ? 'tool stays' : `${count} tools stay`} listed, and calls wait until it is ready.`;
}

function itsTools(backend: Backend): string {
  const count = toolCount(backend);
  if (count === 0) return 'its tools are';
  return count === 1 ? 'its tool is' : `its ${count} tools are`;
}

/** Number of tools that are listed while the server is available. */
function toolCount(backend: Backend): number {
  return backend.knownListsAs('exposed').tools.entries.filter(({ entry }) => entry !== undefined).length;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function describeWait(now: number, at: number | undefined): string {
  const seconds = at === undefined ? 0 : Math.ceil((at - now) / 1000);
  if (seconds <= 0) return 'soon';
  return seconds < 120 ? `in ${seconds} s` : `in ${Math.round(seconds / 60)} min`;
}

/** Number of the last lines that count, because older ones can belong to an earlier start. */
const LAST_LINES = 20;

const WHERE = 'in the environment that starts Trunkline, or in `defaults.env` of the configuration';

/** Only the text that matches is shown again, since a line may say anything. */
const SIGNS: readonly (readonly [sign: RegExp, kind: string, cure: string])[] = [
  [
    ERROR_SIGNS.certificate.text,
    'certificate',
    `behind a private certificate authority, set \`NODE_EXTRA_CA_CERTS\` (for Python, \`SSL_CERT_FILE\`) to the file with its certificates, ${WHERE}`,
  ],
  [ERROR_SIGNS.network.text, 'network', `check the network connection; behind a proxy, set \`HTTPS_PROXY\`, ${WHERE}`],
];

/**
 * Finds a certificate or network error in the last lines of a server's log, and its cure; certificate errors come first. Both are
 * phrases of a sentence.
 */
export function findNetworkTrouble(lines: readonly string[]): { problem: string; cure: string } | undefined {
  const last = lines.slice(-LAST_LINES).join('\n');
  for (const [sign, kind, cure] of SIGNS) {
    const found = sign.exec(last)?.[0];
    if (found !== undefined) return { problem: `a ${kind} error (${found})`, cure };
  }
  return undefined;
}
