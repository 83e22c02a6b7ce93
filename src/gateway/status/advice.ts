import type { ServerState } from '../dispatch/availability.js';
import type { Backend } from '../registry/backend.js';
import type { Lifecycle, ServerFacts, StatusFacts } from './status-facts.js';

/** The next step for a person, by what is wrong. */
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
  if (problem !== undefined) return [problem.message, problem.hint].filter(Boolean).join(' ');
  const { key } = backend;
  const restart = canRestart
    ? `call trunkline__restart with server "${key}"`
    : 'restart the client, which restarts Trunkline';
  switch (stateOf(backend, lifecycle)) {
    case 'installing':
      return 'It is being installed, which may take a minute or more; its tools appear when it is ready.';
    case 'parked':
      if (lifecycle?.missing !== undefined)
        return `Its package could not be installed. Mend the cause (is there a network?), then ${restart}, or run \`trunkline install\`. It is tried again by itself.`;
      return `Read the log lines, mend the cause, then ${restart}. It is tried again by itself from time to time, and when one of its tools is called.`;
    case 'backoff':
      if (lifecycle?.lastFailure?.isHostFault === true) return SHORT_OF_RESOURCES;
      return 'It is restarted by itself; if that goes on, the log lines tell why it ends.';
    case 'starting':
      if (instances.some((instance) => instance.backend === backend && instance.isUnclaimed))
        return 'It runs, and is greeted in the name of the first client that comes.';
      if ((lifecycle?.consecutiveFailures ?? 0) > 0) return 'It is being started again.';
      return backend.isFromCache
        ? 'It is still starting; calls wait for it.'
        : 'It is still starting; its tools appear when it is ready.';
    case 'suspect':
      return 'It has stopped answering. It is being asked whether it still serves, and started anew if it does not.';
    case 'idle':
      return 'It does not run because nobody needs it now; a call of one of its tools starts it.';
    case 'ready':
      if (backend.dispatcher.breaker.state === 'closed') return '';
      return `It runs but does not answer. It is asked again by itself; to start it anew at once, ${restart}.`;
    default:
      return '';
  }
}

const SHORT_OF_RESOURCES =
  'This machine lacks what a new process needs; the server is not to blame, and is tried again every 5 s. End other programs, or raise the limit that the last failure names (`ulimit -n` for open files).';

/** What could not be started yet is on its way. */
export function stateOf({ isStartSettled }: Backend, lifecycle: Lifecycle | undefined): ServerState {
  const { state } = lifecycle ?? { state: 'stopped' };
  return state === 'stopped' && lifecycle !== undefined && !isStartSettled ? 'starting' : state;
}
