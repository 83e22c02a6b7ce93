import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { type GlobalOptions, openLog } from '../../../app/global-options.js';
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
import { type ConfigSource, checkBrokenConfig, checkConfig } from '../../../doctor/config-file.js';
import { type Check, type Finding, runChecks } from '../../../doctor/finding.js';
import { checkHub, checkHubFolder, checkRecentFaults } from '../../../doctor/hub.js';
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
import { installedTree } from '../../../packages/package-store.js';
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
import { chooseServers } from '../calls/run-once.js';
import { takeOutOfClients } from '../clients/client-changes.js';
import { remarksOn } from '../packages/package-remarks.js';
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
  const onConfig =
    config instanceof ConfigError
      ? [{ about: 'the configuration', run: () => checkBrokenConfig(config) }]
      : configChecks(facts, config);
  const now = Date.now();
  return await runChecks([
    ...machineChecks(facts),
    ...onConfig,
    { about: 'the clients', run: async () => await checkClients(clients, registrations, machine) },
    { about: 'other gateways', run: () => checkGateways(clients, registrations, gatewayNameOf) },
    { about: 'settings and logs of clients', run: async () => await checkTraps(registrations, machine, now) },
    ...processChecks(facts, now),
  ]);
}

/** Finds servers that clients run besides Trunkline. `working`: the keys of those that have run in Trunkline. */
export async function checkTwice(facts: DoctorFacts, working: ReadonlySet<string>): Promise<readonly Finding[]> {
  const { config, registrations, clients, servers } = facts;
  if (config instanceof ConfigError) return [];
  const taken = takenBy(config, servers, working);
  return await runChecks([
    { about: 'servers that exist twice', run: () => checkDuplicates(clients, registrations, taken) },
  ]);
}

/** All removals of one `--fix` are one change for `trunkline undo`. */
function takenBy({ file }: Config, servers: readonly ServerConfig[], working: ReadonlySet<string>): Taken {
  const run = new Date().toISOString();
  const { env, platform } = process;
  return {
    servers,
    configFile: file,
    userConfigFile: userConfigFile({ env, home: homedir(), platform }),
    works: (key) => working.has(key),
    takeOut: async (found) => await takeOutOfClients(found, run),
  };
}

function gatewayNameOf(server: FoundServer): string | undefined {
  try {
    return gatewayOf(toRun(server, { system: thisSystem(), readEnvFile: () => ({}) }));
  } catch (error) {
    if (error instanceof CannotImport) return undefined;
    throw error;
  }
}

function machineChecks({ machine, config, servers }: DoctorFacts): Check[] {
  const folders = { data: userDataFolder(), others: config instanceof ConfigError ? [] : [dirname(config.file)] };
  const isNeeded = servers.some((server) => server.package !== undefined);
  return [
    { about: 'Node', run: () => checkNode(machine) },
    { about: 'npm', run: async () => await checkNpm(machine, npmFacts(machine, isNeeded)) },
    { about: 'folders', run: async () => await checkFolders(machine, folders) },
    { about: 'limits', run: async () => checkLimits(await readLimits(), servers.length) },
    { about: 'proxies and certificates', run: () => checkNetwork(machine) },
  ];
}

function npmFacts(machine: Machine, isNeeded: boolean) {
  const file = npmOf(machine);
  const ping = async () => {
    const options = ['--loglevel=error', '--no-update-notifier', '--fetch-retries=0', '--fetch-timeout=2500'];
    const { code, lines } = await runNpm({
      npm: file ?? '',
      nodePath: machine.node.path,
      args: ['ping', ...options],
      cwd: machine.home,
      env: npmEnvironment(machine.env, {}),
      clock: systemClock,
      signal: AbortSignal.timeout(PING_WITHIN_MS),
      onBegun: () => {},
      onGone: () => {},
    });
    if (code === 0) return [];
    return lines.length > 0 ? lines : [`no answer within ${PING_WITHIN_MS / 1_000} s`];
  };
  return { file, ping, isNeeded };
}

/** Leaves time to end npm within the limit of a check. */
const PING_WITHIN_MS = 2_500;

function configChecks({ settings, machine, servers }: DoctorFacts, config: Config): Check[] {
  const { file } = config;
  const tools = {
    places: { ...packageFolders(), configFile: file },
    remarksOn: ({ package: used }: ServerConfig) =>
      used === undefined
        ? []
        : remarksOn(used.request, installedTree(used.request, used.found, { ...packageFolders(), configFile: file })),
    install: async (keys: readonly string[]) => await installPackages({ ...settings, config: file }, keys),
  };
  return [
    { about: 'the configuration', run: () => checkConfig({ ...config, servers }, sourceOf(settings), machine) },
    { about: 'variables', run: () => checkVariables(servers) },
    { about: 'secrets in the configuration', run: () => checkLiterals(file, machine) },
    { about: 'files with variables', run: () => checkEnvFiles(file, servers, machine) },
    {
      about: 'commands',
      run: async () => {
        const [desktop, shell] = await Promise.all([desktopPath(machine), shellPath(machine)]);
        return checkCommands(servers, { desktop, shell }, machine);
      },
    },
    { about: 'packages', run: () => checkPackages(servers, tools) },
    { about: 'servers that run the same program', run: () => checkTwins(servers) },
  ];
}

function sourceOf({ config }: GlobalOptions): ConfigSource {
  if (config) return '--config';
  return process.env.TRUNKLINE_CONFIG ? 'TRUNKLINE_CONFIG' : 'the usual places';
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

function processChecks({ machine, config, hub, servers }: DoctorFacts, now: number): Check[] {
  const files = { tokenFile: tokenFile(), sealFile: sealFile() };
  const checks: Check[] = [
    { about: 'secret files', run: async () => await checkSecretFiles(files, machine) },
    { about: 'processes of earlier runs', run: async () => await checkRuns(runFolder(), sweepRuns) },
    {
      about: 'Trunkline over HTTP',
      run: async () => {
        const configFile = config instanceof ConfigError ? undefined : config.file;
        const state = hub?.facts?.state;
        const pid = state?.kind === 'running' ? state.pid : undefined;
        return checkHttpGateways({
          httpGateways: await findHttpGateways(httpGatewayFolder()),
          configFile,
          hub: pid,
          now,
        });
      },
    },
    {
      about: 'other gateways',
      run: async () => {
        const processes = (await readCommandLines()) ?? [];
        return checkOtherGateways({ processes, servers, gatewayOf: runningGateway, machine });
      },
    },
  ];
  if (hub === undefined) return checks;
  const { facts, faults, logFile } = hub;
  if (facts === undefined) checks.push({ about: 'the folder of the hub', run: () => checkHubFolder(faults) });
  if (facts !== undefined) checks.push({ about: 'the hub', run: async () => await checkHub(facts, machine.version) });
  if (logFile !== undefined)
    checks.push({ about: 'the log of the hub', run: async () => await checkRecentFaults(logFile, now) });
  return checks;
}

/** Ends the processes that killed gateways have left, as every start does. */
async function sweepRuns(): Promise<void> {
  const { logger } = openLog({ config: undefined, verbosity: 0, logFile: undefined });
  logger.level = 'fatal';
  const guard = new OrphanGuard({ clock: systemClock, logger, runFolder: runFolder() });
  await guard.sweep();
  await guard.close();
}
