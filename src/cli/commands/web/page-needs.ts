import type { HubDescription } from '../../../hub/control.js';
import { WITHHELD_BECAUSE } from '../../../spec/tool-approvals.js';
import type { ServerReport, StatusReport } from '../../../status/status.js';
import { isNear } from '../../../status/status-text.js';
import { offersNothing, waitingIn } from '../../../status/verdict.js';
import { VERSION } from '../../../version.js';
import type { Need } from '../../../web/server/contract.js';
import { describeBytes, plural, quotedPath } from '../../../wire/json/printable.js';

/** Takes a need. `words` are the arguments of the command that does it. */
type Add = (
  id: string,
  level: Need['level'],
  title: string,
  more?: Partial<Need> & { readonly words?: string },
) => void;

/** The things that a person should do, most urgent first, in the words of the status. */
export function needsOfHub(hub: HubDescription, report: StatusReport): Need[] {
  const needs: Need[] = [];
  const config = quotedPath(hub.configFile, process.platform);
  const add: Add = (id, level, title, { words, ...more } = {}) => {
    const command = words === undefined ? null : `trunkline ${words} --config ${config}`;
    const none = { code: null, server: null, detail: '', cause: [], action: null, question: null };
    needs.push({ id, level, title, ...none, command, ...more });
  };
  addQuestions(report, add);
  addConfig(report, add);
  for (const server of report.servers) {
    // Each need of a server has its name.
    const addOwn: Add = (id, level, title, more) => add(id, level, title, { server: server.server, ...more });
    addProblem(server, addOwn);
    addEmptyLists(server, addOwn);
    addApproval(server, addOwn);
    addLimits(server, hub, addOwn);
    if (server.unshaped.length > 0) {
      const title = `The configuration of ${server.server} names tools or parameters that it does not have.`;
      addOwn(`names:${server.server}`, 'warn', title, { cause: server.unshaped });
    }
  }
  addGateway(report, hub, add);
  return needs.toSorted((one, other) => Number(other.level === 'fail') - Number(one.level === 'fail'));
}

function addQuestions({ questions }: StatusReport, add: Add): void {
  for (const { id, server, kind, name, arguments: args, client, user, rule, say } of questions) {
    if (id === null) continue;
    const who = user === null ? client : `${client} of ${user}`;
    add(`question:${id}`, 'fail', `A call of ${server} waits for your yes.`, {
      detail: `The configuration asks first (${rule})${say === null ? '.' : `: ${say}`}`,
      cause: [`${kind} ${name}, called by ${who}`, ...(args === '' ? [] : [args])],
      words: `allow ${id}`,
      ...{ server, question: id },
    });
  }
}

function addConfig({ configFault, configInForce, configNeedsRestart }: StatusReport, add: Add): void {
  if (configFault !== null) {
    const detail = configInForce === 'previous' ? 'The servers run on with the previous configuration.' : '';
    const cause = configFault.split('\n');
    add('config', 'fail', 'The configuration file has mistakes.', { detail, cause, words: 'check' });
  }
  if (configNeedsRestart.length > 0) {
    const title = `Changes of ${configNeedsRestart.join(', ')} wait for a restart.`;
    add('config-restart', 'warn', title, { words: 'hub restart' });
  }
}

/** States in which a restart by a person helps. */
const RESTARTED = new Set<ServerReport['state']>(['parked', 'backoff', 'starting', 'suspect', 'ready']);
/** States from which a server comes back without a person. */
const PASSING = new Set<ServerReport['state']>(['backoff', 'starting', 'suspect', 'ready', 'offline']);

function addProblem({ server, state, problem, advice, code, cause, log, lastFailure }: ServerReport, add: Add): void {
  if (problem === '') return;
  const [title = '', ...rest] = sentences(problem.replace(/^Its\b/, `${server}: its`).replace(/^It\b/, server));
  const shown = cause.length > 0 ? cause : log;
  const about = {
    code,
    detail: [...rest, advice].filter(Boolean).join(' '),
    cause: shown.length > 0 || lastFailure === null ? shown : [lastFailure],
  };
  const remedy =
    state === 'blocked'
      ? ({ words: `login ${server}`, action: 'login' } as const)
      : RESTARTED.has(state)
        ? ({ words: `restart ${server}`, action: 'restart' } as const)
        : state === 'misconfigured' && { words: 'check' };
  add(`server:${server}:${code ?? state}`, PASSING.has(state) ? 'warn' : 'fail', title, { ...about, ...remedy });
}

/** Adds a need for a ready server without tools, prompts and resources, for example one that lost its lists in a restart. */
function addEmptyLists(report: ServerReport, add: Add): void {
  const { server, state, problem, log } = report;
  if (state !== 'ready' || problem !== '' || !offersNothing(report)) return;
  const detail = 'Its output or its documentation may say what it needs. A restart reads its lists again.';
  const remedy = { words: `restart ${server}`, action: 'restart' } as const;
  const title = `${server} runs, but it has no tools, prompts or resources.`;
  add(`empty:${server}`, 'warn', title, { detail, cause: log, ...remedy });
}

function addApproval(report: ServerReport, add: Add): void {
  const { server, approval } = report;
  const about = { code: 'TL-SERVER-APPROVAL', words: `approve ${server}` };
  const id = `approval:${server}`;
  if (approval !== null && approval.fault !== null) {
    add(id, 'fail', `The approved tools of ${server} cannot be used.`, { ...about, detail: approval.fault });
    return;
  }
  const waiting = waitingIn(report);
  if (waiting.length === 0) return;
  const changed = waiting.filter(({ reason }) => reason === WITHHELD_BECAUSE.changed).length;
  const [verb, object] = waiting.length === 1 ? ['waits', 'it'] : ['wait', 'them'];
  const kinds = [changed > 0 && `${changed} changed`, waiting.length > changed && `${waiting.length - changed} new`];
  add(
    id,
    'warn',
    `${server}: ${plural(waiting.length, 'tool')} ${verb} for approval (${kinds.filter(Boolean).join(', ')}).`,
    {
      ...about,
      detail: `Clients do not see ${object} until you approve.`,
      cause: waiting.map(({ name, reason }) => `${name}: ${reason}`),
      action: 'review',
    },
  );
}

/** Adds a need if an instance of the server is near one of its limits. */
function addLimits({ server, resourceLimits: limits }: ServerReport, { servers }: HubDescription, add: Add): void {
  const own = servers.filter((each) => each.server === server);
  const bytes = Math.max(0, ...own.map(({ memoryBytes }) => memoryBytes ?? 0));
  const processes = Math.max(0, ...own.map((each) => each.processes ?? 0));
  const detail = 'Trunkline restarts it beyond the limit, and its calls in flight fail.';
  if (isNear(bytes, limits.memoryBytes)) {
    const title = `${server} uses ${describeBytes(bytes)} of its limit of ${describeBytes(limits.memoryBytes ?? 0)}.`;
    add(`memory:${server}`, 'warn', title, { detail });
  }
  if (isNear(processes, limits.processes)) {
    const title = `${server} has ${processes} of the ${limits.processes} processes that it may have.`;
    add(`processes:${server}`, 'warn', title, { detail });
  }
}

function addGateway({ limits, refusedNames, advice }: StatusReport, hub: HubDescription, add: Add): void {
  const { now, max } = limits.waitingCalls;
  if (max > 0 && isNear(now, max)) {
    const title = `${now} of at most ${max} calls wait in the queues of all servers.`;
    add('queue', 'warn', title, { detail: 'Further calls are refused at once.' });
  }
  for (const { header, count, last, code, advice: detail } of refusedNames) {
    const title = `${plural(count, 'request')} with the ${header} ${last} ${count === 1 ? 'was' : 'were'} refused.`;
    add(`refused:${header}`, 'warn', title, { code, detail });
  }
  if (advice !== '') {
    const [title = '', ...rest] = sentences(advice);
    add('tools', 'warn', title, { code: 'TL-TOOLS-MANY', detail: rest.join(' ') });
  }
  if (hub.version !== VERSION) {
    const title = `The hub has version ${hub.version}, and this command has version ${VERSION}.`;
    const detail = 'Clients move to the new hub when they have no call in flight.';
    add('version', 'warn', title, { detail, words: 'hub restart' });
  }
}

function sentences(text: string): string[] {
  return text.split(/(?<=\.) /);
}
