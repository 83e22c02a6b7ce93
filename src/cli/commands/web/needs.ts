import { WITHHELD_BECAUSE } from '../../../gateway/catalog/exposed-list.js';
import type { ServerReport, StatusReport } from '../../../gateway/status/status.js';
import { NEAR, plural } from '../../../gateway/status/status-text.js';
import type { HubDescription } from '../../../hub/control.js';
import { describeBytes, quotedPath } from '../../../json/printable.js';
import { VERSION } from '../../../version.js';
import type { Need, UsagePoint } from '../../../web/contract.js';

export interface NeedsFacts {
  readonly hub: HubDescription;
  readonly report: StatusReport;
  /** Latest usage by instance, which is newer than that of the report. */
  readonly usage: readonly UsagePoint[];
}

/** The things that a person should do, most urgent first, in the words of the status. */
export function needsOf(facts: NeedsFacts): Need[] {
  const { servers } = facts.report;
  const needs = [...ofConfig(facts), ...servers.flatMap((server) => ofServer(facts, server)), ...ofGateway(facts)];
  return [...needs.filter(({ level }) => level === 'fail'), ...needs.filter(({ level }) => level === 'warn')];
}

type Brief = Pick<Need, 'id' | 'level' | 'title'> & Partial<Need>;

function need(brief: Brief): Need {
  return { code: null, server: null, detail: '', cause: [], command: null, action: null, ...brief };
}

/** A command of this program for the configuration of the hub. */
function command(words: string, { hub }: NeedsFacts): string {
  return `trunkline ${words} --config ${quotedPath(hub.configFile, process.platform)}`;
}

function ofConfig(facts: NeedsFacts): Need[] {
  const { configFault, configInForce, configNeedsRestart } = facts.report;
  const inForce = configInForce === 'previous' ? 'The servers run on with the previous configuration.' : '';
  const fault =
    configFault === null
      ? []
      : [
          need({
            ...{ id: 'config', level: 'fail', title: 'The configuration file has mistakes.', detail: inForce },
            ...{ cause: configFault.split('\n'), command: command('check', facts) },
          }),
        ];
  const restart =
    configNeedsRestart.length === 0
      ? []
      : [
          need({
            ...{
              id: 'config-restart',
              level: 'warn',
              title: `Changes of ${configNeedsRestart.join(', ')} wait for a restart.`,
            },
            command: command('hub restart', facts),
          }),
        ];
  return [...fault, ...restart];
}

/** States in which a restart by a person helps. */
const RESTARTED = new Set<ServerReport['state']>(['parked', 'backoff', 'starting', 'suspect', 'ready']);
/** States from which a server comes back without a person. */
const PASSING = new Set<ServerReport['state']>(['backoff', 'starting', 'suspect', 'ready', 'offline']);

function ofServer(facts: NeedsFacts, server: ServerReport): Need[] {
  return [
    ...ofProblem(facts, server),
    ...ofEmptyLists(facts, server),
    ...ofApproval(facts, server),
    ...ofLimits(facts, server),
    ...ofShapes(server),
  ];
}

function ofProblem(
  facts: NeedsFacts,
  { server, state, problem, advice, code, cause, log, lastFailure }: ServerReport,
): Need[] {
  if (problem === '') return [];
  const [title = '', ...rest] = problem
    .replace(/^Its\b/, `${server}: its`)
    .replace(/^It\b/, server)
    .split(/(?<=\.) /);
  const isBlocked = state === 'blocked';
  const restart = { words: `restart ${server}`, action: { kind: 'restart', server } } as const;
  const login = { words: `login ${server}`, action: { kind: 'login', server } } as const;
  const check = { words: 'check', action: { kind: 'doctor', server } } as const;
  const remedy = isBlocked ? login : state === 'misconfigured' ? check : RESTARTED.has(state) ? restart : undefined;
  const shown = cause.length > 0 ? cause : log;
  return [
    need({
      ...{ id: `server:${server}:${code ?? state}`, level: PASSING.has(state) ? 'warn' : 'fail', code, server, title },
      detail: [...rest, advice].filter(Boolean).join(' '),
      cause: shown.length > 0 || lastFailure === null ? shown : [lastFailure],
      command: remedy === undefined ? null : command(remedy.words, facts),
      action: remedy?.action ?? null,
    }),
  ];
}

/** A server that lost its lists in a restart answers, so its state is good, but it is of no use. */
function ofEmptyLists(facts: NeedsFacts, report: ServerReport): Need[] {
  const { server, state, problem, log, tools, prompts, resources, resourceTemplates } = report;
  const lists = [tools, prompts, resources, resourceTemplates];
  const isEmpty = lists.every(
    ({ exposed, denied, quarantined }) => exposed.length + denied.length + quarantined.length === 0,
  );
  if (state !== 'ready' || problem !== '' || !isEmpty) return [];
  return [
    need({
      ...{ id: `empty:${server}`, level: 'warn', server, cause: log },
      title: `${server} runs, but it has no tools, prompts or resources.`,
      detail: 'Its output or its documentation may say what it needs. A restart reads its lists again.',
      command: command(`restart ${server}`, facts),
      action: { kind: 'restart', server },
    }),
  ];
}

function ofApproval(facts: NeedsFacts, { server, approval, tools }: ServerReport): Need[] {
  if (approval === null) return [];
  const about = { server, code: 'TL-SERVER-APPROVAL', command: command(`approve ${server}`, facts) };
  if (approval.fault !== null)
    return [
      need({
        ...about,
        id: `approval:${server}`,
        level: 'fail',
        title: `The approved tools of ${server} cannot be used.`,
        detail: approval.fault,
      }),
    ];
  const waiting = tools.quarantined.filter(
    ({ reason }) => reason === WITHHELD_BECAUSE.changed || reason === WITHHELD_BECAUSE.new,
  );
  if (waiting.length === 0) return [];
  const changed = waiting.filter(({ reason }) => reason === WITHHELD_BECAUSE.changed).length;
  const kinds = [changed > 0 && `${changed} changed`, waiting.length > changed && `${waiting.length - changed} new`];
  const title = `${server}: ${plural(waiting.length, 'tool')} ${waiting.length === 1 ? 'waits' : 'wait'} for approval (${kinds.filter(Boolean).join(', ')}).`;
  const detail = `Clients do not see ${waiting.length === 1 ? 'it' : 'them'} until you approve.`;
  const cause = waiting.map(({ name, reason }) => `${name}: ${reason}`);
  return [
    need({
      ...about,
      id: `approval:${server}`,
      level: 'warn',
      title,
      detail,
      cause,
      action: { kind: 'review', server },
    }),
  ];
}

function ofLimits({ hub, usage }: NeedsFacts, { server, resourceLimits }: ServerReport): Need[] {
  const { memoryBytes: max, processes: maxProcesses } = resourceLimits;
  const instances = hub.servers.filter((each) => each.server === server);
  const memory = instances.map(
    ({ id, memoryBytes }) => usage.find((point) => point.id === id)?.memoryBytes ?? memoryBytes ?? 0,
  );
  const usedBytes = Math.max(0, ...memory);
  const processes = Math.max(0, ...instances.map((each) => each.processes ?? 0));
  const detail = 'Trunkline restarts it beyond the limit, and its calls in flight fail.';
  const about = { level: 'warn', server, detail } as const;
  const isNear = (used: number, limit: number | null) => limit !== null && used >= NEAR * limit;
  return [
    ...(isNear(usedBytes, max)
      ? [
          need({
            ...about,
            id: `memory:${server}`,
            title: `${server} uses ${describeBytes(usedBytes)} of its limit of ${describeBytes(max ?? 0)}.`,
          }),
        ]
      : []),
    ...(isNear(processes, maxProcesses)
      ? [
          need({
            ...about,
            id: `processes:${server}`,
            title: `${server} has ${processes} of the ${maxProcesses} processes that it may have.`,
          }),
        ]
      : []),
  ];
}

/** Names that the configuration shapes, and that the server does not have. */
function ofShapes({ server, unshaped }: ServerReport): Need[] {
  if (unshaped.length === 0) return [];
  const title = `The configuration of ${server} names tools or parameters that it does not have.`;
  return [need({ id: `names:${server}`, level: 'warn', server, title, cause: unshaped })];
}

function ofGateway(facts: NeedsFacts): Need[] {
  const { report, hub } = facts;
  const { waitingCalls } = report.limits;
  const needs: Need[] = [];
  if (waitingCalls.now >= NEAR * waitingCalls.max && waitingCalls.max > 0) {
    const title = `${waitingCalls.now} of at most ${waitingCalls.max} calls wait in the queues of all servers.`;
    needs.push(need({ id: 'queue', level: 'warn', title, detail: 'Further calls are refused at once.' }));
  }
  for (const { header, count, last, code, advice } of report.refusedNames) {
    const title = `${plural(count, 'request')} with the ${header} ${last} ${count === 1 ? 'was' : 'were'} refused.`;
    needs.push(need({ id: `refused:${header}`, level: 'warn', code, title, detail: advice }));
  }
  if (report.advice !== '') {
    const [title = '', ...rest] = report.advice.split(/(?<=\.) /);
    needs.push(need({ id: 'tools', level: 'warn', code: 'TL-TOOLS-MANY', title, detail: rest.join(' ') }));
  }
  if (hub.version !== VERSION) {
    const title = `The hub has version ${hub.version}, and this command has version ${VERSION}.`;
    const detail = 'Clients move to the new hub when they have no call in flight.';
    needs.push(need({ id: 'version', level: 'warn', title, detail, command: command('hub restart', facts) }));
  }
  return needs;
}
