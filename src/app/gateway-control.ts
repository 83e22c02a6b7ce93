import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { currentFolder } from '../config/file/find-config.js';
import { explain } from '../host/errors/file-error.js';
import type { Logger, RecentLog } from '../host/observe/logger.js';
import { SYSTEM_FORM } from '../hub/endpoint.js';
import { GATEWAYS, hubFiles, privateFolder } from '../hub/hub-folder.js';
import { type ControlCommands, serveControl } from '../hub/server/control-connection.js';
import { HubClients } from '../hub/server/hub-clients.js';
import type { HubCommandsOptions, RunningHub } from '../hub/server/hub-commands.js';
import { HubListener } from '../hub/server/hub-listener.js';
import { GatewayFile, removeEndedGateways } from '../state/gateway-file.js';
import { userHubsFolder } from '../state/user-files.js';
import type { CountedName } from '../status/refused-names.js';
import { IDENTITY, VERSION } from '../version.js';
import type { GatewayProcess } from './gateway-process.js';
import { deferred, MAX_LINE_BYTES } from './local-clients.js';
import { createEraChooser, LOCAL_USER } from './platform.js';

export interface GatewayControlOptions {
  readonly composition: GatewayProcess;
  readonly logger: Logger;
  /** The HTTP transport. Absent if the gateway serves only the client on stdin. */
  readonly http: { readonly url: string; readonly refusedNames: readonly CountedName[] } | undefined;
  /** Start of the process, in milliseconds on the clock. */
  readonly startedAt: number;
  readonly logFile: string | undefined;
  readonly recentLog: RecentLog;
}

/** Longest wait for the answers to a command that has sent its last request, in milliseconds. */
const COMMAND_DRAIN_MS = 3_000;

interface GatewayControl {
  /** Call this when the servers are being started. */
  started(): void;
  /** Removes the socket and its folder. Never rejects. */
  close(): Promise<void>;
}

/**
 * Takes the commands of this user on a socket, as a hub does, so that `trunkline status` and the others find a gateway that is
 * no hub. `trunkline call` and `trunkline tools` connect to the socket as clients, for as long as they run. A folder that only
 * this user can enter has the socket, its token, and a file with facts about the gateway. Returns `undefined`, with a record in
 * the log, if that folder cannot be made.
 */
export function openGatewayControl(options: GatewayControlOptions): GatewayControl | undefined {
  const { composition, logger, http, startedAt, logFile, recentLog } = options;
  const { platform, gateway } = composition;
  const { clock, events } = platform;
  const configFile = composition.config.file;
  const kind = http === undefined ? 'stdio' : 'http';
  const onFault = (err: unknown) => {
    const because =
      'commands such as `trunkline status` cannot find this gateway, because it cannot write into its folder or listen there';
    logger[kind === 'http' ? 'warn' : 'debug']({ reason: explain(err) }, because);
  };
  let folder: string;
  try {
    const gateways = privateFolder(GATEWAYS, userHubsFolder());
    folder = join(gateways, `${process.pid}-${randomBytes(4).toString('hex')}`);
    mkdirSync(folder, { mode: 0o700 });
    const { token } = hubFiles(gateways, folder.slice(gateways.length + 1));
    writeFileSync(token, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx' });
    SYSTEM_FORM.prepareGateway(folder);
    void removeEndedGateways(gateways);
  } catch (error) {
    onFault(error);
    return undefined;
  }
  // Removes the folder also if the process exits without `close`.
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', removeFolder);

  let running: RunningHub | undefined;
  const [starting, onRunning] = deferred<RunningHub>();
  let isDraining = false;
  const life = {
    get refusal() {
      return isDraining ? ('ending' as const) : undefined;
    },
  };
  let loaded: Promise<ControlCommands> | undefined;
  const commands = () => {
    const about = { kind, number: 0, url: http?.url, configFile, logFile: logFile ?? null } as const;
    const facts = { ...about, running: starting, hub: () => running, life, platform: { clock }, startedAt };
    loaded ??= loadGatewayCommands(facts).then((all) => ({ ...all, ...logCommand(recentLog), profiles, drain }));
    return loaded;
  };
  /** Does what SIGTERM does: on Windows, where no process gets signals of others, `trunkline drain` asks for it here. */
  const drain = () => process.emit('SIGTERM', 'SIGTERM');
  /**
   * The profiles of the clients without a user of their own: on stdin, or over HTTP with the shared token or none. A command
   * that takes on one of these profiles uses the processes of that client.
   */
  const profiles = () =>
    [...gateway.connected.values()].flatMap(({ facts: { user, profile } }) => {
      const { clientInfo, capabilities, protocolVersion } = profile;
      return user === undefined ? [{ clientInfo, capabilities, protocolVersion }] : [];
    });
  const clients = new HubClients({
    ...platform,
    maxLineBytes: MAX_LINE_BYTES,
    nextTurn: setImmediate,
    principal: LOCAL_USER,
    chooseEra: createEraChooser(platform, gateway, IDENTITY),
    onInternalError: platform.internalErrors.onInternalError,
    maxClients: () => composition.config.gateway.hubClients,
    limitDrain: (_, giveUp) => clock.schedule(COMMAND_DRAIN_MS, giveUp),
    onFirstMessage: () => {},
    onUnread: () => {},
    onChange: () => {},
  });
  const listener = new HubListener({
    hubFolder: folder,
    version: VERSION,
    onUnreachable: onFault,
    onHello: (hello, peer) => {
      // The variables and the folder are those of this process, so that a command shares the processes of the other clients.
      const own = { ...hello, environment: process.env as typeof hello.environment, folder: currentFolder() };
      if (hello.role === 'client') return life.refusal ?? clients.open(own, peer);
      serveControl(peer, commands);
      return undefined;
    },
  });
  listener.markReady();

  const file = new GatewayFile({ folder, clock, onFault });
  const since = Date.now() - clock.now() + startedAt;
  const write = () => {
    const counted = http?.refusedNames ?? [];
    const refused = counted.map((name) => ({ ...name, at: Date.now() - clock.now() + name.at }));
    file.set({ kind, url: http?.url ?? null, configFile, since, isDraining, refused });
  };
  write();
  const unsubscribe = [
    events.subscribe('http.refused', ({ named }) => named && write()),
    events.subscribe('http.draining', () => {
      isDraining = true;
      write();
    }),
  ];
  return {
    started: () => {
      running = { composition };
      onRunning(running);
      if (kind === 'http') void loadRest(composition.features, commands);
    },
    close: async () => {
      for (const end of unsubscribe) end();
      clients.close('stopped');
      listener.close();
      await file.close();
      process.off('exit', removeFolder);
    },
  };
}

/** The command `log`, with which `trunkline logs` reads the log of a gateway that has no log file. */
function logCommand(recentLog: RecentLog): ControlCommands {
  return {
    /** Emits the latest records, each as a line of JSON. With `follow`, goes on until the connection is closed. */
    log: async ({ follow }, { emit, signal }) => {
      for (const line of recentLog.lines) emit({ line });
      if (follow !== true || signal.aborted) return null;
      const end = recentLog.follow((line) => emit({ line }));
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      end();
      return null;
    },
  };
}

/** Loads the commands that a user can give to any gateway. They are loaded late, because no client needs them. */
export async function loadGatewayCommands(facts: HubCommandsOptions): Promise<ControlCommands> {
  const [{ gatewayCommands }, { pageCommands }] = await Promise.all([
    import('../hub/server/hub-commands.js'),
    import('../hub/server/page-commands.js'),
  ]);
  return { ...gatewayCommands(facts), ...pageCommands(facts) };
}

/**
 * Loads the code that a long-lived gateway needs later, because its files may be gone or replaced by then: after an update, or
 * when npx has emptied its cache. The code that checks a configuration is left out, because it is large. If its files are gone,
 * a changed configuration file has no effect.
 */
export async function loadRest(
  features: { preload(): Promise<unknown> },
  commands: () => Promise<unknown>,
): Promise<void> {
  const own = [commands(), features.preload(), import('../config/resolve/secrets.js')];
  await Promise.allSettled([...own, import('opossum'), import('p-queue')]);
}
