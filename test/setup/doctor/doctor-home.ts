import { chmodSync, existsSync } from 'node:fs';
import { beforeEach } from 'vitest';
import { ConfigError } from '../../../src/config/file/config-error.js';
import type { Config } from '../../../src/config/resolve/config.js';
import { findServers } from '../../../src/setup/clients/files/find-servers.js';
import { checkTraps } from '../../../src/setup/doctor/client-traps.js';
import { checkCommands } from '../../../src/setup/doctor/commands.js';
import { type ConfigSource, checkBrokenConfig, checkConfig } from '../../../src/setup/doctor/config-file.js';
import { checkEnvFiles, checkLiterals, checkVariables } from '../../../src/setup/doctor/credentials.js';
import type { Finding } from '../../../src/setup/doctor/finding.js';
import type { Machine } from '../../../src/setup/doctor/machine.js';
import { checkPackages, checkTwins } from '../../../src/setup/doctor/packages.js';
import {
  checkClients,
  checkDuplicates,
  checkGateways,
  findRegistrations,
} from '../../../src/setup/doctor/registrations.js';
import { checkServer, type ObservedServer } from '../../../src/setup/doctor/servers.js';
import type { ServerReport } from '../../../src/status/status.js';
import { faultOf } from '../../../src/status/verdict.js';
import { NOTHING } from '../../status/reporting.js';
import { loadAnyConfig } from '../../support/load-config.js';
import { ClientHome } from '../clients/files/client-home.js';

/** The home of the test that runs, in a file that calls `useHome`. */
export let home: DoctorHome;

/** Gives each test of a file a home of its own. */
export function useHome(): void {
  beforeEach(() => {
    home = new DoctorHome();
  });
}

/** A home folder of its own, and the machine around it. */
export class DoctorHome extends ClientHome {
  readonly env: Record<string, string> = {};
  /** The servers that a repair has taken out of clients. */
  readonly takenOut: string[] = [];
  /** Clients with which Trunkline was registered again. */
  readonly registered: string[] = [];

  /** This copy of Trunkline, as if it were installed here. */
  get program(): string {
    return this.path('lib/trunkline/dist/cli.js');
  }

  machine(rest: Partial<Machine> = {}): Machine {
    return {
      ...{ platform: 'linux', home: this.folder, cwd: this.folder, env: this.env, uid: process.getuid?.() },
      root: this.path('root'),
      node: { version: '22.4.0', path: process.execPath, isElectron: false },
      ...{ program: this.program, version: '2.0.0', isOffline: true },
      ...rest,
    };
  }

  /** Installs a copy of Trunkline with this version. */
  install(version = '2.0.0', folder = 'lib/trunkline'): string {
    this.write(`${folder}/package.json`, JSON.stringify({ name: 'trunkline', version }));
    return this.write(`${folder}/dist/cli.js`, '');
  }

  /** The entry of a client that runs this copy of Trunkline, which is installed. The configuration exists by default. */
  entry(...args: readonly string[]) {
    const config = this.path('trunkline.yaml');
    if (args.length === 0 && !existsSync(config)) this.configure({});
    return { command: process.execPath, args: [this.install(), ...(args.length > 0 ? args : ['--config', config])] };
  }

  /** Writes the configuration; a text is written as it is. */
  configure(servers: string | Record<string, unknown>, mode = 0o600): string {
    const text = typeof servers === 'string' ? servers : JSON.stringify({ servers });
    const file = this.write('trunkline.yaml', text);
    chmodSync(file, mode);
    return file;
  }

  config(file = this.path('trunkline.yaml')): Config {
    return loadAnyConfig(file, { env: this.env, nodePath: process.execPath });
  }

  /** A program that can be run, in a folder of this home. */
  executable(file: string, text: string, mode = 0o755): string {
    const path = this.write(file, text);
    chmodSync(path, mode);
    return path;
  }

  /** Everything that the configuration alone tells. */
  checkConfiguration({
    source = 'the usual places',
    shell,
  }: {
    source?: ConfigSource;
    shell?: string;
  } = {}): Finding[] {
    const file = this.path('trunkline.yaml');
    const machine = this.machine();
    try {
      const config = this.config(file);
      const { servers } = config;
      return [
        ...checkConfig(config, source, machine),
        ...checkVariables(servers),
        ...checkLiterals(file, machine),
        ...checkEnvFiles(file, servers, machine),
        ...checkCommands(servers, { desktop: '/usr/bin:/bin', shell }, machine),
        ...checkPackages(servers, { paths: this.paths, remarksOn: () => [], install: async () => {} }),
        ...checkTwins(servers),
      ];
    } catch (error) {
      if (error instanceof ConfigError) return checkBrokenConfig(error);
      throw error;
    }
  }

  /** All that the configuration and the files of the clients tell. */
  async examine(): Promise<Finding[]> {
    return [...this.checkConfiguration(), ...(await this.checkClients())];
  }

  get paths() {
    const configFile = this.path('trunkline.yaml');
    return { configFile, storeFolder: this.path('store'), locksFolder: this.path('locks') };
  }

  /** Writes the servers of a client's file. */
  register(servers: Record<string, unknown>, file = '.config/Claude/claude_desktop_config.json'): string {
    return this.write(file, JSON.stringify({ mcpServers: servers }));
  }

  /** Everything that the files of the clients tell. */
  async checkClients(rest: Partial<Machine> = {}): Promise<Finding[]> {
    const machine = this.machine(rest);
    const { platform, home, cwd, env } = machine;
    const found = await findServers({ platform, home, cwd, env });
    const registrations = findRegistrations(found.servers, machine);
    const servers = (() => {
      try {
        return this.config().servers;
      } catch {
        return [];
      }
    })();
    return [
      ...(await checkClients(found, registrations, machine, async (client) => void this.registered.push(client))),
      ...checkDuplicates(found, registrations, {
        ...{ servers, configFile: this.path('trunkline.yaml'), userConfigFile: this.path('trunkline.yaml') },
        works: (key) => key !== 'broken',
        takeOut: async (taken) =>
          void this.takenOut.push(taken.map(({ place, name }) => `${place.client} ${place.scope} ${name}`).join(', ')),
      }),
      ...checkGateways(found, registrations, ({ name }) => (name === 'hub' ? 'mcp-hub' : undefined)),
      ...(await checkTraps(registrations, machine, Date.now())),
    ];
  }
}

/** The report about a server `s` that is well, except for these members. */
export function reportOf(members: Partial<ServerReport> = {}): ServerReport {
  return {
    ...{
      server: 's',
      project: null,
      sandbox: null,
      state: 'ready',
      remote: false,
      forgottenSessions: 0,
      insecure: false,
      pid: 1,
      uptimeSeconds: 1,
      generation: 1,
      restarts: 0,
      packageVersion: null,
    },
    ...{
      usage: null,
      resourceLimits: { memoryBytes: null, processes: null },
      sharing: null,
      unshaped: [],
      repairedResults: [],
    },
    ...{
      protocolVersion: '2025-11-25',
      era: null,
      fromLastRun: false,
      breaker: 'closed',
      inFlight: 0,
      queued: 0,
      calls: 0,
    },
    ...{ errors: 0, failures: 0, failureReasons: {}, cancelled: 0, repeated: 0, latencyMs: null },
    toolTokens: 10,
    ...{ tools: { ...NOTHING, exposed: ['s__a'] }, prompts: NOTHING, resources: NOTHING, resourceTemplates: NOTHING },
    ...{ approval: null, dropped: {}, pausedSeconds: 0, lastExit: null, lastFailure: null, retryInSeconds: null },
    ...{ installing: null, cause: [], log: [], droppedLogBytes: 0, problem: '', code: null, advice: '' },
    ...{ instructions: null, instances: [] },
    ...members,
  };
}

/** A server whose start failed for this reason, after it had printed these lines. */
export function failed(
  lastFailure: string,
  lines: readonly string[] = [],
  rest: Partial<ObservedServer> = {},
): Finding[] {
  const report = reportOf({ state: 'parked', lastFailure, cause: [...lines], log: [...lines], protocolVersion: null });
  return checkServer({ report, fault: faultOf(report), ...rest });
}
