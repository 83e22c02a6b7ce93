import { existsSync } from 'node:fs';
import systemPath, { dirname, type PlatformPath } from 'node:path';
import type { Duplex } from 'node:stream';
import { ConfigLocation } from '../config/file/find-config.js';
import type { Config } from '../config/resolve/config.js';
import { GATEWAY_SETTINGS } from '../config/schema/settings.js';
import { PendingGateway } from '../gateway/pending-gateway.js';
import { EXIT } from '../host/errors/usage-error.js';
import type { Logger } from '../host/observe/logger.js';
import { movePredecessors } from '../hub/attach/control-client.js';

import { hubLog, numberOf } from '../hub/hub-folder.js';
import { HubLife } from '../hub/hub-life.js';
import { type ControlCommands, serveControl } from '../hub/server/control-connection.js';
import { HubClients, type HubClientsOptions } from '../hub/server/hub-clients.js';
import type { RunningHub } from '../hub/server/hub-commands.js';
import { HubListener, type HubPeer, removeLeftovers } from '../hub/server/hub-listener.js';
import type { ClientHello, Hello, HubRefusal } from '../hub/wire.js';
import { knownDescription } from '../state/known-instructions.js';
import { IDENTITY, VERSION } from '../version.js';
import { type ByteReader, copyInto } from '../wire/io/byte-reader.js';
import type { GlobalOptions } from './global-options.js';
import { deferred, firstMessageOrTimeout, MAX_LINE_BYTES } from './local-clients.js';
import { createEraChooser, createPlatform, LOCAL_USER, type Platform } from './platform.js';
import { endProcess } from './run-to-end.js';

interface HubOptions {
  readonly platform: Platform;
  readonly life: HubLife;
  /** Begins to accept clients. */
  readonly listen: (accept: (hello: Hello, peer: HubPeer) => HubRefusal | undefined) => ClientSource;
  /**
   * Set if this process serves a single client with the code of a hub: the reason why no hub serves that client. The setting
   * `hub` is ignored then.
   */
  readonly aloneBecause?: string;
}

/** The source of a hub's clients: the listening socket, or the one stream of a process without a hub. */
interface ClientSource {
  /** Called when clients begin to get answers. */
  answering(): void;
  /** Called when the servers start. */
  ready(hub: RunningHub): void;
  /** Takes no more clients. */
  close(): void;
}

/** The variables whose values each client sends. */
function variablesIn({ servers }: Config): string[] {
  return servers.flatMap(({ variables }) => variables);
}

/**
 * Largest number of clients until the configuration is read. It is the largest value of the setting, because all clients of
 * a dead hub come to the next hub at once, and that hub must not refuse clients that the configuration allows.
 */
const FIRST_CLIENTS = GATEWAY_SETTINGS.hubClients.max;

/** Serves many clients of this user and of one configuration, until the hub's life is over. */
async function serveHub(options: GlobalOptions, { platform, life, listen, aloneBecause }: HubOptions) {
  platform.messages.hold();
  const location = new ConfigLocation(options);
  const since = platform.clock.now();
  const gateway = new PendingGateway((facts) => knownDescription(location, facts));
  let logger: Logger | undefined;
  const [firstMessage, onFirstMessage] = deferred();
  const [serving, onServing] = deferred<HubClientsOptions['limitDrain']>();
  const clients = new HubClients({
    ...platform,
    maxLineBytes: MAX_LINE_BYTES,
    nextTurn: setImmediate,
    chooseEra: createEraChooser(platform, gateway, IDENTITY),
    principal: LOCAL_USER,
    onInternalError: platform.internalErrors.onInternalError,
    onFirstMessage,
    maxClients: () => life.settings?.hubClients ?? FIRST_CLIENTS,
    limitDrain: (client, giveUp) => {
      let cancel = () => {};
      let isOver = false;
      // A client that has sent its last request gets the same time for its answers as a client on stdin.
      void serving.then((limit) => {
        if (!isOver) cancel = limit(client, giveUp);
      });
      return () => {
        isOver = true;
        cancel();
      };
    },
    onUnread: ({ pid }, unwrittenBytes) =>
      logger?.warn({ pid, unwrittenBytes }, 'closed the session of a client, because it does not read'),
    onChange: () => life.clientsChanged(clients.size),
  });
  const [first, onFirst] = deferred<Hello>();
  /** Names of the variables in the current file. Each new client sends the values of these variables. */
  let named = new Set<string>();
  let isAsked = false;
  /** Ends the hub if the first configuration without mistakes does not ask for a hub. */
  const askForHub = ({ stamp, gateway: { hub } }: Config) => {
    if (isAsked || stamp === undefined || aloneBecause !== undefined) return;
    isAsked = true;
    if (process.env.TRUNKLINE_HUB === 'auto' || hub === 'auto') return;
    life.end('off');
    clients.close('off');
    source.close();
  };
  const source = listen((hello, peer) => {
    const refusal = life.refusal ?? clients.open(hello, peer);
    if (refusal === undefined) onFirst(hello);
    return refusal;
  });
  const hello = await Promise.race([first, life.unused, life.over.then(() => undefined)]);
  if (hello === undefined) {
    source.close();
    return EXIT.ok;
  }
  // Loads while the first message of the client is on its way.
  const loading = import('./serve-clients.js');
  const origin = { environment: hello.environment, folder: hello.folder };
  await firstMessageOrTimeout(firstMessage);
  const { serveClients } = await loading;
  return await serveClients(options, {
    platform,
    location,
    gateway,
    http: undefined,
    onListening: () => {},
    local: {
      isAttached: true,
      ignoresHangup: aloneBecause === undefined,
      isGone: () => life.refusal === 'off',
      inputEnded: life.over,
      layers: aloneBecause === undefined ? 'all' : 'own',
      origin,
      logTo: (opened) => {
        logger = opened;
      },
      service: () =>
        aloneBecause === undefined
          ? { kind: 'hub', pid: process.pid, since, clients: clients.size }
          : { kind: 'alone', because: aloneBecause },
      configured: (config) => {
        named = new Set(variablesIn(config));
        askForHub(config);
      },
      answering: () => source.answering(),
      reloaded: (config) => {
        askForHub(config);
        const before = named;
        named = new Set(variablesIn(config));
        const hasMore = [...named].some((name) => !before.has(name));
        // In a process without a hub, the client need not attach again, because its variables are those of the process.
        if (hasMore && aloneBecause === undefined) clients.reattach();
      },
      served: async (options, composition) => {
        const { limitDrain } = await import('./drain-client.js');
        onServing((client, giveUp) => limitDrain(client, giveUp, options, 'its session ends'));
        life.begin(
          () => composition.config.gateway,
          () => existsSync(location.file),
        );
        source.ready({ clients, composition });
        // A signal ends the servers, so clients send their next requests to the next hub.
        options.ending.addEventListener('abort', () => {
          clients.close('stopped');
          life.end('ending');
        });
        await life.over;
        source.close();
        clients.close(life.closing);
      },
    },
  });
}

/** Serves the one client at the other end of `stream` with the code of a hub, and then ends the process. */
export async function serveInside(
  options: GlobalOptions,
  hello: ClientHello,
  because: string,
  stream: Duplex,
): Promise<void> {
  const platform = createPlatform();
  const life = new HubLife(platform.clock);
  const code = await serveHub(options, {
    platform,
    life,
    aloneBecause: because,
    listen: (accept) => {
      const handOver = (reader: ByteReader) => stream.on('data', (chunk: Uint8Array) => copyInto(reader, chunk));
      // The process has the client's environment, so variables that the configuration names later are there, too.
      const environment = process.env as Hello['environment'];
      accept({ ...hello, environment, wire: 0, proof: '' }, { stream, reader: { handOver }, welcome: () => {} });
      return { answering: () => {}, ready: () => life.endAfterClients(), close: () => {} };
    },
  });
  await endProcess(code);
}

interface HubProcessOptions {
  /** The folder of this hub. The process that starts the hub creates it. */
  readonly hubFolder: string;
  /** The descriptor of the listening socket, on systems that can hand one over. */
  readonly descriptor: number;
}

/** Runs the background process that serves the clients of this user and this configuration. */
export async function runHub(options: GlobalOptions, { hubFolder, descriptor }: HubProcessOptions): Promise<number> {
  // The hub outlives the terminal or the login that started it. Until the servers start, no other listener ignores the signal.
  process.on('SIGHUP', () => {});
  const platform = createPlatform();
  const life = new HubLife(platform.clock);
  const folder = dirname(hubFolder);
  const startedAt = platform.clock.now();
  let runningHub: RunningHub | undefined;
  const [running, onRunning] = deferred<RunningHub>();
  const logFile = options.logFile ?? hubLog(folder);
  const configFile = options.config ?? '';
  const hub = () => runningHub;
  // Loaded after the servers have begun to start, because no client needs the commands.
  let loaded: Promise<ControlCommands> | undefined;
  const commands = () => {
    // One object for all connections, because a command can end what a command on another connection has begun.
    const about = { kind: 'hub', number: numberOf(hubFolder), configFile, logFile } as const;
    const facts = { ...about, running, hub, life, platform, startedAt };
    const shared = async () => await (await import('./gateway-control.js')).loadGatewayCommands(facts);
    const own = async () => (await import('../hub/server/hub-commands.js')).hubCommands(facts);
    loaded ??= Promise.all([shared(), own()]).then(([shared, own]) => ({ ...shared, ...own }));
    return loaded;
  };
  return await serveHub(
    { ...options, logFile },
    {
      platform,
      life,
      listen: (accept) => {
        const listener = new HubListener({
          hubFolder,
          descriptor,
          version: VERSION,
          onUnreachable: (error) => {
            process.stderr.write(`trunkline: the hub ends, because it cannot listen: ${error.message}\n`);
            life.end('ending');
          },
          onHello: (hello, peer) => {
            if (hello.role === 'client') {
              // The search path of a desktop program has fewer folders than that of a shell, and either may have started the hub.
              process.env.PATH = withFolders(process.env.PATH ?? '', hello.path ?? '');
              return accept(hello, peer);
            }
            serveControl(peer, commands);
            return undefined;
          },
        });
        return {
          // Ends the longer wait that clients grant to a hub that is starting.
          answering: () => listener.markReady(),
          ready: (hub) => {
            runningHub = hub;
            onRunning(hub);
            void import('./gateway-control.js').then(({ loadRest }) => loadRest(hub.composition.features, commands));
            void movePredecessors(folder, numberOf(hubFolder), VERSION).then((running) =>
              removeLeftovers(hubFolder, running, Date.now()),
            );
          },
          close: () => listener.close(),
        };
      },
    },
  );
}

/**
 * Appends the folders of another search path. Relative folders are left out, because each depends on the working folder of
 * the process that sent it.
 */
export function withFolders(path: string, other: string, { delimiter, isAbsolute }: PlatformPath = systemPath): string {
  const folders = path.split(delimiter);
  const known = new Set(folders);
  for (const folder of other.split(delimiter)) {
    if (!isAbsolute(folder) || known.has(folder)) continue;
    known.add(folder);
    folders.push(folder);
  }
  return folders.filter((folder) => folder !== '').join(delimiter);
}
