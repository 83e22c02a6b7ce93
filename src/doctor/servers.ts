import type { Code } from '../errors/codes.js';
import type { ListReport, ServerReport } from '../gateway/status/status-report.js';
import { describeEra } from '../gateway/status/status-text.js';
import { counted, type Finding, finding, someOf } from './finding.js';
import { causeIn } from './server-causes.js';

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
  /** What happened and what to do, if the start failed. */
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
    return [finding(pending, `server \`${server}\` is ${state}`, { remedy: advice || undefined }), ...remarks];
  const start = observed.readyAfterMs === undefined ? state : `ready after ${Math.round(observed.readyAfterMs)} ms`;
  const how = era === null ? '' : ` (${describeEra(era)})`;
  const phases = protocolVersion === null ? [] : [`revision ${protocolVersion}${how}`];
  const text = [`server \`${server}\`: ${start}`, ...phases, counted(tools.exposed.length, 'tool')].join(', ');
  return [finding('TL-SERVER-OK', text), ...remarks];
}

function failureOf({ report, diagnosis }: ObservedServer): Finding | undefined {
  const { server, problem, advice, code, cause, log, lastFailure } = report;
  // A report with a code and without a problem leads to a remark below.
  if (diagnosis === undefined && problem === '') return undefined;
  if (report.state === 'misconfigured') return undefined;
  const output = (cause.length > 0 ? cause : log).filter((line) => line !== lastFailure).slice(-MAX_LINES);
  const { phase, code: usual } = phaseOf(report);
  const reason = diagnosis?.reason ?? problem;
  const remedy = diagnosis === undefined ? advice : `${sentence(diagnosis.hint)}`;
  const isFirst = code === null || diagnosis !== undefined;
  const known =
    usual === 'TL-SERVER-SPAWN' ? undefined : causeIn([lastFailure ?? '', ...output, report.tools.failure ?? '']);
  const chosen = known ?? (isFirst ? usual : (code as Code));
  const evidence = [`phase: ${phase}`, ...output];
  // The table knows more about a known cause than the diagnosis of the failure does.
  return finding(chosen, `server \`${server}\`: ${reason}`, {
    evidence,
    remedy: known === undefined ? remedy : undefined,
  });
}

/** The phase in which a start failed: installed → spawned → handshake → lists. */
function phaseOf({ state, lastFailure, tools }: ServerReport): { phase: string; code: Code } {
  const failure = lastFailure ?? '';
  if (state === 'ready' && tools.failure !== null) return { phase: 'lists', code: 'TL-SERVER-LISTS' };
  if (failure.includes('could not be installed')) return { phase: 'installation', code: 'TL-SERVER-NOT-INSTALLED' };
  if (/\((?:EMFILE|ENFILE|EAGAIN|ENOMEM)\)/.test(failure)) return { phase: 'spawn', code: 'TL-SERVER-RESOURCES' };
  if (/\(E[A-Z]+\)/.test(failure)) return { phase: 'spawn', code: 'TL-SERVER-SPAWN' };
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
    const text = `${of} wrote ${counted(junk, 'line')} to stdout that ${junk === 1 ? 'is' : 'are'} no MCP message`;
    found.push(finding('TL-SERVER-STDOUT', text, { evidence }));
  }
  const quarantined = [tools, prompts, resources, resourceTemplates].flatMap((list) => list.quarantined);
  if (quarantined.length > 0) {
    const evidence = quarantined.slice(0, 3).map(({ name, reason }) => `${name}: ${reason}`);
    found.push(
      finding('TL-SERVER-QUARANTINED', `entries of ${of} are not listed: ${quarantined.length}`, { evidence }),
    );
  }
  // The list of tools has a finding of its own.
  const failures = [prompts, resources, resourceTemplates].flatMap(({ failure }) => failure ?? []);
  if (failures.length > 0) {
    const text = `${of} announces lists that it does not give: ${failures.length}`;
    found.push(finding('TL-SERVER-LIST-MISSING', text, { evidence: failures }));
  }
  if (tools.hiding.length > 0)
    found.push(finding('TL-SERVER-HIDDEN-TEXT', `tools of ${of} hide text: ${someOf(tools.hiding)}`));
  const cut = [tools, prompts, resources].map(({ truncated }: ListReport) => truncated).find((why) => why !== null);
  if (cut !== undefined && cut !== null)
    found.push(finding('TL-SERVER-TRUNCATED', `a list of ${of} is not complete`, { evidence: [cut] }));
  const waiting = /(\d+) of its tools waits? for approval/.exec(advice)?.[1];
  if (approval !== null && waiting !== undefined)
    found.push(
      finding('TL-SERVER-APPROVAL', `tools of ${of} wait for approval: ${waiting}`, {
        remedy: `trunkline approve ${server}`,
      }),
    );
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

function sentence(phrase: string): string {
  const text = `${phrase[0]?.toUpperCase() ?? ''}${phrase.slice(1)}`;
  return text === '' || /[.!?]$/.test(text) ? text : `${text}.`;
}
