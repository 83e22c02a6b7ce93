import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { reportStatus } from '../gateway/status/status.js';
import type { ServerReport } from '../gateway/status/status-report.js';
import { type Diagnosis, diagnose } from './diagnosis.js';
import { table } from './output.js';
import { chooseServers, type Once, runOnce } from './run-once.js';

/** Starts every server once and tells how that went. */
export async function check(settings: GlobalOptions, names: readonly string[]): Promise<number> {
  return await runOnce(
    settings,
    (config) => chooseServers(config, names),
    async (once) => {
      const results = once.config.servers.map((server): Result => {
        const report = reportOn(once, server.key);
        return { report, diagnosis: diagnose(once.config.file, server, report) };
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

/** What has to be said below the table about one server. */
function toRemarks({ report, diagnosis }: Result): string[] {
  const { server, tools, dropped, log } = report;
  if (diagnosis !== undefined) {
    const said = log.filter((line) => line !== diagnosis.reason).map((line) => `  | ${line}`);
    return ['', `${server}: ${diagnosis.reason}`, ...said, `  ${diagnosis.hint}`];
  }
  const junk = dropped.junk ?? 0;
  const remarks = tools.quarantined.map(({ name, reason }) => `  quarantined ${name}: ${reason}`);
  if (report.approval !== null && report.advice !== '') remarks.push(`  ${report.advice}`);
  if (tools.truncated !== null) remarks.push(`  its list of tools is cut short: ${tools.truncated}`);
  if (tools.hiding.length > 0) {
    remarks.push(`  these hide characters in their descriptions, where a model reads them: ${tools.hiding.join(', ')}`);
  }
  if (junk > 0) {
    remarks.push(
      `  it wrote ${junk} ${junk === 1 ? 'line' : 'lines'} to stdout that are no messages; they were skipped`,
    );
  }
  return remarks.length === 0 ? [] : ['', `${server}:`, ...remarks];
}
