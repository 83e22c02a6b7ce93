import type { ServerState } from '../dispatch/availability.js';
import type { Backend } from '../registry/backend.js';
import type { ProcessFacts, ServerFacts, StatusFacts } from './status-facts.js';

/** Returns what a person should do about a server, as sentences. Empty if there is nothing to do. */
export function advise(facts: StatusFacts, server: ServerFacts): string {
  return [adviseOnState(facts, server), adviseOnApproval(server.backend)].filter(Boolean).join(' ');
}

function adviseOnApproval({ lists, approval }: Backend): string {
  const verdicts = [...(lists.tools.verdicts?.values() ?? [])];
  const withheld = verdicts.filter((verdict) => verdict !== 'approved').length;
  if (approval === undefined || withheld === 0) return '';
  return `${withheld} of its tools ${withheld === 1 ? 'waits' : 'wait'} for approval. ${approval.advice}`;
}

function adviseOnState({ canRestart }: StatusFacts, { backend, lifecycle, problem, instances }: ServerFacts): string {
  if (problem !== undefined) return adviseOnProblem(problem);
  const { key } = backend;
  const restart = canRestart
    ? `call trunkline__restart with server "${key}"`
    : 'restart the client, which restarts Trunkline';
  switch (stateOf(backend, lifecycle)) {
    case 'installing':
      return 'Its package is being installed, which may take a minute or more. Its tools appear when it is ready.';
    case 'parked':
      if (lifecycle?.missing !== undefined)
        return `Its package could not be installed. Fix the cause (check the network), then ${restart}, or run \`trunkline install\`. Trunkline also retries from time to time.`;
      return `It failed too often. Read the log lines, fix the cause, then ${restart}. Trunkline also retries from time to time, and when one of its tools is called.`;
    case 'backoff':
      if (lifecycle?.lastFailure?.isHostFault === true) return SHORT_OF_RESOURCES;
      return 'Trunkline restarts it automatically. If it keeps failing, the log lines show why.';
    case 'starting':
      if (instances.some((instance) => instance.backend === backend && instance.isUnclaimed))
        return 'Its process runs. The MCP handshake follows when the first client connects.';
      if ((lifecycle?.consecutiveFailures ?? 0) > 0) return 'It is being started again.';
      return backend.isFromCache
        ? 'It is still starting. Calls wait until it is ready.'
        : 'It is still starting. Its tools appear when it is ready.';
    case 'suspect':
      return 'It has stopped answering. Trunkline probes it, and restarts it if it does not answer.';
    case 'idle':
      return 'It does not run because no client needs it now. A call of one of its tools starts it.';
    case 'ready':
      if (backend.dispatcher.breaker.state === 'closed') return '';
      return `It runs but does not answer. Trunkline probes it and sends calls again when it answers. To restart it now, ${restart}.`;
    default:
      return '';
  }
}

const SHORT_OF_RESOURCES =
  'This machine lacks what a new process needs; the server is not to blame. Trunkline retries every 5 s. Close other programs, or raise the limit that the last failure names (`ulimit -n` for open files).';

/** Message and hint are phrases without a capital letter and without a period. */
function adviseOnProblem({ message, hint }: NonNullable<ServerFacts['problem']>): string {
  return `Its configuration is wrong: ${message}. To fix it, ${hint}.`;
}

/** Returns the state for the status. A server that waits for a start slot counts as starting, not as stopped. */
export function stateOf({ isStartSettled }: Backend, lifecycle: ProcessFacts | undefined): ServerState {
  const { state } = lifecycle ?? { state: 'stopped' };
  return state === 'stopped' && lifecycle !== undefined && !isStartSettled ? 'starting' : state;
}
