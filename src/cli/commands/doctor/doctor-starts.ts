import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Composition } from '../../../app/compose.js';
import type { FoundCommand } from '../../../clients/files/found-server.js';
import { ConfigError } from '../../../config/file/config-error.js';
import type { ServerConfig } from '../../../config/resolve/config.js';
import { checkClientStart, clientEnvironment, startAsClient } from '../../../doctor/client-start.js';
import { desktopPath } from '../../../doctor/commands.js';
import type { Finding } from '../../../doctor/finding.js';
import { optionIn, titleOf } from '../../../doctor/registrations.js';
import { checkServer, checkTools, type ListedTool, type ObservedServer } from '../../../doctor/servers.js';
import { EXIT } from '../../../errors/usage-error.js';
import { reportStatus, type ServerReport } from '../../../gateway/status/status.js';
import { isRecord, parseJson } from '../../../json/json-value.js';
import { RpcError } from '../../../jsonrpc/rpc-error.js';
import { METHODS } from '../../../mcp/methods.js';
import { LocalClient } from '../../local-client.js';
import { runOnce } from '../calls/run-once.js';
import { listAllTools } from '../calls/tools.js';
import { diagnose, diagnoseTools } from '../config/diagnosis.js';
import type { DoctorFacts } from './doctor-checks.js';

/** Starts the servers, or asks the running hub about them; then runs what the clients would run. */
export async function checkStarts(facts: DoctorFacts): Promise<Started> {
  // The servers of a silent hub still run, and must not run twice.
  const { kind } = facts.hub?.state ?? {};
  if (kind === 'silent' || kind === 'refused') return NOT_STARTED;
  const observed = await observe(facts);
  const onServers = observed.servers.flatMap(checkServer);
  const ran = observed.servers.filter(({ report: { state } }) => state === 'ready' || state === 'idle');
  return {
    findings: [...onServers, ...checkTools(observed.tools), ...(await checkClientStarts(facts))],
    working: new Set(ran.map(({ report }) => report.server)),
  };
}

export interface Started {
  readonly findings: readonly Finding[];
  /** The keys of the servers that became ready. */
  readonly working: ReadonlySet<string>;
}

export const NOT_STARTED: Started = { findings: [], working: new Set() };

interface Observed {
  readonly servers: readonly ObservedServer[];
  readonly tools: readonly ListedTool[];
}

async function observe(facts: DoctorFacts): Promise<Observed> {
  const { hub, servers } = facts;
  // The hub may have ended meanwhile. Its clients start another one, so that nothing may run twice.
  const reports = await hub?.servers().catch(() => []);
  if (reports === undefined) return await startOnce(facts);
  const chosen = reports.filter(({ server }) => servers.some(({ key }) => key === server));
  return { servers: chosen.map((report) => ({ report })), tools: toolsIn(await hub?.tools(), chosen) };
}

/** Starts the servers whose packages are installed. Installs nothing and approves nothing. */
async function startOnce({ settings, config, servers }: DoctorFacts): Promise<Observed> {
  const startable = servers.filter(({ child }) => child !== undefined && child.missing === undefined);
  let observed: Observed = { servers: [], tools: [] };
  const endedBy = new Map<string, string | undefined>();
  const left = new Map<string, number>();
  if (config instanceof ConfigError || startable.length === 0) return observed;
  const keys = new Set(startable.map(({ key }) => key));
  await runOnce(
    settings,
    (whole) => whole.servers.filter(({ key }) => keys.has(key)),
    async ({ config: once, composition, client, starts }) => {
      // The servers are stopped after this.
      composition.platform.events.subscribe('server.changed', ({ instance, snapshot: { state, lastExit } }) => {
        if (state === 'stopped') endedBy.set(instance, lastExit?.signal ?? undefined);
      });
      composition.platform.events.subscribe('server.left-processes', ({ server, count }) => {
        left.set(server, (left.get(server) ?? 0) + count);
      });
      const { servers: reports } = reportStatus(composition.status());
      const detailed = reports.map(({ server }) => reportStatus(composition.status(), server).servers[0]);
      const known = detailed.filter((report) => report !== undefined);
      const pings = await Promise.all(known.map((report) => ping(composition, report)));
      // The servers that list nothing have findings of their own.
      const list = await listAllTools(client).catch(() => undefined);
      const all = known.map((report, at): ObservedServer => {
        const server = once.servers.find(({ key }) => key === report.server) as ServerConfig;
        const diagnosis = diagnose(once.file, server, report) ?? diagnoseTools(report);
        return { report, diagnosis, ping: pings[at], readyAfterMs: starts.readyAfterMs(report.server) };
      });
      observed = { servers: all, tools: toolsIn(list, known) };
      return EXIT.ok;
    },
    { isReview: true, isQuiet: true },
  );
  const ended = observed.servers.map((one) => {
    const { server } = one.report;
    return { ...one, endedBy: endedBy.get(server), leftProcesses: left.get(server) };
  });
  return { ...observed, servers: ended };
}

/** The revisions of the modern era have no `ping`. */
async function ping(composition: Composition, { server, state, era }: ServerReport): Promise<ObservedServer['ping']> {
  if (state !== 'ready' || era?.name !== 'legacy') return undefined;
  const client = await LocalClient.open(composition, undefined, server);
  try {
    const answer = client.request(METHODS.ping, '{}').then(
      () => 'answered' as const,
      (error) => (error instanceof RpcError ? ('refused' as const) : ('silent' as const)),
    );
    const late = setTimeout(PING_WITHIN_MS, 'silent' as const, { ref: false });
    return await Promise.race([answer, late]);
  } finally {
    client.close();
  }
}

/** A server that has listed its tools has nothing else to do. */
const PING_WITHIN_MS = 2_000;

function toolsIn(list: string | undefined, reports: readonly ServerReport[]): ListedTool[] {
  const owners = new Map(reports.flatMap(({ server, tools }) => tools.exposed.map((name) => [name, server] as const)));
  const parsed = list === undefined ? undefined : parseJson(list);
  const tools = isRecord(parsed) && Array.isArray(parsed.tools) ? parsed.tools : [];
  return tools.flatMap((tool) => {
    const name = isRecord(tool) ? String(tool.name) : '';
    const server = owners.get(name);
    if (server === undefined || !isRecord(tool)) return [];
    const descriptionBytes = Buffer.byteLength(String(tool.description ?? ''));
    return [
      { server, name, size: JSON.stringify(tool).length, descriptionBytes, hasHints: hasHints(tool.annotations) },
    ];
  });
}

/** A tool that is read-only says so, too. */
function hasHints(annotations: unknown): boolean {
  return isRecord(annotations) && ('destructiveHint' in annotations || 'readOnlyHint' in annotations);
}

/** Each command once, also if several clients have it. One after the other, since each starts all servers. */
async function checkClientStarts(facts: DoctorFacts): Promise<Finding[]> {
  const { registrations, machine, config } = facts;
  const path = await desktopPath(machine);
  const byRun = new Map<string, { run: FoundCommand; titles: string[] }>();
  for (const registration of registrations) {
    const { run, isDisabled, variables, place } = registration.server;
    // Claude Desktop runs its extensions with a Node of its own.
    if (place.scope === 'extension') continue;
    // Only the client knows the values of its variables.
    const hasVariables = variables !== 'none' && JSON.stringify(run).includes('${');
    // A missing program has a finding already.
    const isGone = registration.program !== undefined && !existsSync(registration.program);
    if (isDisabled || run.kind !== 'command' || hasVariables || isGone) continue;
    const { command, args, env, cwd } = run;
    const key = JSON.stringify([command, args, env, cwd]);
    const known = byRun.get(key) ?? { run, titles: [] };
    known.titles.push(titleOf(registration));
    byRun.set(key, known);
  }
  const servers = config instanceof ConfigError ? 0 : config.servers.length;
  const found: Finding[] = [];
  for (const { run, titles } of byRun.values()) {
    const env = {
      ...clientEnvironment(run, path, machine),
      ...(sharesHub(run, facts) ? {} : { TRUNKLINE_HUB: 'off' }),
    };
    found.push(...checkClientStart(await startAsClient(run, env, ROOT), titles, servers));
  }
  return found;
}

/** Where desktop programs run their servers. */
const ROOT = process.platform === 'win32' ? 'C:\\' : '/';

/** The command may attach to the hub that runs. It must not start one, which would outlive the doctor. */
function sharesHub(run: FoundCommand, { hub, config }: DoctorFacts): boolean {
  if (hub?.state.kind !== 'running' || config instanceof ConfigError) return false;
  const named = optionIn(run, '--config', '-c') ?? run.env.TRUNKLINE_CONFIG;
  return named !== undefined && resolve(ROOT, named) === config.file;
}
