import type { ListToolsResult } from '@modelcontextprotocol/sdk/types.js';
import cliTruncate from 'cli-truncate';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import type { LocalClient } from '../app/local-client.js';
import { reportStatus } from '../gateway/status/status.js';
import { readString, readText, visitElements, visitMembers } from '../json/json-text.js';
import { printable } from '../json/printable.js';
import { LISTS } from '../mcp/lists.js';
import { diagnose, diagnoseTools } from './diagnosis.js';
import { forStream, table, tell } from './output.js';
import { chooseServers, type Once, runOnce } from './run-once.js';

/** `trunkline tools`: prints the merged list of tools, as JSON or as a table. */
export async function tools(settings: GlobalOptions, names: readonly string[], isJson: boolean): Promise<number> {
  return await runOnce(
    settings,
    (config) => chooseServers(config, names),
    async (once) => {
      const result = await listAllTools(once.client);
      const text = isJson ? forStream(result, process.stdout) : describe(JSON.parse(result), once, names.length === 0);
      process.stdout.write(`${text}\n`);
      const hasFailed = reportFailures(once);
      return reportUnlisted(once) || hasFailed ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Requests all pages of `tools/list` and returns them as one result. */
export async function listAllTools(client: LocalClient): Promise<string> {
  const entries: string[] = [];
  for (let params: string | undefined = '{}'; params !== undefined; ) {
    const page: Uint8Array = await client.request(LISTS.tools.method, params);
    params = undefined;
    visitMembers(page, 0, Number.POSITIVE_INFINITY, (key, value) => {
      if (readString(page, key) === LISTS.tools.member) {
        visitElements(page, value.start, Number.POSITIVE_INFINITY, (entry) => entries.push(readText(page, entry)));
      } else {
        params = `{"cursor":${readText(page, value)}}`;
      }
    });
  }
  return `{"${LISTS.tools.member}":[${entries.join(',')}]}`;
}

/** Reports servers that did not start on stderr: all of them, or the one with this key. Returns whether there is one. */
export function reportFailures({ config, composition }: Once, key?: string): boolean {
  const { servers } = reportStatus(composition.status());
  let hasFailed = false;
  for (const server of config.servers) {
    if (key !== undefined && server.key !== key) continue;
    const report = servers.find((candidate) => candidate.server === server.key);
    const diagnosis = report && diagnose(config.file, server, report);
    if (diagnosis === undefined) continue;
    hasFailed = true;
    tell(`trunkline: server \`${server.key}\` failed: ${diagnosis.reason}`);
    tell(`  run \`trunkline check ${server.key}\` for details`);
  }
  return hasFailed;
}

/** Reports servers that are ready and do not list their tools on stderr. Returns whether there is one. */
export function reportUnlisted({ composition }: Once): boolean {
  const unlisted = reportStatus(composition.status()).servers.flatMap((report) => {
    const diagnosis = diagnoseTools(report);
    return diagnosis === undefined ? [] : [{ server: report.server, diagnosis }];
  });
  for (const { server, diagnosis } of unlisted) tell(`trunkline: server \`${server}\`: ${diagnosis.reason}`);
  return unlisted.length > 0;
}

/** `withOwn` includes the tools of the gateway itself. */
function describe(result: ListToolsResult, { composition }: Once, withOwn: boolean): string {
  const { servers } = reportStatus(composition.status());
  const owners = new Map(servers.flatMap(({ server, tools: { exposed } }) => exposed.map((name) => [name, server])));
  const listed = result.tools.flatMap(({ name, title, description }) => {
    const owner = owners.get(name);
    if (owner === undefined && !withOwn) return [];
    const [firstLine = ''] = (description ?? title ?? '').trim().split(/\r?\n/);
    return [[name, owner ?? 'trunkline', printable(firstLine)]];
  });
  const quarantined = servers.flatMap(({ server, tools: { quarantined: withheld } }) =>
    withheld.map(({ name, reason }) => [name, server, reason]),
  );
  const sections = [[['TOOL', 'SERVER', 'DESCRIPTION'], ...listed]];
  if (quarantined.length > 0) sections.push([['QUARANTINED', 'SERVER', 'REASON'], ...quarantined]);
  return sections.map((rows) => table(rows).split('\n').map(toWidth).join('\n')).join('\n\n');
}

function toWidth(line: string): string {
  return process.stdout.isTTY ? cliTruncate(line, process.stdout.columns || 80) : line;
}
