import type { GlobalOptions } from '../../../app/global-options.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { programOf } from '../../../spec/server-spec.js';
import type { ServerReport } from '../../../status/status.js';
import { canBeOfSandbox } from '../../../status/status-advice.js';
import { outputOf, remarksOn, remarkText } from '../../../status/verdict.js';
import type { Invocation } from '../../command.js';
import { type EmitJson, printJson, say } from '../../output.js';
import { type Cell, type Look, lookOf, stateCell, table } from '../../terminal.js';
import { chooseServers, examine, type RunOnceOptions, runOnce, type TriedServer } from '../calls/run-once.js';
import { remarksOnServer } from '../packages/package-remarks.js';

/** `trunkline check`: starts every server once and reports the result. */
export async function check(invocation: Invocation<{ user: string; machine: true }>): Promise<number> {
  const { settings, words, isJson } = invocation;
  const { user: name, machine } = invocation.options;
  if (name === undefined && machine) throw new UsageError('`--machine` needs a name', 'add `--user NAME`');
  const user = name === undefined ? undefined : ({ name, kind: machine ? 'machine' : 'user' } as const);
  return (await tryServers(settings, words, { isJson, user })).exitCode;
}

/**
 * Starts every server, or the named ones, once, and reports the result. `sound` holds the servers that start and list their
 * tools, `open` those that wait for a login, `broken` the others. `reasons` says why, by key, for those that are not sound.
 */
export async function tryServers(
  settings: GlobalOptions,
  names: readonly string[],
  {
    isJson,
    user,
    emit = printJson,
  }: { readonly isJson: boolean; readonly user?: RunOnceOptions['user']; readonly emit?: EmitJson },
) {
  const sound: string[] = [];
  const open: string[] = [];
  const broken: string[] = [];
  const reasons = new Map<string, string>();
  const exitCode = await runOnce(
    settings,
    (config) => chooseServers(config, names),
    async (once) => {
      const results = examine(once).map((tried): Result => {
        const packageRemarks = [...remarksOnServer(tried.server, once.config.file), ...remarksOnSandbox(tried)];
        return { ...tried, packageRemarks, readyAfterMs: once.starts.readyAfterMs(tried.server.key) };
      });
      const look = lookOf(process.stdout);
      const rows = results.map((result) => toRow(result, look));
      if (isJson) await emit({ configFile: once.config.file, servers: results.map(toFacts) });
      else if (rows.length === 0)
        await say(
          `All servers of ${once.config.file} are disabled: ${once.config.disabled.join(', ')}. \`trunkline enable NAME\` enables one.`,
        );
      else await say([table([HEAD, ...rows], look), ...remarksBelow(results)].join('\n'));
      for (const { server, report, fault } of results) {
        if (report.state === 'per user') continue;
        const waitsForLogin =
          report.state === 'blocked' && server.spec?.kind === 'remote' && server.spec.login !== undefined;
        (fault === undefined ? sound : waitsForLogin ? open : broken).push(server.key);
        if (fault !== undefined) reasons.set(server.key, [fault.reason, fault.trouble ?? []].flat().join('; '));
      }
      return broken.length + open.length === 0 ? EXIT.ok : EXIT.failed;
    },
    { user },
  );
  return { exitCode, sound, open, broken, reasons };
}

export interface Result extends TriedServer {
  /** Reasons why the package of the server may not work. */
  readonly packageRemarks: readonly string[];
  readonly readyAfterMs: number | undefined;
}

const HEAD = ['SERVER', 'STATE', 'VERSION', 'PROTOCOL', 'READY AFTER', 'TOOLS', 'QUARANTINED', 'DENIED'];

/** Entry of one server in the output of `--json`. Unknown values are null. */
function toFacts({ report, fault, packageRemarks, readyAfterMs }: Result) {
  const { server, packageVersion, protocolVersion, tools } = report;
  const isReady = report.state === 'ready';
  const isListed = fault === undefined;
  return {
    server,
    state: stateOf(report),
    packageVersion,
    protocolVersion: isReady ? protocolVersion : null,
    readyAfterMs: isReady && readyAfterMs !== undefined ? Math.round(readyAfterMs) : null,
    tools: isListed ? tools.exposed : null,
    quarantined: isListed ? tools.quarantined : null,
    denied: isListed ? tools.denied : null,
    problem: fault?.reason ?? null,
    code: fault?.code ?? null,
    advice: fault?.remedy ?? null,
    output: fault === undefined ? [] : outputOf(report),
    remarks: [...packageRemarks, ...(isListed ? remarksOn(report).map((each) => remarkText(each)) : [])],
  };
}

/** Remarks on a confined server: the refusals to it and, if it fails, the command that shows its openings. */
function remarksOnSandbox({ server, report }: TriedServer): readonly string[] {
  if (programOf(server)?.sandbox === undefined || !canBeOfSandbox(report.lastFailure ?? '')) return [];
  const look = `it is confined: \`trunkline sandbox ${server.key}\` shows what is open, with \`--try\` what it needs`;
  return [...(report.sandbox?.remarks ?? []), ...(report.state === 'ready' ? [] : [look])];
}

function stateOf({ state }: ServerReport): string {
  return ['per user', 'ready', 'misconfigured'].includes(state) ? state : 'failed';
}

/** Makes the row of one server. Marks the version if it is from `node_modules` and not from the lock file. */
function toRow({ server: config, report, readyAfterMs }: Result, look: Look): Cell[] {
  const { server, packageVersion, protocolVersion, tools } = report;
  const isNear = config.package?.found?.location === 'near';
  const version = packageVersion === null ? '-' : `${packageVersion}${isNear ? ' (node_modules)' : ''}`;
  const state = stateCell(stateOf(report), look);
  if (report.state !== 'ready') return [server, state, version, '-', '-', '-', '-', '-'];
  // If a list fails, its entries are from an earlier run.
  const isKnown = tools.failure === null;
  const counts = [tools.exposed, tools.quarantined, tools.denied].map(({ length }) => (isKnown ? String(length) : '-'));
  return [server, state, version, protocolVersion ?? '-', `${Math.round(readyAfterMs ?? 0)} ms`, ...counts];
}

/** The lines below the table. Servers that fail for the same reason share one paragraph, with the output of the first. */
export function remarksBelow(results: readonly Result[]): string[] {
  const causes = new Set(results.map(causeOf));
  return [...causes].flatMap((cause) => toRemarks(results.filter((each) => causeOf(each) === cause)));
}

/** Returns the same text for servers that fail for the same reason, and another one for each server that works. */
function causeOf({ report, fault }: Result): string {
  if (fault === undefined) return `works: ${report.server}`;
  return fault.trouble ?? JSON.stringify([fault, outputOf(report)]);
}

function toRemarks(group: readonly Result[]): string[] {
  const [first] = group;
  if (first === undefined) return [];
  const { report, fault, server } = first;
  const names = group.map((each) => each.report.server).join(', ');
  const onPackages = group.flatMap((each) => each.packageRemarks.map((remark) => `  ${remark}`));
  if (report.state === 'per user')
    return [
      '',
      `${names}: ${server.problem?.message}`,
      '  To start it as a user, run: trunkline check --user NAME. `trunkline user list` shows who lacks a variable',
    ];
  if (fault !== undefined) {
    const output = outputOf(report).filter((line) => line !== fault.reason);
    const lines = [...output.map((line) => `  | ${line}`), ...fault.remedy.split('\n').map((line) => `  ${line}`)];
    return ['', `${names}: ${fault.reason}`, ...lines, ...onPackages];
  }
  const remarks = [...remarksOn(report).map((each) => `  ${remarkText(each)}`), ...onPackages];
  return remarks.length === 0 ? [] : ['', `${names}:`, ...remarks];
}
