import type { Code } from '../../host/errors/codes.js';
import { LIMITED_CLIENTS, type ListDecision, MAX_LIST_TOKENS } from '../../spec/list-modes.js';
import type { ServerReport } from '../../status/status.js';
import { describeEra, describeSharing } from '../../status/status-text.js';
import { type ToolAdvice, UNUSED_DAYS } from '../../status/tool-advice.js';
import { type Fault, faultOf, outputOf, remarksOn, remedyOf } from '../../status/verdict.js';
import { plural, someOf } from '../../wire/json/printable.js';
import { estimateTokens } from '../../wire/mcp/entry-check.js';
import { type Finding, finding } from './finding.js';

/** A server that the doctor has started, or one of the running hub. */
export interface ObservedServer {
  readonly report: ServerReport;
  /** Time from spawn to ready, in milliseconds; absent for a server of a running hub. */
  readonly readyAfterMs?: number | undefined;
  /** The signal that ended its process, if the process did not end after its stdin was closed. */
  readonly endedBy?: string | undefined;
  /** Number of processes outside of its process group that still ran after its end. */
  readonly leftProcesses?: number | undefined;
  /** The outcome of a `ping`; absent if none was sent. */
  readonly ping?: 'answered' | 'refused' | 'silent' | undefined;
  /** The reason why the start failed, or why the tools are not listed. */
  readonly fault?: Fault | undefined;
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
  const remarks = [...remarksAsFindings(observed.report), ...remarksOnPing(observed), ...remarksOnEnd(observed)];
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
  return [finding('TL-SERVER-OK', text, shared), ...remarks];
}

function failureOf({ report, fault }: ObservedServer): Finding | undefined {
  const { server, problem, advice, code } = report;
  // A report with a code and without a problem leads to a remark below.
  if ((fault === undefined && problem === '') || report.state === 'misconfigured') return undefined;
  // The program is not at fault, so its output does not count.
  if (code === 'TL-VAR-USER') return finding(code, `server \`${server}\`: ${problem}`, [], { remedy: advice });
  const { phase, isInOutput, ...found } = fault ?? faultOf(report);
  const output = outputOf(report).filter((line) => line !== report.lastFailure);
  const evidence = [`phase: ${phase}`, ...output.slice(-MAX_LINES)];
  if (fault !== undefined) return finding(found.code, `server \`${server}\`: ${fault.reason}`, evidence, fault);
  // The advice of a running hub is its next step. A cause in the output that the user can mend comes first.
  const chosen = isInOutput ? found : { code: code ?? found.code, remedy: advice };
  return finding(chosen.code as Code, `server \`${server}\`: ${problem}`, evidence, { remedy: chosen.remedy });
}

const MAX_EVIDENCE = 3;

function remarksAsFindings(report: ServerReport): Finding[] {
  return remarksOn(report).flatMap(({ code, label, items }) => {
    if (code === null) return [];
    const text = `server \`${report.server}\`: ${label}${items.length === 0 ? '' : `: ${items.length}`}`;
    return [finding(code, text, items.slice(0, MAX_EVIDENCE), { remedy: remedyOf(code, report.server) })];
  });
}

function remarksOnPing({ report: { server }, ping }: ObservedServer): Finding[] {
  if (ping === undefined || ping === 'answered') return [];
  const how = ping === 'silent' ? 'does not answer `ping`' : 'answers `ping` with an error';
  return [finding('TL-SERVER-PING', `server \`${server}\` ${how}`)];
}

/** Finds servers that ended badly. SIGTERM is no fault, because many servers end only at it, and lose nothing. */
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

export interface ListedTool {
  readonly server: string;
  readonly name: string;
  /** Length of its entry in the list, in bytes. */
  readonly size: number;
  readonly descriptionBytes: number;
  /** Names of its arguments. */
  readonly params: readonly string[];
  /** Whether its annotations state if it changes or destroys something. */
  readonly hasHints: boolean;
}

/** Clients show a tool as `mcp__trunkline__NAME`, and models take 64 characters. */
const LONGEST_NAME = 64 - 'mcp__trunkline__'.length;
/** Length beyond which Claude Code cuts descriptions. */
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
  const name = (code: Code, isMeant: (tool: ListedTool) => boolean, fault: string) => {
    const names = tools.filter(isMeant).map((tool) => tool.name);
    if (names.length > 0) found.push(finding(code, `${plural(names.length, 'tool')} ${fault}`, [someOf(names)]));
  };
  const tooLong = `with names of more than ${LONGEST_NAME} characters`;
  name('TL-NAMES-LONG', (tool) => tool.name.length > LONGEST_NAME, tooLong);
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
  const wordy = (tool: ListedTool) => tool.descriptionBytes > MAX_DESCRIPTION_BYTES;
  name('TL-SERVER-LONG-TEXT', wordy, 'with descriptions of more than 2 KB');
  const unmarked = (tool: ListedTool) => !tool.hasHints && DESTRUCTIVE.test(tool.name);
  name('TL-TOOLS-UNMARKED', unmarked, 'that may destroy data, without a hint that says so');
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

/** Names of tools that may destroy data, with the prefix of the server or without. */
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
