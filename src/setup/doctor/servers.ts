import type { Code } from '../../host/errors/codes.js';
import { ERROR_SIGNS } from '../../host/errors/error-text.js';
import { LIMITED_CLIENTS, type ListDecision, MAX_LIST_TOKENS } from '../../spec/list-modes.js';
import type { ListReport, ServerReport } from '../../status/status.js';
import { describeEra, describeSaving, describeSharing, plural } from '../../status/status-text.js';
import { type ToolAdvice, UNUSED_DAYS } from '../../status/tool-advice.js';
import { estimateTokens } from '../../wire/mcp/entry-check.js';
import { type Finding, finding, sentence, someOf } from './finding.js';

/** A server that the doctor has started, or one of the running hub. */
export interface ObservedServer {
  readonly report: ServerReport;
  /** From spawn to ready, in milliseconds; absent for a server of a running hub. */
  readonly readyAfterMs?: number | undefined;
  /** The signal that ended its process, if the process did not end after its stdin was closed. */
  readonly endedBy?: string | undefined;
  /** Number of processes outside of its process group that still ran after its end. */
  readonly leftProcesses?: number | undefined;
  /** The outcome of a `ping`; absent if none was sent. */
  readonly ping?: 'answered' | 'refused' | 'silent' | undefined;
  /** Cause and advice, if the start failed. */
  readonly diagnosis?: { readonly reason: string; readonly hint: string } | undefined;
}

const MAX_LINES = 20;

/** States of a hub's server that are no fault, although its tools do not work. */
const PENDING: Readonly<Partial<Record<ServerReport['state'], Code>>> = {
  installing: 'TL-SERVER-INSTALLING',
  starting: 'TL-SERVER-STARTING',
  stopped: 'TL-SERVER-STOPPED',
};

/** Reports whether a server starts, its mistakes, and the entries that are not listed. */
export function checkServer(observed: ObservedServer): Finding[] {
  const failure = failureOf(observed);
  const remarks = [...remarksOn(observed.report), ...remarksOnPing(observed), ...remarksOnEnd(observed)];
  if (failure !== undefined) return [failure, ...remarks];
  const { server, state, tools, protocolVersion, era, advice } = observed.report;
  const pending = PENDING[state];
  if (pending !== undefined)
    return [finding(pending, `server \`${server}\` is ${state}`, [], { remedy: advice || undefined }), ...remarks];
  const start = observed.readyAfterMs === undefined ? state : `ready after ${Math.round(observed.readyAfterMs)} ms`;
  const how = era === null ? '' : ` (${describeEra(era)})`;
  const phases = protocolVersion === null ? [] : [`revision ${protocolVersion}${how}`];
  const text = [`server \`${server}\`: ${start}`, ...phases, plural(tools.exposed.length, 'tool')].join(', ');
  const { sharing } = observed.report;
  const shared = sharing === null ? [] : [`sharing: ${describeSharing(sharing)}, because ${sharing.because}`];
  const lists = [tools, observed.report.prompts, observed.report.resources, observed.report.resourceTemplates];
  const isEmpty = lists.every(({ exposed, quarantined, denied, failure }) => {
    return exposed.length + quarantined.length + denied.length === 0 && failure === null;
  });
  const offers = isEmpty ? [finding('TL-SERVER-EMPTY', `server \`${server}\` offers nothing`)] : [];
  return [finding('TL-SERVER-OK', text, shared), ...offers, ...remarks];
}

function failureOf({ report, diagnosis }: ObservedServer): Finding | undefined {
  const { server, problem, advice, code, cause, log, lastFailure } = report;
  // A report with a code and without a problem leads to a remark below.
  if (diagnosis === undefined && problem === '') return undefined;
  if (report.state === 'misconfigured') return undefined;
  // The program is not at fault, so its output does not count.
  if (code === 'TL-VAR-USER') return finding(code, `server \`${server}\`: ${problem}`, [], { remedy: advice });
  const output = (cause.length > 0 ? cause : log).filter((line) => line !== lastFailure).slice(-MAX_LINES);
  const { phase, code: usual } = phaseOf(report);
  const reason = diagnosis?.reason ?? problem;
  const remedy = diagnosis === undefined ? advice : sentence(diagnosis.hint);
  const isFirst = code === null || diagnosis !== undefined;
  // The signs are those of programs.
  const known =
    usual === 'TL-SERVER-SPAWN' || report.remote
      ? undefined
      : causeIn([lastFailure ?? '', ...output, report.tools.failure ?? '']);
  const chosen = known ?? (isFirst ? usual : (code as Code));
  const evidence = [`phase: ${phase}`, ...output];
  // The table knows more about a known cause than the diagnosis of the failure does.
  const mending = known === undefined ? { remedy } : {};
  return finding(chosen, `server \`${server}\`: ${reason}`, evidence, mending);
}

/** The phase in which a start failed: installed → spawned, or connected → handshake → lists. */
function phaseOf({ remote, state, lastFailure, tools, code }: ServerReport): { phase: string; code: Code } {
  const failure = lastFailure ?? '';
  if (code?.startsWith('TL-SANDBOX-')) return { phase: 'confinement', code };
  if (state === 'ready' && tools.failure !== null) return { phase: 'lists', code: 'TL-SERVER-LISTS' };
  if (failure.includes('could not be installed')) return { phase: 'installation', code: 'TL-SERVER-NOT-INSTALLED' };
  if (state === 'offline') return { phase: 'connection', code: 'TL-SERVER-UNREACHABLE' };
  if (state === 'blocked') return { phase: 'connection', code: 'TL-SERVER-LOGIN' };
  if (/\((?:EMFILE|ENFILE|EAGAIN|ENOMEM)\)/.test(failure)) return { phase: 'spawn', code: 'TL-SERVER-RESOURCES' };
  if (!remote && /\(E[A-Z]+\)/.test(failure)) return { phase: 'spawn', code: 'TL-SERVER-SPAWN' };
  if (failure === 'start-timeout' || failure.endsWith(': timeout'))
    return { phase: 'handshake', code: 'TL-SERVER-SILENT' };
  if (failure === 'exited' || failure.endsWith(': exited')) return { phase: 'handshake', code: 'TL-SERVER-EXITED' };
  return { phase: 'handshake', code: 'TL-SERVER-HANDSHAKE' };
}

function remarksOn(report: ServerReport): Finding[] {
  const { server, dropped, tools, prompts, resources, resourceTemplates, approval, advice } = report;
  const found: Finding[] = [];
  const of = `server \`${server}\``;
  // A server that has ended has no counters any more; its log remains.
  const stray = report.log.filter((line) => line.startsWith('stdout ('));
  const junk = Math.max(dropped.junk ?? 0, stray.length);
  if (junk > 0) {
    const evidence = stray.slice(0, 3);
    const text = `${of} wrote ${plural(junk, 'line')} to stdout that ${junk === 1 ? 'is' : 'are'} no MCP message`;
    found.push(finding('TL-SERVER-STDOUT', text, evidence));
  }
  const quarantined = [tools, prompts, resources, resourceTemplates].flatMap((list) => list.quarantined);
  if (quarantined.length > 0) {
    const evidence = quarantined.slice(0, 3).map(({ name, reason }) => `${name}: ${reason}`);
    found.push(finding('TL-SERVER-QUARANTINED', `entries of ${of} are not listed: ${quarantined.length}`, evidence));
  }
  // The list of tools has a finding of its own.
  const failures = [prompts, resources, resourceTemplates].flatMap(({ failure }) => failure ?? []);
  if (failures.length > 0) {
    const text = `${of} announces lists that it does not give: ${failures.length}`;
    found.push(finding('TL-SERVER-LIST-MISSING', text, failures));
  }
  if (tools.hiding.length > 0)
    found.push(finding('TL-SERVER-HIDDEN-TEXT', `tools of ${of} hide text: ${someOf(tools.hiding)}`));
  const [cut] = [tools, prompts, resources].flatMap(({ truncated }: ListReport) => truncated ?? []);
  if (cut !== undefined) found.push(finding('TL-SERVER-TRUNCATED', `a list of ${of} is not complete`, [cut]));
  const refused = (report.sandbox?.remarks ?? []).filter((remark) => remark.startsWith('The sandbox refused'));
  if (refused.length > 0)
    found.push(
      finding('TL-SANDBOX-REFUSED', `the sandbox refused ${of} connections or files: ${refused.length}`, refused),
    );
  if (report.insecure)
    found.push(finding('TL-SERVER-INSECURE', `messages and credentials of ${of} cross the network in plain text`));
  const saving = describeSaving(report);
  if (saving !== undefined)
    found.push(finding('TL-SERVER-SHARING', `${of} runs a process for each session: ${saving}`));
  const waiting = /(\d+) of its tools waits? for approval/.exec(advice)?.[1];
  const remedy = `trunkline approve ${server}`;
  if (approval !== null && waiting !== undefined)
    found.push(finding('TL-SERVER-APPROVAL', `tools of ${of} wait for approval: ${waiting}`, [], { remedy }));
  return found;
}

function remarksOnPing({ report: { server }, ping }: ObservedServer): Finding[] {
  if (ping === undefined || ping === 'answered') return [];
  const how = ping === 'silent' ? 'does not answer `ping`' : 'answers `ping` with an error';
  return [finding('TL-SERVER-PING', `server \`${server}\` ${how}`)];
}

/** Many servers end only at SIGTERM, which loses nothing. */
function remarksOnEnd({ report: { server }, endedBy, leftProcesses = 0 }: ObservedServer): Finding[] {
  const found: Finding[] = [];
  if (endedBy === 'SIGKILL')
    found.push(finding('TL-SERVER-LINGERS', `server \`${server}\` did not end by itself and was killed`));
  if (leftProcesses > 0) {
    const text = `server \`${server}\` left ${leftProcesses} of its processes behind, which were ended`;
    found.push(finding('TL-SERVER-LEFTOVERS', text));
  }
  return found;
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

/** The code for the cause in these lines; `undefined` if they show no known cause. */
function causeIn(lines: readonly string[]): Code | undefined {
  const text = lines.join('\n');
  return SIGNS.find(([sign]) => sign.test(text))?.[1];
}

/** A tool as clients see it. */
export interface ListedTool {
  readonly server: string;
  readonly name: string;
  /** Length of its entry in the list, in bytes. */
  readonly size: number;
  /** Length of its description, in bytes. */
  readonly descriptionBytes: number;
  /** Whether its annotations state if it changes or destroys something. */
  readonly hasHints: boolean;
}

/** Clients show a tool as `mcp__trunkline__NAME`, and models take 64 characters. */
const LONGEST_NAME = 64 - 'mcp__trunkline__'.length;
/** Claude Code cuts descriptions here. */
const MAX_DESCRIPTION_BYTES = 2_048;

/**
 * Whether clients and models can use the merged list of tools. `titles` has the clients that have Trunkline registered, and
 * `mode` is how clients without a view see the tools.
 */
export function checkTools(
  tools: readonly ListedTool[],
  titles: readonly string[] = [],
  mode: ListDecision['mode'] | 'auto' = 'direct',
): Finding[] {
  const found: Finding[] = [];
  const long = tools.filter(({ name }) => name.length > LONGEST_NAME).map(({ name }) => name);
  if (long.length > 0) {
    const text = `${plural(long.length, 'tool')} with names of more than ${LONGEST_NAME} characters`;
    found.push(finding('TL-NAMES-LONG', text, [someOf(long)]));
  }
  const shares = sharesOf(tools);
  const counts = [someOf(shares.map(({ server, count: of }) => `${server} ${of}`))];
  // In the other modes, these clients get a short list.
  const exceeded = mode === 'direct' ? LIMITED_CLIENTS.filter((each) => tools.length > each.tools) : [];
  const own = exceeded.filter(({ title }) => titles.some((each) => each.includes(title)));
  for (const { title, tools: limit, source } of own) {
    const text = `${tools.length} tools are listed, and ${title} shows ${limit}`;
    found.push(finding('TL-TOOLS-MANY', text, [...counts, `source: ${source}`]));
  }
  const [least] = exceeded;
  if (own.length === 0 && least !== undefined) {
    const limits = exceeded.map(({ title, tools: limit }) => `${title} shows ${limit}`).join(', ');
    found.push(finding('TL-TOOLS-MANY', `${tools.length} tools are listed; ${limits}`, counts));
  }
  const tokens = shares.reduce((sum, share) => sum + share.tokens, 0);
  if (mode !== 'search' && tokens > MAX_LIST_TOKENS) {
    const evidence = [someOf(shares.map((share) => `${share.server} about ${share.tokens} tokens`))];
    found.push(finding('TL-TOOLS-HEAVY', `the list of tools takes about ${tokens} tokens`, evidence));
  }
  const wordy = tools.filter(({ descriptionBytes }) => descriptionBytes > MAX_DESCRIPTION_BYTES);
  if (wordy.length > 0) {
    const evidence = [someOf(wordy.map(({ name }) => name))];
    const text = `${plural(wordy.length, 'tool')} with descriptions of more than 2 KB`;
    found.push(finding('TL-SERVER-LONG-TEXT', text, evidence));
  }
  const unmarked = tools.filter(({ name, hasHints }) => !hasHints && DESTRUCTIVE.test(name));
  if (unmarked.length > 0) {
    const text = `${plural(unmarked.length, 'tool')} that may destroy data, and ${unmarked.length === 1 ? 'does' : 'do'} not say so`;
    found.push(finding('TL-TOOLS-UNMARKED', text, [someOf(unmarked.map(({ name }) => name))]));
  }
  return found;
}

/** Advice on the tools that cost a model more than they are worth, one finding for each kind. */
export function checkToolAdvice(advice: readonly ToolAdvice[]): Finding[] {
  return ADVICE_CODES.flatMap(([kind, code, one, many]) => {
    const own = advice.filter((each) => each.kind === kind);
    if (own.length === 0) return [];
    const evidence = own
      .slice(0, MAX_ADVICE)
      .map(({ text, server, yaml }) => `${text} In the entry of ${server}: ${yaml}`);
    return [finding(code, own.length === 1 ? one : `${own.length} ${many}`, evidence)];
  });
}

const MAX_ADVICE = 5;

const ADVICE_CODES: readonly (readonly [kind: ToolAdvice['kind'], code: Code, one: string, many: string])[] = [
  [
    'unused',
    'TL-TOOLS-UNUSED',
    `a server has tools that were not called for ${UNUSED_DAYS} days`,
    `servers have tools that were not called for ${UNUSED_DAYS} days`,
  ],
  [
    'twins',
    'TL-TOOLS-TWINS',
    'two servers have tools of the same name',
    'pairs of servers have tools of the same name',
  ],
];

/** Names of tools that a careful client asks about, behind the prefix of the server. */
const DESTRUCTIVE = /(?:^|__|[_-])(?:delete|remove|drop|destroy|erase|purge|truncate|overwrite|wipe)(?:[_-]|$)/i;

/** The share of each server in the list, the largest first. */
function sharesOf(tools: readonly ListedTool[]) {
  const servers = [...new Set(tools.map(({ server }) => server))];
  const shares = servers.map((server) => {
    const own = tools.filter((tool) => tool.server === server);
    const size = own.reduce((sum, tool) => sum + tool.size, 0);
    return { server, count: own.length, tokens: estimateTokens(size) };
  });
  return shares.sort((one, other) => other.tokens - one.tokens);
}
