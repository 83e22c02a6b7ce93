import type { Backend } from '../gateway/registry/backend.js';
import type { Code } from '../host/errors/codes.js';
import { ERROR_SIGNS } from '../host/errors/error-text.js';
import { LIMITED_CLIENTS } from '../spec/list-modes.js';
import type { ChildSnapshot, ServerState } from '../spec/server-state.js';
import { sentence } from '../wire/json/printable.js';
import type { ServerFacts, StatusFacts } from './status-facts.js';

/** Sentences of the status about one server. Each is empty if there is nothing to say. */
interface Assessment {
  /** The problem and its effect on the tools. */
  readonly problem: string;
  /** The stable code of the problem; null without one. */
  readonly code: Code | null;
  /** Advice to the user, or Trunkline's own next step. */
  readonly advice: string;
}

/** Assesses a server: its problem, the effect of the problem, and what to do. */
export function assess(facts: StatusFacts, server: ServerFacts): Assessment {
  const { problem, code, advice } = assessState(facts, server);
  const tools = assessTools(server.backend);
  const users = assessUsers(server);
  // If users lack a variable, the commands for them are the whole advice on the state.
  const first = server.isPerUser && users.problem !== '' ? '' : advice;
  return {
    problem: problem || tools.problem || users.problem,
    code: code ?? tools.code ?? users.code,
    advice: [
      ...[first, tools.advice, users.advice, adviseOnNetwork(server), ...(server.sandboxRemarks ?? [])],
      ...[adviseOnSandbox(server), adviseOnAccess(facts, server), adviseOnApproval(server.backend)],
      shownState(server.backend, server.lifecycle) === 'ready' ? (server.userLogin ?? '') : '',
    ]
      .filter(Boolean)
      .join(' '),
  };
}

/** Returns the state for the status. A server that waits for a start slot counts as starting, not as stopped. */
export function shownState({ isStartSettled }: Backend, lifecycle: ChildSnapshot | undefined): ServerState {
  const { state } = lifecycle ?? { state: 'stopped' };
  return state === 'stopped' && lifecycle !== undefined && !isStartSettled ? 'starting' : state;
}

function assessState(facts: StatusFacts, server: ServerFacts): Assessment {
  const { backend, lifecycle, problem, instances, isPerUser, isRemote = false } = server;
  if (isPerUser === true)
    return fine(`It runs for users over HTTP only, with a variable of their own. ${sentence(problem?.hint ?? '')}`);
  if (problem !== undefined) return assessConfiguration(problem);
  const next = describeWait(facts.now, lifecycle?.retryAt);
  const restart = howToRestart(facts, backend.key);
  const state = shownState(backend, lifecycle);
  const unconfinable = findConfinementFault(lifecycle?.lastFailure?.reason);
  if (unconfinable !== undefined && (state === 'parked' || state === 'backoff')) {
    const advice = `Trunkline tries again ${next}, and never starts the server unconfined. When it is mended, ${restart}.`;
    return { ...unconfinable, advice };
  }
  switch (state) {
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
      if (lifecycle?.lastFailure?.fault === 'host')
        return { problem: `${problem} ${SHORT_OF_RESOURCES}`, code: 'TL-SERVER-RESOURCES', advice: FREE_RESOURCES };
      const again = isRemote ? 'connects again' : 'restarts it automatically';
      const advice = `Trunkline ${again}, ${next}. ${IF_IT_FAILS_AGAIN}`;
      return { problem, code: 'TL-SERVER-RESTARTING', advice };
    }
    case 'offline':
      if (!isRemote)
        return {
          code: 'TL-SERVER-UNREACHABLE',
          problem: `It runs on one gateway of the cluster, where it cannot be reached now, so calls fail at once.${toolsStay(backend)}`,
          advice: 'Trunkline tries again every two seconds. `trunkline cluster status` shows the gateways.',
        };
      if (lifecycle?.lastFailure?.fault === 'trouble')
        return {
          code: 'TL-CALL-UNAVAILABLE',
          problem: `It can be reached, but it is overloaded or out of order, so calls fail at once.${toolsStay(backend)}`,
          advice: `Trunkline tries again ${next}. Nothing is to be done here, unless \`url\` is wrong.`,
        };
      return {
        code: 'TL-SERVER-UNREACHABLE',
        problem: `It cannot be reached, so calls fail at once.${toolsStay(backend)}`,
        advice: `Trunkline tries again every two seconds. ${sentence(cureOfRemote(lifecycle?.lastFailure?.reason ?? ''))}`,
      };
    case 'blocked':
      return {
        code: 'TL-SERVER-LOGIN',
        problem: `It needs a login or other credentials, so calls fail at once.${toolsStay(backend)}`,
        advice:
          server.userLogin ??
          `Log in with \`trunkline login ${backend.key}\`. If its entry has credentials, correct them, then ${restart}.`,
      };
    case 'starting':
      if (instances.some((instance) => instance.backend === backend && instance.isUnclaimed))
        return fine(`${isRemote ? '' : 'Its process runs. '}The MCP handshake follows when the first client connects.`);
      if ((lifecycle?.consecutiveFailures ?? 0) > 0)
        return {
          code: 'TL-SERVER-RESTARTING',
          problem: `It failed and is being ${isRemote ? 'connected' : 'started'} again. ${untilItRuns(backend)}`,
          advice: IF_IT_FAILS_AGAIN,
        };
      return fine(`It is still starting. ${untilItRuns(backend)}`);
    case 'suspect':
      return {
        code: 'TL-SERVER-UNRESPONSIVE',
        problem: 'It has stopped answering, so new calls wait.',
        advice: `Trunkline probes it, and ${isRemote ? 'connects again' : 'restarts it'} if it does not answer.`,
      };
    case 'idle':
      return fine(
        isRemote
          ? 'It is not connected, because no client needs it now. A call of one of its tools connects it.'
          : 'It does not run because no client needs it now. A call of one of its tools starts it.',
      );
    case 'ready':
      if (backend.dispatcher.breaker.state === 'closed') return fine('');
      return {
        code: 'TL-SERVER-BREAKER-OPEN',
        problem: `It ${isRemote ? 'is connected' : 'runs'}, but too many of its recent calls failed, so Trunkline refuses calls to it.`,
        advice: `Trunkline accepts calls again when it answers a test request. To ${isRemote ? 'connect again' : 'restart it'} now, ${restart}.`,
      };
    case 'stopped':
    case 'stopping':
      return fine('');
  }
}

/** A hub and an HTTP gateway outlive their clients, so a restart of the client restarts nothing. */
function howToRestart({ canRestart, service, restartCommand }: StatusFacts, server: string): string {
  if (canRestart) return `call trunkline__restart with server "${server}"`;
  const command = restartCommand?.(server) ?? `trunkline restart ${server}`;
  if (service?.kind === 'hub') return `run \`${command}\``;
  if (service?.kind === 'http') return `run \`${command}\` where the gateway runs`;
  return 'restart the client, which restarts Trunkline';
}

/** Assesses a wrong configuration. Message and hint are phrases without a capital letter and without a period. */
function assessConfiguration({ message, hint, isOfUser }: NonNullable<ServerFacts['problem']>): Assessment {
  if (isOfUser)
    return {
      code: 'TL-VAR-USER',
      problem: `It cannot run: ${message}, so its tools are not listed.`,
      advice: sentence(hint),
    };
  return {
    code: 'TL-SERVER-MISCONFIGURED',
    problem: `Its configuration is wrong: ${message}. It cannot run, so its tools are not listed.`,
    advice: `To fix it, ${hint}.`,
  };
}

const MAX_USERS = 3;

/** Assesses the instances of users that lack a variable, while other users have the server. */
function assessUsers({ backend, instances }: ServerFacts): Assessment {
  const lacking = new Map(
    instances.flatMap(({ backend: own, problem, isPerUser }) =>
      own !== backend && isPerUser !== true && problem?.isOfUser ? [[problem.message, problem.hint]] : [],
    ),
  );
  if (lacking.size === 0) return fine('');
  const some = [...lacking].slice(0, MAX_USERS);
  const more = lacking.size > some.length ? `; and for ${lacking.size - some.length} more` : '';
  return {
    code: 'TL-VAR-USER',
    problem: `It cannot run for some users: ${some.map(([message]) => message).join('; ')}${more}.`,
    advice: some.map(([, hint]) => sentence(hint)).join(' '),
  };
}

/** Matches the failure of a server that could not be confined. Groups: the reason, the remedy, and the code. */
export const CONFINEMENT = /^(?<reason>.*?)(?:; (?<remedy>.*))? \((?<code>TL-SANDBOX-[A-Z]+)\)$/s;

/** The problem of a server that was not started, because it could not be confined. */
function findConfinementFault(failure = '') {
  const { reason, remedy, code } = CONFINEMENT.exec(failure)?.groups ?? {};
  if (reason === undefined || code === undefined) return undefined;
  return { problem: `It does not run: ${[reason, remedy ?? []].flat().join('; ')}.`, code: code as Code };
}

/** Matches a report of a file that a failed program could not use, in the words of Node, Python and the C library. */
const CLOSED_FILE =
  /\b(?:ENOENT|EACCES|EPERM|EROFS)\b|no such file or directory|permission denied|operation not permitted|read-only file system/i;

/** Matches a report of a file that may not be written, in the words of Node and Python. Its group is the folder. */
const UNWRITABLE = /\b(?:EROFS|Read-only file system)\b[^'"]*['"](\/[\w./@+-]+)\/[^/'"]+['"]/i;

/** Whether the sandbox can have caused a failure. It causes no failed installation, and no failure to find or spawn the program. */
export function canBeOfSandbox(failure = ''): boolean {
  return !/ could not be installed: |\(E[A-Z\d]+\)|\(TL-SANDBOX-/.test(failure);
}

/** Advice about a confined server that fails because of a file, which may be closed for it. */
function adviseOnSandbox({ backend, lifecycle, sandboxRemarks, cause }: ServerFacts): string {
  if (
    sandboxRemarks === undefined ||
    !canBeOfSandbox(lifecycle?.lastFailure?.reason) ||
    !cause.some((line) => CLOSED_FILE.test(line))
  )
    return '';
  const [, folder] = cause.map((line) => UNWRITABLE.exec(line)).find((found) => found !== null) ?? [];
  if (folder !== undefined)
    return `It is confined, and may not write to ${folder}: \`sandbox: { write: [${folder}] }\` would allow it.`;
  return `It is confined, so the file may be closed for it: \`trunkline sandbox ${backend.key}\` shows what is open.`;
}

/** Matches the code of macOS for a folder that it keeps from a program. A file with the wrong permissions has another one. */
const KEPT_FROM_PROGRAM = /\bEPERM\b|operation not permitted/i;

/** Advice about a server from which macOS keeps a folder such as Documents, because it counts a process to the program that started it. */
function adviseOnAccess({ service, platform }: StatusFacts, { cause, isRemote }: ServerFacts): string {
  if (platform !== 'darwin' || isRemote === true || !cause.some((line) => KEPT_FROM_PROGRAM.test(line))) return '';
  const cure =
    service?.kind === 'hub'
      ? 'run `trunkline hub restart` in a terminal that has the access'
      : 'allow it to that program in System Settings, Privacy & Security';
  return `macOS may keep the folder from it, as from the program that has started Trunkline: ${cure}.`;
}

/** Advice, as a clause, about a server behind a URL that cannot be reached. `defaults.env` does not apply to its requests. */
export function cureOfRemote(failure: string): string {
  return ERROR_SIGNS.certificate.text.test(failure)
    ? 'behind a private certificate authority, set its `caFile` to the file with the certificates'
    : 'check the network, `url` and `proxy`';
}

function adviseOnNetwork({ backend, lifecycle, logLines, sandboxRemarks, isRemote = false }: ServerFacts): string {
  if (isRemote) return '';
  const { state, consecutiveFailures = 0 } = lifecycle ?? {};
  const isFailing = state === 'parked' || state === 'backoff' || (state === 'starting' && consecutiveFailures > 0);
  const trouble = isFailing ? findNetworkTrouble(logLines) : undefined;
  if (trouble === undefined) return '';
  const cure =
    sandboxRemarks === undefined || !canBeOfSandbox(lifecycle?.lastFailure?.reason)
      ? trouble.cure
      : `it is confined, and \`trunkline sandbox ${backend.key} --try\` shows which names it needs`;
  return `Its log shows ${trouble.problem}: ${cure}.`;
}

/** Assesses a server that runs, but may be unable to list its tools. */
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

const SHORT_OF_RESOURCES = 'This machine lacks a resource that a new process needs, so the server is not at fault.';

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

/** A sentence about the tools of a server that fails calls at once and keeps its lists. Empty without tools. */
function toolsStay(backend: Backend): string {
  const count = toolCount(backend);
  return count === 0 ? '' : ` Its ${count === 1 ? 'tool stays' : `${count} tools stay`} listed.`;
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

/** Number of log lines that are searched, from the end. Older lines may belong to an earlier start. */
const LAST_LINES = 20;

const WHERE = 'in the environment that starts Trunkline, or in `defaults.env` of the configuration';

/** Signs of network errors. Only the matching text is shown, because the rest of a line may say anything. */
const SIGNS: readonly (readonly [sign: RegExp, kind: string, cure: string])[] = [
  [
    ERROR_SIGNS.certificate.text,
    'certificate',
    `behind a private certificate authority, set \`NODE_EXTRA_CA_CERTS\` (for Python, \`SSL_CERT_FILE\`) to the file with its certificates, ${WHERE}`,
  ],
  [ERROR_SIGNS.network.text, 'network', `check the network connection; behind a proxy, set \`HTTPS_PROXY\`, ${WHERE}`],
];

/** Finds a certificate error, or else a network error, at the end of a log. Problem and cure are phrases of a sentence. */
export function findNetworkTrouble(lines: readonly string[]): { problem: string; cure: string } | undefined {
  const last = lines.slice(-LAST_LINES).join('\n');
  for (const [sign, kind, cure] of SIGNS) {
    const found = sign.exec(last)?.[0];
    if (found !== undefined) return { problem: `a ${kind} error (${found})`, cure };
  }
  return undefined;
}

/** Returns the highest limit of a client (`LIMITED_CLIENTS`) that `count` tools reach, or 0. */
function reachedLimit(count: number): number {
  return Math.max(0, ...LIMITED_CLIENTS.flatMap(({ tools }) => (count >= tools ? [tools] : [])));
}

/** Returns advice on the number of listed tools. Empty if it reaches no client's limit. */
export function adviseOnToolCount(count: number): string {
  const limit = reachedLimit(count);
  if (limit === 0) return '';
  return `${count} tools are listed. Some clients accept no more than ${limit}, and models choose worse among many tools. To list fewer, set \`tools.allow\` or \`tools.deny\` of a server.`;
}

/** Returns a function that takes the current tool count, and calls `warn` when the count reaches a higher client limit. */
export function createToolCountWarning(warn: (advice: string) => void): (count: number) => void {
  let warnedAt = 0;
  return (count) => {
    const limit = reachedLimit(count);
    if (limit <= warnedAt) return;
    warnedAt = limit;
    warn(adviseOnToolCount(count));
  };
}
