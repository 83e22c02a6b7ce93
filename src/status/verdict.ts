import { CODES, type Code } from '../host/errors/codes.js';
import { ERROR_SIGNS } from '../host/errors/error-text.js';
import { WITHHELD_BECAUSE } from '../spec/tool-approvals.js';
import { describeBytes, plural, sentence } from '../wire/json/printable.js';
import type { ListReport, ServerReport } from './status.js';
import { CONFINEMENT, cureOfRemote, findNetworkTrouble } from './status-advice.js';

/** The reason why a server did not start, or does not list its tools. */
export interface Fault {
  /** Phase of the start: installation, spawn, confinement or connection, then handshake, then lists. */
  readonly phase: string;
  readonly code: Code;
  /** Whether the output of the server shows the cause that `code` names. */
  readonly isInOutput: boolean;
  /** The cause, in one line, with *it* for the server. */
  readonly reason: string;
  readonly remedy: string;
  /** Network problem in the output. The words are the same for all servers, so that they can be grouped. */
  readonly trouble: string | undefined;
}

/** Judges a server that failed, or that runs and does not list its tools. `startMs` is its start timeout, if that is known. */
export function faultOf(report: ServerReport, startMs?: number): Fault {
  const usual = usualFault(report, report.lastFailure ?? 'unknown', startMs);
  const remedy = usual.remedy ?? remedyOf(usual.code, report.server);
  const fault = { ...usual, remedy, isInOutput: false, trouble: undefined };
  // `SIGNS` match the output of programs, so they do not apply if no program ran.
  if (report.remote || usual.code === 'TL-SERVER-SPAWN' || usual.phase === 'confinement') return fault;
  const lines = [report.lastFailure ?? '', ...outputOf(report), report.tools.failure ?? ''];
  const code = SIGNS.find(([sign]) => sign.test(lines.join('\n')))?.[1];
  const known =
    code === undefined ? fault : { ...fault, code, remedy: remedyOf(code, report.server), isInOutput: true };
  const trouble = usual.phase === 'lists' ? undefined : findNetworkTrouble(report.log);
  if (trouble === undefined) return known;
  return { ...known, remedy: `Its output shows ${trouble.problem}: ${trouble.cure}.`, trouble: trouble.problem };
}

export function remedyOf(code: Code, server: string): string {
  return CODES[code].remedy.replaceAll('SERVER', server);
}

interface Usual {
  readonly phase: Fault['phase'];
  readonly code: Code;
  readonly reason: string;
  readonly remedy?: string;
}

function usualFault(report: ServerReport, reason: string, startMs: number | undefined): Usual {
  const { remote, state, tools, advice, lastExit } = report;
  const confined = CONFINEMENT.exec(reason)?.groups;
  if (confined?.reason !== undefined) {
    const { remedy, code } = confined;
    const known = { phase: 'confinement', code: code as Code, reason: confined.reason };
    return remedy === undefined ? known : { ...known, remedy: sentence(remedy) };
  }
  if (state === 'ready' && tools.failure !== null) {
    const text = `it runs, but its tools cannot be listed: ${tools.failure}`;
    return { phase: 'lists', code: 'TL-SERVER-LISTS', reason: text, ...(advice !== '' && { remedy: advice }) };
  }
  if (reason.includes('could not be installed'))
    return { phase: 'installation', code: 'TL-SERVER-NOT-INSTALLED', reason };
  if (state === 'offline') {
    const remedy = /\bHTTP \d/.test(reason) ? 'Try again later, or check `url`.' : sentence(cureOfRemote(reason));
    return { phase: 'connection', code: 'TL-SERVER-UNREACHABLE', reason, remedy };
  }
  if (state === 'blocked') return { phase: 'connection', code: 'TL-SERVER-LOGIN', reason };
  if (/\((?:EMFILE|ENFILE|EAGAIN|ENOMEM)\)/.test(reason))
    return { phase: 'spawn', code: 'TL-SERVER-RESOURCES', reason };
  if (!remote && /\(E[A-Z]+\)/.test(reason)) return { phase: 'spawn', code: 'TL-SERVER-SPAWN', reason };
  const phase = 'handshake';
  if (isTimeout(reason)) {
    const limit = startMs === undefined ? 'in time (setting `startTimeout`)' : `within ${startMs / 1000} s`;
    const remedy = remote && { remedy: 'Check `url`. If it needs more time, raise `startTimeout`.' };
    return { phase, code: 'TL-SERVER-SILENT', reason: `it was not ready ${limit}`, ...remedy };
  }
  if (isExit(reason)) {
    const { code, signal } = lastExit ?? {};
    const how = lastExit === null ? 'without an exit code' : signal ? `by signal ${signal}` : `with exit code ${code}`;
    return { phase, code: 'TL-SERVER-EXITED', reason: `it ended ${how} before it was ready` };
  }
  return { phase, code: 'TL-SERVER-HANDSHAKE', reason, ...(remote && { remedy: 'Check `url` and `transport`.' }) };
}

/** Whether a failure is the exit of the process, which may be noticed before or after the failure of the handshake. */
export function isExit(failure: string): boolean {
  return failure === 'exited' || failure.endsWith(': exited');
}

export function isTimeout(failure: string): boolean {
  return failure === 'start-timeout' || failure.endsWith(': timeout');
}

/** The lines of the server's output that name the cause of a failure, or else the last lines. */
export function outputOf({ cause, log, lastFailure }: ServerReport): readonly string[] {
  // A server that could not be confined has no output, and its log has the reason only.
  if (lastFailure?.includes('(TL-SANDBOX-') === true) return [];
  return cause.length > 0 ? cause : log;
}

/** Causes of failures that the output of a server shows. The first sign that matches wins, so the narrow ones come first. */
const SIGNS: readonly (readonly [sign: RegExp, code: Code])[] = [
  [/\bEADDRINUSE\b|address already in use/i, 'TL-SERVER-PORT'],
  [
    /\b(?:ENOSPC|EMFILE|ENFILE)\b|no space left on device|too many open files|cannot allocate memory/i,
    'TL-SERVER-RESOURCES',
  ],
  [ERROR_SIGNS.certificate.text, 'TL-SERVER-CERTIFICATE'],
  [
    /GLIBC\w*_\d|node-gyp|\bgyp ERR|NODE_MODULE_VERSION|\.node'?: (?:invalid ELF|cannot open)|bindings file|dlopen/i,
    'TL-SERVER-NATIVE',
  ],
  [
    /\bERR_REQUIRE_ESM\b|Unexpected token '[?|&]{2}=?'|Unexpected token '\?\.'|is not supported by this version of Node|EBADENGINE|requires (?:a )?Node(?:\.js)? (?:version )?(?:>=|v?\d)/i,
    'TL-SERVER-OLD-RUNTIME',
  ],
  [
    /\b(?:Cannot find (?:module|package)|ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|ModuleNotFoundError|ImportError|No module named)\b/,
    'TL-SERVER-MODULE',
  ],
  [
    /\b(?:401|403) |unauthori[sz]ed|invalid[ _-](?:api[ _-]?key|token)|bad credentials|authentication (?:failed|required)|(?:api[ _-]?key|token|credentials?|password|secret)\b.{0,40}\b(?:is |are |not |must )?(?:required|missing|not (?:set|provided|found)|be (?:set|provided)|invalid)|(?:missing|required|provide|set)\b.{0,40}\b\w*(?:api[ _-]?key|_key|token|credentials?|password|secret)\b/i,
    'TL-SERVER-UNAUTHORIZED',
  ],
  [ERROR_SIGNS.network.text, 'TL-SERVER-NETWORK'],
  [
    /\b(?:ENOENT|EACCES|EPERM|ENOTDIR|EROFS)\b|no such file or directory|permission denied|operation not permitted/i,
    'TL-SERVER-FILE',
  ],
];

export interface Remark {
  /** Null for a remark that is no finding of the doctor. */
  readonly code: Code | null;
  /** The remark as a phrase. If there are items, they follow it behind a colon. */
  readonly label: string;
  readonly items: readonly string[];
}

/** Number of consecutive announcements without a change from which on they get a remark. */
const MANY_UNCHANGED = 5;

/** Remarks on the lists and the results of a server: entries that are missing or changed, and lists that are incomplete. */
export function remarksOnLists(report: ServerReport): Remark[] {
  const { tools, prompts, resources, resourceTemplates, repairedResults, unshaped } = report;
  const others = [prompts, resources, resourceTemplates];
  const lists = [tools, ...others];
  const failed = ({ failure }: ListReport) => (failure === null ? [] : [`${failure} (Trunkline asks again)`]);
  const often = lists.flatMap(({ unchanged = 0 }) => (unchanged < MANY_UNCHANGED ? [] : [unchanged]));
  return [
    // Servers that do not list their tools have a problem with a code of its own.
    ...remark(null, 'list failed', failed(tools)),
    ...remark('TL-SERVER-LIST-MISSING', 'list failed', others.flatMap(failed)),
    ...remark(
      'TL-SERVER-QUARANTINED',
      'not listed',
      lists.flatMap(({ quarantined }) => quarantined.map(withReason)),
    ),
    ...remark(
      null,
      'listed without a malformed part',
      lists.flatMap(({ repaired }) => repaired.map(withReason)),
    ),
    ...remark(
      'TL-SERVER-TRUNCATED',
      'list cut short',
      lists.flatMap(({ truncated }) => truncated ?? []),
    ),
    ...remark(
      null,
      'list announced as changed',
      often.map((count) => `${count} times without a change, so it is read seldom`),
    ),
    ...remark(null, 'results repaired', (repairedResults ?? []).map(withReason)),
    ...remark(null, '`tools` of the configuration', unshaped),
    ...remark(
      'TL-SERVER-HIDDEN-TEXT',
      'invisible characters in the description',
      lists.flatMap(({ hiding }) => hiding),
    ),
  ];
}

export const INSECURE =
  'messages and credentials cross the network in plain text, as `insecure: true` in its entry allows';

export function remarksOn(report: ServerReport): Remark[] {
  const { server, state, problem, dropped, log, sandbox, insecure } = report;
  // A server that has ended has no counters any more; its log remains.
  const stray = log.filter((line) => line.startsWith('stdout ('));
  const junk = Math.max(dropped.junk ?? 0, stray.length);
  const lines = `${plural(junk, 'line')} on stdout ${junk === 1 ? 'is' : 'are'} no MCP message and was skipped`;
  const refused = (sandbox?.remarks ?? []).filter((each) => each.startsWith('The sandbox refused'));
  const saving = describeSaving(report);
  const waiting = waitingIn(report).map(({ name }) => name);
  return [
    ...remarksOnLists(report),
    ...remark('TL-SERVER-STDOUT', lines, stray, junk > 0),
    ...remark('TL-SANDBOX-REFUSED', 'refused by the sandbox', refused),
    ...remark('TL-SERVER-INSECURE', INSECURE, [], insecure),
    ...remark('TL-SERVER-SHARING', `a process for each session: ${saving}`, [], saving !== undefined),
    ...remark('TL-SERVER-APPROVAL', `wait for approval with \`trunkline approve ${server}\``, waiting),
    ...remark('TL-SERVER-EMPTY', 'it offers nothing', [], state === 'ready' && problem === '' && offersNothing(report)),
  ];
}

function remark(code: Code | null, label: string, items: readonly string[], isThere = items.length > 0): Remark[] {
  return isThere ? [{ code, label, items }] : [];
}

function withReason({ name, reason }: ListReport['quarantined'][number]): string {
  return `${name} (${reason})`;
}

/** The remark on one line, with at most `max` items. */
export function remarkText({ label, items }: Remark, max = Number.POSITIVE_INFINITY): string {
  const more = items.length > max ? `, and ${items.length - max} more` : '';
  return items.length === 0 ? label : `${label}: ${items.slice(0, max).join(', ')}${more}`;
}

/** The tools that are new or have changed, and wait for approval. */
export function waitingIn({ approval, tools }: ServerReport): ListReport['quarantined'] {
  const { changed, new: isNew } = WITHHELD_BECAUSE;
  return tools.quarantined.filter(({ reason }) => approval !== null && (reason === changed || reason === isNew));
}

/** Whether a server lists nothing, although its lists can be read and nothing of them is left out. */
export function offersNothing({ tools, prompts, resources, resourceTemplates }: ServerReport): boolean {
  return [tools, prompts, resources, resourceTemplates].every(({ exposed, quarantined, denied, failure }) => {
    return exposed.length + quarantined.length + denied.length === 0 && failure === null;
  });
}

/**
 * Describes how many processes a server has, and how much memory a single one would save, if each session has a process because
 * it is unknown whether the server keeps state. `undefined` if there is nothing to save.
 */
export function describeSaving({ sharing, instances }: ServerReport): string | undefined {
  const sizes = instances.flatMap(({ pid, memoryBytes }) => (pid === null ? [] : [memoryBytes ?? 0]));
  if (sharing?.rule !== 'unknown' || sharing.mode !== 'isolated' || sizes.length < 2) return undefined;
  const saved = sizes.reduce((sum, size) => sum + size, 0) - Math.max(...sizes);
  return `${sizes.length} processes; one would save ${saved > 0 ? `about ${describeBytes(saved)}` : 'memory'}`;
}
