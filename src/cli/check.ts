import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { packageFolders } from '../app/user-files.js';
import type { ServerConfig } from '../config/config.js';
import { reportStatus } from '../gateway/status/status.js';
import type { ServerReport } from '../gateway/status/status-report.js';
import { installedTree } from '../packages/installed-tree.js';
import { type Diagnosis, diagnose, diagnoseTools, outputOf } from './diagnosis.js';
import { table } from './output.js';
import { remarksOn } from './package-remarks.js';
import { chooseServers, type Once, runOnce } from './run-once.js';

/** `trunkline check`: starts every server once and reports the result. */
export async function check(settings: GlobalOptions, names: readonly string[]): Promise<number> {
  return await runOnce(
    settings,
    (config) => chooseServers(config, names),
    async (once) => {
      const results = once.config.servers.map((server): Result => {
        const report = reportOn(once, server.key);
        const diagnosis = diagnose(once.config.file, server, report);
        const packageRemarks = remarksOnPackage(server, once.config.file);
        return { report, diagnosis, unlisted: diagnoseTools(report), packageRemarks };
      });
      const rows = results.map(({ report, diagnosis }, at) => {
        const isNear = once.config.servers[at]?.package?.found?.place === 'near';
        return toRow(report, diagnosis, isNear, once.starts.readyAfterMs(report.server));
      });
      const remarks = results.flatMap(toRemarks);
      process.stdout.write(`${[table([HEAD, ...rows]), ...remarks].join('\n')}\n`);
      const isFine = results.every(({ diagnosis, unlisted }) => diagnosis === undefined && unlisted === undefined);
      return isFine ? EXIT.ok : EXIT.failed;
    },
  );
}

interface Result {
  readonly report: ServerReport;
  readonly diagnosis: Diagnosis | undefined;
  /** Why the server does not list its tools, although it is ready. */
  readonly unlisted: Diagnosis | undefined;
  /** Why the package of the server may not work. */
  readonly packageRemarks: readonly string[];
}

const HEAD = ['SERVER', 'STATE', 'VERSION', 'PROTOCOL', 'READY AFTER', 'TOOLS', 'QUARANTINED', 'DENIED'];

function reportOn({ composition }: Once, key: string): ServerReport {
  const [report] = reportStatus(composition.status(), key).servers;
  if (report === undefined) throw new Error(`No status of "${key}"`);
  return report;
}

/** A version that is not in `node_modules` is the one in the lock file. */
function toRow(
  { server, state, packageVersion, protocolVersion, tools }: ServerReport,
  diagnosis: Diagnosis | undefined,
  isNear: boolean,
  readyAfterMs: number | undefined,
): string[] {
  const version = packageVersion === null ? '-' : `${packageVersion}${isNear ? ' (node_modules)' : ''}`;
  if (diagnosis !== undefined)
    return [server, state === 'misconfigured' ? state : 'failed', version, '-', '-', '-', '-', '-'];
  // The entries of a list that fails are those of an earlier run.
  const isKnown = tools.failure === null;
  const counts = [tools.exposed, tools.quarantined, tools.denied].map(({ length }) => (isKnown ? String(length) : '-'));
  return [server, 'ready', version, protocolVersion ?? '-', `${Math.round(readyAfterMs ?? 0)} ms`, ...counts];
}

function remarksOnPackage({ package: used }: ServerConfig, configFile: string): string[] {
  if (used === undefined) return [];
  return remarksOn(used.request, installedTree(used.request, used.found, { ...packageFolders(), configFile }));
}

/** The lines below the table about one server. */
function toRemarks({ report, diagnosis, unlisted, packageRemarks }: Result): string[] {
  const { server, tools, prompts, resources, resourceTemplates, dropped } = report;
  const onPackage = packageRemarks.map((remark) => `  ${remark}`);
  const fault = diagnosis ?? unlisted;
  if (fault !== undefined) {
    const output = outputOf(report).filter((line) => line !== fault.reason);
    return ['', `${server}: ${fault.reason}`, ...output.map((line) => `  | ${line}`), `  ${fault.hint}`, ...onPackage];
  }
  const junk = dropped.junk ?? 0;
  const failures = [prompts, resources, resourceTemplates].flatMap(({ failure }) => failure ?? []);
  const remarks = failures.map((failure) => `  a list of it cannot be read: ${failure}`);
  remarks.push(...tools.quarantined.map(({ name, reason }) => `  quarantined ${name}: ${reason}`));
  if (report.approval !== null && report.advice !== '') remarks.push(`  ${report.advice}`);
  if (tools.truncated !== null) remarks.push(`  its list of tools is incomplete: ${tools.truncated}`);
  remarks.push(...report.unshaped.map((warning) => `  \`tools\` of the configuration: ${warning}`));
  if (tools.hiding.length > 0) {
    remarks.push(
      `  the descriptions of these tools contain invisible characters, which a model reads: ${tools.hiding.join(', ')}`,
    );
  }
  if (junk > 0) {
    remarks.push(
      `  skipped ${junk} ${junk === 1 ? 'line' : 'lines'} of its stdout, which must have MCP messages only; it should log to stderr`,
    );
  }
  remarks.push(...onPackage);
  return remarks.length === 0 ? [] : ['', `${server}:`, ...remarks];
}
