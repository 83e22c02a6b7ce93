import { readConfig } from '../../../app/read-config.js';
import { entriesIn } from '../../../config/edit/edit-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { readConfigText } from '../../../config/file/find-config.js';
import { type Config, isPerUser, type ServerConfig } from '../../../config/resolve/config.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { cachedToolNames, configurationMark } from '../../../state/catalogue-cache.js';
import { readSealSecret } from '../../../state/seal.js';
import { catalogueFolder } from '../../../state/user-files.js';
import type { ServerReport, StatusReport } from '../../../status/status.js';
import type { ConfiguredServer } from '../../../web/server/contract.js';
import { isRecord } from '../../../wire/json/json-value.js';
import type { Invocation } from '../../command.js';
import { note, printJson, say } from '../../output.js';
import { type Cell, type Look, lookOf, stateCell, table } from '../../terminal.js';
import { openQuietLog } from '../calls/run-once.js';
import { openGateway } from '../hub/hub-access.js';
import { nameOf, type RunningGateway } from '../hub/running.js';

/** A server of the configuration, as `--json` prints it. */
export interface ServerRow {
  readonly server: string;
  /**
   * The state in the running gateway, or else `disabled`, `misconfigured`, `unread` if the gateway has not read the entry yet,
   * `per session` if each session starts its own process and none runs now, `per user` if only users have its variables, or `not running`.
   */
  readonly state: string;
  readonly disabled: boolean;
  /** The version of its package; null if it runs no package, or if none is installed. */
  readonly version: string | null;
  /** Number of its tools; null if no run has left its list. */
  readonly tools: number | null;
  /** Whether the tools are those that the running gateway lists, or those of an earlier run; null without tools. */
  readonly known: 'now' | 'earlier' | null;
  /** The package, the command, or the origin of the URL. */
  readonly runs: string;
}

/** `trunkline list`: the servers of the configuration, with what is known of each. Starts nothing. */
export async function list({ settings, isJson }: Invocation): Promise<number> {
  const { gateway, report } = await askGateway(settings);
  // The gateway that `--gateway` names may have another configuration.
  const named = settings.gateway === undefined ? settings.config : gateway?.configFile;
  const config = await readConfig({ ...settings, config: named ?? settings.config });
  const { file } = config;
  const { secret } = await readSealSecret(openQuietLog(settings).logger);
  const mark = configurationMark(file, secret);
  const rows = configuredServers(file).map((entry) => listed(entry, config, report, mark));
  if (isJson) {
    const { kind, pid = null, url = null } = gateway ?? {};
    await printJson({ configFile: file, gateway: kind === undefined ? null : { kind, pid, url }, servers: rows });
    return EXIT.ok;
  }
  if (rows.length === 0) await say(`${file} has no servers; \`trunkline add\` adds one.`);
  else await say(serverTable(rows, lookOf(process.stdout)));
  note(sourceText(file, gateway, rows));
  return EXIT.ok;
}

/** The report of the running gateway; absent if none runs, or if it has not started its servers. */
async function askGateway(
  settings: Invocation['settings'],
): Promise<{ gateway?: RunningGateway; report?: StatusReport }> {
  const open = await openGateway(settings, { says: 'if alike' });
  if ('because' in open) return {};
  const { gateway, control, hasStarted, report } = open;
  try {
    return hasStarted ? { gateway, report: await report() } : { gateway };
  } catch {
    // The gateway has ended meanwhile.
    return {};
  } finally {
    control.close();
  }
}

/** `mark` is the mark of the configuration in the names of cached catalogues. */
function listed(
  { server, runs, isDisabled }: ConfiguredServer,
  whole: Config,
  report: StatusReport | undefined,
  mark: string,
): ServerRow {
  const own = report?.servers.find((each) => each.server === server);
  const config = whole.servers.find(({ key }) => key === server);
  const isOfUsers = config !== undefined && isPerUser(whole, config);
  const cached = cachedToolNames(catalogueFolder(), server, mark)?.length;
  const tools = isKnown(own) ? own.tools.exposed.length : cached;
  return {
    server,
    state: isDisabled ? 'disabled' : (own?.state ?? (isOfUsers ? 'per user' : stateWithout(report, config, server))),
    disabled: isDisabled,
    version: own?.packageVersion ?? config?.package?.found?.version ?? null,
    tools: tools ?? null,
    known: tools === undefined ? null : isKnown(own) && !own.fromLastRun ? 'now' : 'earlier',
    runs,
  };
}

/** Whether the running gateway has lists of the server, of this run or of an earlier one. */
function isKnown(report: ServerReport | undefined): report is ServerReport {
  return report !== undefined && (report.state === 'ready' || report.tools.exposed.length > 0);
}

function stateWithout(report: StatusReport | undefined, config: ServerConfig | undefined, server: string): string {
  if (config?.problem !== undefined) return 'misconfigured';
  if (report === undefined) return 'not running';
  return report.startedBySessions.includes(server) ? 'per session' : 'unread';
}

export function serverTable(rows: readonly ServerRow[], look: Look): string {
  const cells = rows.map(({ server, state, version, tools, known, runs }): Cell[] => {
    const count = tools === null ? '-' : known === 'earlier' ? `${tools} earlier` : String(tools);
    return [server, stateCell(state, look), version ?? '-', count, runs];
  });
  return table([['SERVER', 'STATE', 'VERSION', 'TOOLS', 'RUNS'], ...cells], look);
}

function sourceText(file: string, gateway: RunningGateway | undefined, rows: readonly ServerRow[]): string {
  const earlier = rows.some(({ known }) => known === 'earlier') ? ' "earlier" marks the tools of an earlier run.' : '';
  const problems = rows.some(({ state }) => state === 'misconfigured') ? ' `trunkline check` says what is wrong.' : '';
  const next = '`trunkline check` starts each server once and reports its problems.';
  if (gateway === undefined) return `No gateway runs for ${file}.${earlier} ${next}`;
  return `Asked ${nameOf(gateway)}, of ${file}.${earlier}${problems} \`trunkline status SERVER\` shows more about one.`;
}

/** The servers of the configuration file; none if it cannot be read. Leaves out arguments, and all of a URL but its origin, because they can be secrets. */
export function configuredServers(file: string): ConfiguredServer[] {
  try {
    return Object.entries(entriesIn(readConfigText(file))).map(([server, entry]) => {
      const { package: name, command, url, disabled } = isRecord(entry) ? entry : {};
      const address = typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : 'a URL';
      const program = [name, command].find((each) => typeof each === 'string');
      return { server, runs: String(program ?? address), isDisabled: disabled === true };
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [];
  }
}
