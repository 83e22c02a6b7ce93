import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { packageFolders } from '../app/user-files.js';
import type { ServerConfig } from '../config/config.js';
import { reportStatus } from '../gateway/status/status.js';
import type { ServerReport } from '../gateway/status/status-report.js';
import { installedTree } from '../packages/installed-tree.js';
import { type Diagnosis, diagnose, outputOf } from './diagnosis.js';
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
        return { report, diagnosis, packageRemarks: remarksOnPackage(server, once.config.file) };
      });
      const rows = results.map(({ report, diagnosis }) =>
        toRow(report, diagnosis, once.starts.readyAfterMs(report.server)),
      );
      const remarks = results.flatMap(toRemarks);
      process.stdout.write(`${[table([HEAD, ...rows]), ...remarks].join('\n')}\n`);
      return results.some(({ diagnosis }) => diagnosis !== undefined) ? EXIT.failed : EXIT.ok;
    },
  );
}

interface Result {
  readonly report: ServerReport;
  readonly diagnosis: Diagnosis | undefined;
  /** Why the package of the server may not work. */
  readonly packageRemarks: readonly string[];
}

const HEAD = ['SERVER', 'STATE', 'PROTOCOL', 'READY AFTER', 'TOOLS', 'QUARANTINED', 'DENIED'];

function reportOn({ composition }: Once, key: string): ServerReport {
  const [report] = reportStatus(composition.status(), key).servers;
  if (report === undefined) throw new Error(`No status of "${key}"`);
  return report;
}

function toRow(
  { server, state, protocolVersion, tools }: ServerReport,
  diagnosis: Diagnosis | undefined,
  readyAfterMs: number | undefined,
): string[] {
  if (diagnosis !== undefined) return [server, state === 'misconfigured' ? state : 'failed', '-', '-', '-', '-', '-'];
  const counts = [tools.exposed, tools.quarantined, tools.denied].map(({ length }) => String(length));
  return [server, 'ready', protocolVersion ?? '-', `${Math.round(readyAfterMs ?? 0)} ms`, ...counts];
}

function remarksOnPackage({ package: used }: ServerConfig, configFile: string): string[] {
  if (used === undefined) return [];
  return remarksOn(used.request, installedTree(used.request, used.found, { ...packageFolders(), configFile }));
}

/** The lines below the table about one server. */
function toRemarks({ report, diagnosis, packageRemarks }: Result): string[] {
  const { server, tools, dropped } = report;
  const onPackage = packageRemarks.map((remark) => `  ${remark}`);
  if (diagnosis !== undefined) {
    const output = outputOf(report).filter((line) => line !== diagnosis.reason);
    return [
      '',
      `${server}: ${diagnosis.reason}`,
      ...output.map((line) => `  | ${line}`),
      `  ${diagnosis.hint}`,
      ...onPackage,
    ];
  }
  const junk = dropped.junk ?? 0;
  const remarks = tools.quarantined.map(({ name, reason }) => `  quarantined ${name}: ${reason}`);
  if (report.approval !== null && report.advice !== '') remarks.push(`  ${report.advice}`);
  if (tools.truncated !== null) remarks.push(`  its list of tools is incomplete: ${tools.truncated}`);
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
