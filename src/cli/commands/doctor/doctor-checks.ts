import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { GatewayProcess } from '../../../app/gateway-process.js';
import type { GlobalOptions } from '../../../app/global-options.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { userConfigFile } from '../../../config/file/find-config.js';
import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import { readCommandLines } from '../../../host/process/processes.js';
import { gatewayFolders } from '../../../hub/hub-folder.js';
import { runNpm } from '../../../servers/packages/npm-client.js';
import { npmEnvironment } from '../../../servers/process/environment.js';
import { OrphanGuard } from '../../../servers/process/orphan-guard.js';
import { confinement } from '../../../servers/sandbox/find-bubblewrap.js';
import { thisSystem } from '../../../setup/clients/files/client-locations.js';
import type { FoundCommand, FoundServer, FoundServers } from '../../../setup/clients/files/found-server.js';
import { configIn } from '../../../setup/clients/files/own-entry.js';
import { gatewayOf, runningGateway } from '../../../setup/clients/import/gateways.js';
import { CannotImport, toRun } from '../../../setup/clients/import/run.js';
import { checkClientStart, clientEnvironment, startAsClient } from '../../../setup/doctor/client-start.js';
import { checkTraps } from '../../../setup/doctor/client-traps.js';
import { checkCluster } from '../../../setup/doctor/cluster.js';
import { checkCommands, desktopPath, shellPath } from '../../../setup/doctor/commands.js';
import { checkBrokenConfig, checkConfig } from '../../../setup/doctor/config-file.js';
import { checkEnvFiles, checkLiterals, checkSecretFiles, checkVariables } from '../../../setup/doctor/credentials.js';
import { type Checks, type Finding, runChecks } from '../../../setup/doctor/finding.js';
import { checkFront } from '../../../setup/doctor/front.js';
import { checkHub, checkRecentFaults } from '../../../setup/doctor/hub.js';
import { checkRules } from '../../../setup/doctor/idle-rules.js';
import {
  checkConfinement,
  checkFolders,
  checkLimits,
  checkNetwork,
  checkNode,
  checkNpm,
  type Machine,
  npmOf,
  readLimits,
} from '../../../setup/doctor/machine.js';
import { checkPackages, checkTwins } from '../../../setup/doctor/packages.js';
import {
  checkClients,
  checkDuplicates,
  checkGateways,
  lacksFile,
  type Registration,
  type Taken,
  titleOf,
} from '../../../setup/doctor/registrations.js';
import {
  checkHttpGateways,
  checkOtherGateways,
  checkRuns,
  checkServing,
  type ServingProcess,
} from '../../../setup/doctor/running-gateways.js';
import {
  checkServer,
  checkToolAdvice,
  checkTools,
  type ListedTool,
  type ObservedServer,
} from '../../../setup/doctor/servers.js';
import { programOf } from '../../../spec/server-spec.js';
import { findGateways } from '../../../state/gateway-file.js';
import {
  packageFolders,
  runFolder,
  sealFile,
  tokenFile,
  userDataFolder,
  userHubsFolder,
} from '../../../state/user-files.js';
import type { ServerReport } from '../../../status/status.js';
import { adviseOnTools } from '../../../status/tool-advice.js';
import type { ToolRow } from '../../../status/tool-report.js';
import { isRecord, parseJson } from '../../../wire/json/json-value.js';
import { RpcError } from '../../../wire/jsonrpc/message.js';
import { METHODS } from '../../../wire/mcp/methods.js';
import { LocalClient } from '../../local-client.js';
import { listAllTools } from '../calls/listed-tools.js';
import { chooseServers, examine, openQuietLog, runOnce } from '../calls/run-once.js';
import { readToolUse } from '../calls/tool-use.js';
import { reportAll } from '../calls/tools.js';
import { registerAgain, takeOutOfClients } from '../clients/connect.js';
import { configurationText, findOwnProcesses, goneText, nameOf } from '../hub/running.js';
import { remarksOnServer } from '../packages/package-remarks.js';
import { allSettled, workOnPackages } from '../packages/package-work.js';
import type { DoctorHub } from './doctor-hub.js';

export interface DoctorFacts {
  readonly settings: GlobalOptions;
  readonly machine: Machine;
  readonly config: Config | ConfigError;
  /** The chosen servers. Empty without a configuration. */
  readonly servers: readonly ServerConfig[];
  readonly clients: FoundServers;
  readonly registrations: readonly Registration[];
  /** Absent without a configuration. */
  readonly hub: DoctorHub | undefined;
}

/** Runs all checks that start no server. */
export async function checkMachine(facts: DoctorFacts): Promise<readonly Finding[]> {
  const { config, registrations, machine, clients } = facts;
  const now = Date.now();
  return await runChecks({
    ...machineChecks(facts),
    ...(config instanceof ConfigError
      ? { 'the configuration': () => checkBrokenConfig(config) }
      : configChecks(facts, config)),
    'the clients': () => checkClients(clients, registrations, machine, registerAgain),
    'gateways of clients': () => checkGateways(clients, registrations, gatewayNameOf),
    'settings and logs of clients': () => checkTraps(registrations, machine, now),
    ...processChecks(facts, now),
    ...(config instanceof ConfigError
      ? {}
      : { 'the cluster': () => checkOwnCluster(config), 'logins through Trunkline': () => checkOwnFront(config) }),
  });
}

/** Finds servers that clients run besides Trunkline. `working` holds the keys of the servers that ran in Trunkline. */
export async function checkTwice(facts: DoctorFacts, working: ReadonlySet<string>): Promise<readonly Finding[]> {
  const { config, registrations, clients, servers } = facts;
  if (config instanceof ConfigError) return [];
  // All removals of one `--fix` are one change for `trunkline undo`.
  const run = new Date().toISOString();
  const { env, platform } = process;
  const taken: Taken = {
    servers,
    configFile: config.file,
    userConfigFile: userConfigFile({ env, home: homedir(), platform }),
    works: (key) => working.has(key),
    takeOut: (found) => takeOutOfClients(found, run),
  };
  return await runChecks({ 'servers that exist twice': () => checkDuplicates(clients, registrations, taken) });
}

function gatewayNameOf(server: FoundServer): string | undefined {
  try {
    return gatewayOf(toRun(server, { system: thisSystem(), readEnvFile: () => ({}) }));
  } catch (error) {
    if (error instanceof CannotImport) return undefined;
    throw error;
  }
}

function machineChecks({ machine, config, servers }: DoctorFacts): Checks {
  const folders = { data: userDataFolder(), others: config instanceof ConfigError ? [] : [dirname(config.file)] };
  const isNeeded = servers.some((server) => server.package !== undefined);
  const npm = npmOf(machine);
  return {
    Node: () => checkNode(machine),
    npm: () => checkNpm(machine, npm, isNeeded, () => pingRegistry(npm ?? '', machine)),
    folders: () => checkFolders(machine, folders),
    limits: async () => checkLimits(await readLimits(), servers.length),
    'proxies and certificates': () => checkNetwork(machine),
    'confinement of servers': () =>
      checkConfinement(
        servers.flatMap((server) => programOf(server) ?? []),
        confinement,
      ),
  };
}

/** Resolves with the errors of npm. The list is empty if npm reaches its registry. */
async function pingRegistry(npm: string, { node, home, env }: Machine): Promise<readonly string[]> {
  const { code, lines } = await runNpm({
    npm,
    nodePath: node.path,
    cwd: home,
    env: npmEnvironment(env, {}),
    clock: systemClock,
    args: ['ping', '--loglevel=error', '--no-update-notifier', '--fetch-retries=0', '--fetch-timeout=2500'],
    signal: AbortSignal.timeout(PING_WITHIN_MS),
    onBegun: () => {},
    onGone: () => {},
  });
  if (code === 0) return [];
  return lines.length > 0 ? lines : [`no answer within ${PING_WITHIN_MS / 1_000} s`];
}

/** Time limit of `npm ping`, which leaves time to end npm within the limit of a check. */
const PING_WITHIN_MS = 2_500;

function configChecks({ settings, machine, servers }: DoctorFacts, config: Config): Checks {
  const { file } = config;
  const source = settings.config ? '--config' : process.env.TRUNKLINE_CONFIG ? 'TRUNKLINE_CONFIG' : 'the usual places';
  const tools = {
    paths: { ...packageFolders(), configFile: file },
    remarksOn: (server: ServerConfig) => remarksOnServer(server, file),
    install: (keys: readonly string[]) => installPackages({ ...settings, config: file }, keys),
  };
  return {
    'the configuration': () => checkConfig({ ...config, servers }, source, machine),
    rules: () => checkRules({ ...config, servers }, []),
    variables: () => checkVariables(servers),
    'secrets in the configuration': () => checkLiterals(file, machine),
    'files with variables': () => checkEnvFiles(file, servers, machine),
    commands: async () => {
      const [desktop, shell] = await Promise.all([desktopPath(machine), shellPath(machine)]);
      return checkCommands(servers, { desktop, shell }, machine);
    },
    packages: () => checkPackages(servers, tools),
    'servers that run the same program': () => checkTwins(servers),
  };
}

async function installPackages(settings: GlobalOptions, keys: readonly string[]): Promise<void> {
  let fault: unknown;
  await workOnPackages(
    settings,
    (config) => chooseServers(config, keys),
    async ({ servers, installer, ending }) => {
      try {
        await allSettled(servers.map((server) => installer.obtain(server.package.request, ending)));
      } catch (error) {
        fault = error;
      }
      return 0;
    },
  );
  if (fault !== undefined) throw fault;
}

function processChecks({ machine, config, hub, servers }: DoctorFacts, now: number): Checks {
  const files = { tokenFile: tokenFile(), sealFile: sealFile() };
  const logFile = hub?.logFile;
  return {
    'secret files': () => checkSecretFiles(files, machine),
    'processes of Trunkline': async () => checkServing(await servingProcesses(machine)),
    'processes of earlier runs': () => checkRuns(runFolder(), sweepRuns),
    'Trunkline over HTTP': async () => {
      const httpGateways = await findHttpGateways();
      // The gateways of a cluster share their users, not their servers.
      const isAlone = !(config instanceof ConfigError) && config.gateway.cluster === undefined;
      const configFile = isAlone ? config.file : undefined;
      const pid = hub?.state.kind === 'running' ? hub.state.hub.pid : undefined;
      return checkHttpGateways({ httpGateways, configFile, hub: pid, now });
    },
    'other gateways': async () => {
      const processes = (await readCommandLines()) ?? [];
      return checkOtherGateways({ processes, servers, gatewayOf: runningGateway, machine });
    },
    'the hub': () => (hub === undefined ? [] : checkHub(hub, machine.version)),
    'the log of the hub': () => (logFile === undefined ? [] : checkRecentFaults(logFile, now)),
  };
}

async function servingProcesses({ program }: Machine): Promise<ServingProcess[]> {
  const { gateways, attached } = await findOwnProcesses(program);
  return [
    ...gateways.map((gateway) => ({
      name: nameOf(gateway),
      configuration: configurationText(gateway),
      gone: goneText(gateway),
    })),
    ...attached.map(({ pid, client, hub, configFile }) => {
      const to = hub === null ? 'without a hub' : `at the hub ${hub}`;
      const name = `the process of ${client ?? 'a client'} (pid ${pid}) ${to}`;
      return { name, configuration: configurationText({ configFile: configFile ?? undefined }) };
    }),
  ];
}

async function findHttpGateways() {
  return (await findGateways(gatewayFolders(userHubsFolder()))).filter(({ kind }) => kind === 'http');
}

/** Asks the gateway that serves the configuration on this machine, if it runs. */
async function checkOwnCluster({ file, gateway }: Config): Promise<readonly Finding[]> {
  const { cluster, sealKeyFile, secretFolder } = gateway;
  if (cluster === undefined || sealKeyFile === undefined) return [];
  if ('fault' in cluster) return checkCluster({ kind: 'misconfigured', fault: cluster.fault }, sealKeyFile);
  const running = await findHttpGateways();
  if (!running.some(({ configFile }) => configFile === file)) return [];
  const { askOwn } = await import('../serve/cluster-status.js');
  return checkCluster(await askOwn(cluster.listen, sealKeyFile, secretFolder), sealKeyFile);
}

/** Asks the identity provider, if users log in through Trunkline. */
async function checkOwnFront({ gateway: { http } }: Config): Promise<readonly Finding[]> {
  if (http.auth?.front === undefined) return [];
  const [{ readMetadata }, { createFetch }] = await Promise.all([
    import('../../../downstream/users/issuer-document.js'),
    import('../../../host/http/fetch.js'),
  ]);
  return await checkFront(http, (issuer) =>
    readMetadata(issuer, createFetch({ clock: systemClock, server: new URL(issuer) })),
  );
}

/** Ends the processes that killed gateways left behind, as every start does. */
async function sweepRuns(): Promise<void> {
  const { logger } = openQuietLog({ config: undefined, verbosity: 0, logFile: undefined });
  const guard = new OrphanGuard({ clock: systemClock, logger, runFolder: runFolder() });
  await guard.sweep();
  await guard.close();
}

/** Starts the servers, or asks the running gateway about them. Then runs the commands of the clients. */
export async function checkStarts(facts: DoctorFacts): Promise<Started> {
  // The servers of a silent hub still run, and must not run twice.
  const { kind } = facts.hub?.state ?? {};
  if (kind === 'silent' || kind === 'refused') return NOT_STARTED;
  const observed = await observe(facts);
  const onServers = observed.servers.flatMap(checkServer);
  const ran = observed.servers.filter(({ report: { state } }) => state === 'ready' || state === 'idle');
  const titles = facts.registrations.map(titleOf);
  const advice = adviseOnTools(observed.rows, await readToolUse(facts.config, Date.now()));
  const mode = facts.config instanceof ConfigError ? undefined : facts.config.gateway.mode;
  const onTools = [
    ...checkTools(observed.tools, titles, mode),
    ...checkToolAdvice(advice),
    ...rulesOnListed(facts, observed),
  ];
  return {
    findings: [...onServers, ...onTools, ...(await checkClientStarts(facts))],
    working: new Set(ran.map(({ report }) => report.server)),
  };
}

/** The rules that can never match because of the listed tools. Those that other rules cover were found before the start. */
function rulesOnListed({ config, servers }: DoctorFacts, { tools, rows }: Observed): Finding[] {
  if (config instanceof ConfigError) return [];
  const params = new Map(tools.map((tool) => [tool.name, tool.params]));
  const listed = rows.map(({ server, original, name }) => ({ server, original, params: params.get(name) ?? [] }));
  const ruled = { servers, gateway: config.gateway };
  const known = new Set(checkRules(ruled, []).map(({ sentence }) => sentence));
  return checkRules(ruled, listed).filter(({ sentence }) => !known.has(sentence));
}

export interface Started {
  readonly findings: readonly Finding[];
  /** The keys of the servers that are ready, or idle in a running gateway. */
  readonly working: ReadonlySet<string>;
}

export const NOT_STARTED: Started = { findings: [], working: new Set() };

interface Observed {
  readonly servers: readonly ObservedServer[];
  readonly tools: readonly ListedTool[];
  readonly rows: readonly ToolRow[];
}

async function observe(facts: DoctorFacts): Promise<Observed> {
  const { hub, servers } = facts;
  // The hub may have ended meanwhile. Its clients then start another hub, and the servers must not run twice.
  const reports = await hub?.servers().catch(() => 'ended' as const);
  if (reports === undefined) return await startOnce(facts);
  if (reports === 'ended') return { servers: [], tools: [], rows: [] };
  const chosen = reports.filter(({ server }) => servers.some(({ key }) => key === server));
  const listed = await hub?.tools();
  const tools = toolsIn(listed?.list, chosen);
  const rows = listed?.rows.filter(({ server }) => chosen.some((report) => report.server === server)) ?? [];
  // A server with a process for each session has none while no client is connected.
  const idle = servers.filter(({ key }) => reports.every(({ server }) => server !== key));
  const started = await startOnce({ ...facts, servers: idle });
  return {
    servers: [...chosen.map((report) => ({ report })), ...started.servers],
    tools: [...tools, ...started.tools],
    rows: [...rows, ...started.rows],
  };
}

/** Starts the servers once, except those whose packages are not installed. Installs nothing and approves nothing. */
async function startOnce({ settings, config, servers }: DoctorFacts): Promise<Observed> {
  const startable = servers.filter(({ spec }) => spec !== undefined && spec.missing === undefined);
  let observed: Observed = { servers: [], tools: [], rows: [] };
  const endedBy = new Map<string, string | undefined>();
  const left = new Map<string, number>();
  if (config instanceof ConfigError || startable.length === 0) return observed;
  const keys = new Set(startable.map(({ key }) => key));
  await runOnce(
    settings,
    (whole) => whole.servers.filter(({ key }) => keys.has(key)),
    async (once) => {
      const { composition, client, starts } = once;
      // The gateway stops the servers after this function has returned, and `endedBy` gets its entries then.
      composition.platform.events.subscribe('server.changed', ({ instance, snapshot: { state, lastExit } }) => {
        if (state === 'stopped') endedBy.set(instance, lastExit?.signal ?? undefined);
      });
      composition.platform.events.subscribe('server.left-processes', ({ server, count }) => {
        left.set(server, (left.get(server) ?? 0) + count);
      });
      const tried = examine(once);
      const pings = await Promise.all(tried.map(({ report }) => ping(composition, report)));
      // A server that lists nothing has another finding.
      const list = await listAllTools(client).catch(() => undefined);
      const all = tried.map(({ report, fault }, at): ObservedServer => {
        const readyAfterMs = starts.readyAfterMs(report.server);
        return { report, fault, ping: pings[at], readyAfterMs };
      });
      const reports = tried.map(({ report }) => report);
      observed = { servers: all, tools: toolsIn(list, reports), rows: reportAll(composition).tools };
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

/** Sends a `ping` to a ready server. Leaves out those of the modern era, whose revisions have no `ping`. */
async function ping(
  composition: GatewayProcess,
  { server, state, era }: ServerReport,
): Promise<ObservedServer['ping']> {
  if (state !== 'ready' || era?.name !== 'legacy') return undefined;
  const client = await LocalClient.open(composition, undefined, server);
  try {
    const answer = client.request(METHODS.ping, '{}').then(
      () => 'answered' as const,
      (error) => (error instanceof RpcError ? ('refused' as const) : ('silent' as const)),
    );
    const late = setTimeout(ANSWER_WITHIN_MS, 'silent' as const, { ref: false });
    return await Promise.race([answer, late]);
  } finally {
    client.close();
  }
}

/** Time limit for the answer to a `ping`. It is short, because a server that has listed its tools has nothing else to do. */
const ANSWER_WITHIN_MS = 2_000;

function toolsIn(list: string | undefined, reports: readonly ServerReport[]): ListedTool[] {
  const owners = new Map(reports.flatMap(({ server, tools }) => tools.exposed.map((name) => [name, server] as const)));
  const parsed = list === undefined ? undefined : parseJson(list);
  const tools = isRecord(parsed) && Array.isArray(parsed.tools) ? parsed.tools : [];
  return tools.flatMap((tool) => {
    const name = isRecord(tool) ? String(tool.name) : '';
    const server = owners.get(name);
    if (server === undefined || !isRecord(tool)) return [];
    const { description = '', annotations, inputSchema } = tool;
    const { properties } = isRecord(inputSchema) ? inputSchema : {};
    const params = isRecord(properties) ? Object.keys(properties) : [];
    const descriptionBytes = Buffer.byteLength(String(description));
    const hasHints = isRecord(annotations) && ('destructiveHint' in annotations || 'readOnlyHint' in annotations);
    return [{ server, name, size: Buffer.byteLength(JSON.stringify(tool)), descriptionBytes, params, hasHints }];
  });
}

/** Runs each registered command once, even if several clients have it. Runs one after the other, because each starts all servers. */
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
    // Another check reports a missing program or configuration.
    if (isDisabled || run.kind !== 'command' || hasVariables || lacksFile(registration)) continue;
    const { command, args, env, cwd } = run;
    const key = JSON.stringify([command, args, env, cwd]);
    const known = byRun.get(key) ?? { run, titles: [] };
    known.titles.push(titleOf(registration));
    byRun.set(key, known);
  }
  const servers = config instanceof ConfigError ? 0 : config.servers.length;
  const found: Finding[] = [];
  for (const { run, titles } of byRun.values()) {
    const alone = sharesHub(run, facts) ? {} : { TRUNKLINE_HUB: 'off' };
    const env = { ...clientEnvironment(run, path, machine), ...alone };
    found.push(...checkClientStart(await startAsClient(run, env, ROOT), titles, servers));
  }
  return found;
}

/** Folder in which desktop programs run their servers. */
const ROOT = process.platform === 'win32' ? 'C:\\' : '/';

/** Whether the command can attach to the running hub. It must not start a hub, because that hub would outlive the doctor. */
function sharesHub(run: FoundCommand, { hub, config }: DoctorFacts): boolean {
  if (hub?.state.kind !== 'running' || config instanceof ConfigError) return false;
  const named = configIn(run);
  return named !== undefined && resolve(ROOT, named) === config.file;
}
