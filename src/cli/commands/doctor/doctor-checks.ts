import { homedir } from 'node:os';
import { dirname } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import { thisSystem } from '../../../clients/files/client-locations.js';
import type { FoundServer, FoundServers } from '../../../clients/files/found-server.js';
import { gatewayOf, runningGateway } from '../../../clients/import/gateways.js';
import { CannotImport, toRun } from '../../../clients/import/run.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { userConfigFile } from '../../../config/file/find-config.js';
import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { checkDuplicates, checkGateways, type Taken } from '../../../doctor/client-duplicates.js';
import { checkTraps } from '../../../doctor/client-traps.js';
import { checkClients } from '../../../doctor/clients.js';
import { checkCommands, desktopPath, shellPath } from '../../../doctor/commands.js';
import { checkBrokenConfig, checkConfig } from '../../../doctor/config-file.js';
import { type Checks, type Finding, runChecks } from '../../../doctor/finding.js';
import { checkHub, checkRecentFaults } from '../../../doctor/hub.js';
import {
  checkFolders,
  checkLimits,
  checkNetwork,
  checkNode,
  checkNpm,
  type Machine,
  npmOf,
  readLimits,
} from '../../../doctor/machine.js';
import { checkPackages, checkTwins } from '../../../doctor/packages.js';
import { checkHttpGateways, checkOtherGateways, checkRuns } from '../../../doctor/processes.js';
import type { Registration } from '../../../doctor/registrations.js';
import { checkEnvFiles, checkLiterals, checkSecretFiles, checkVariables } from '../../../doctor/secrets.js';
import { systemClock } from '../../../observe/system-clock.js';
import { runNpm } from '../../../packages/npm-client.js';
import { npmEnvironment } from '../../../process/environment.js';
import { OrphanGuard } from '../../../process/orphan-guard.js';
import { readCommandLines } from '../../../process/processes.js';
import { findHttpGateways } from '../../../state/http-gateway-file.js';
import {
  httpGatewayFolder,
  packageFolders,
  runFolder,
  sealFile,
  tokenFile,
  userDataFolder,
} from '../../../state/user-files.js';
import { chooseServers, openQuietLog } from '../calls/run-once.js';
import { takeOutOfClients } from '../clients/client-changes.js';
import { remarksOnServer } from '../packages/package-remarks.js';
import { allSettled, workOnPackages } from '../packages/package-work.js';
import type { DoctorHub } from './doctor-hub.js';

/** Facts for all checks. */
export interface DoctorFacts {
  readonly settings: GlobalOptions;
  readonly machine: Machine;
  readonly config: Config | ConfigError;
  /** The chosen servers; none without a configuration. */
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
    'the clients': () => checkClients(clients, registrations, machine),
    'gateways of clients': () => checkGateways(clients, registrations, gatewayNameOf),
    'settings and logs of clients': () => checkTraps(registrations, machine, now),
    ...processChecks(facts, now),
  });
}

/** Finds servers that clients run besides Trunkline. `working`: the keys of those that have run in Trunkline. */
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
    npm: () => checkNpm(machine, { file: npm, ping: () => pingRegistry(npm ?? '', machine), isNeeded }),
    folders: () => checkFolders(machine, folders),
    limits: async () => checkLimits(await readLimits(), servers.length),
    'proxies and certificates': () => checkNetwork(machine),
  };
}

/** Resolves with the errors of npm; none if it reaches its registry. */
async function pingRegistry(npm: string, { node, home, env }: Machine): Promise<readonly string[]> {
  const { code, lines } = await runNpm({
    ...{ npm, nodePath: node.path, cwd: home, env: npmEnvironment(env, {}), clock: systemClock },
    args: ['ping', '--loglevel=error', '--no-update-notifier', '--fetch-retries=0', '--fetch-timeout=2500'],
    signal: AbortSignal.timeout(PING_WITHIN_MS),
    onBegun: () => {},
    onGone: () => {},
  });
  if (code === 0) return [];
  return lines.length > 0 ? lines : [`no answer within ${PING_WITHIN_MS / 1_000} s`];
}

/** Leaves time to end npm within the limit of a check. */
const PING_WITHIN_MS = 2_500;

function configChecks({ settings, machine, servers }: DoctorFacts, config: Config): Checks {
  const { file } = config;
  const source = settings.config ? '--config' : process.env.TRUNKLINE_CONFIG ? 'TRUNKLINE_CONFIG' : 'the usual places';
  const tools = {
    places: { ...packageFolders(), configFile: file },
    remarksOn: (server: ServerConfig) => remarksOnServer(server, file),
    install: (keys: readonly string[]) => installPackages({ ...settings, config: file }, keys),
  };
  return {
    'the configuration': () => checkConfig({ ...config, servers }, source, machine),
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
    'processes of earlier runs': () => checkRuns(runFolder(), sweepRuns),
    'Trunkline over HTTP': async () => {
      const httpGateways = await findHttpGateways(httpGatewayFolder());
      const configFile = config instanceof ConfigError ? undefined : config.file;
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

/** Ends the processes that killed gateways have left, as every start does. */
async function sweepRuns(): Promise<void> {
  const { logger } = openQuietLog({ config: undefined, verbosity: 0, logFile: undefined });
  const guard = new OrphanGuard({ clock: systemClock, logger, runFolder: runFolder() });
  await guard.sweep();
  await guard.close();
}
