import { existsSync } from 'node:fs';
import systemPath, { dirname, type PlatformPath } from 'node:path';
import type { Duplex } from 'node:stream';
import { ConfigLocation } from '../config/file/find-config.js';
import type { Config } from '../config/resolve/config.js';
import { GATEWAY_SETTINGS } from '../config/schema/settings.js';
import { EXIT } from '../errors/usage-error.js';
import { PendingGateway } from '../gateway/pending-gateway.js';
import { movePredecessors } from '../hub/attach/control-client.js';
import { hubLog, numberOf } from '../hub/hub-folder.js';
import { HubLife } from '../hub/hub-life.js';
import { type ControlCommands, serveControl } from '../hub/server/control-connection.js';
import { HubClients } from '../hub/server/hub-clients.js';
import type { RunningHub } from '../hub/server/hub-commands.js';
import { HubListener, type HubPeer, removeLeftovers } from '../hub/server/hub-listener.js';
import type { Hello, Refusal } from '../hub/wire.js';
import { type ByteReader, copyInto } from '../io/byte-reader.js';
import type { Logger } from '../observe/logger.js';
import { knownDescription } from '../state/known-instructions.js';
import { IDENTITY, VERSION } from '../version.js';
import { createEraChooser, createPlatform, type Platform } from './platform.js';
import type { GlobalOptions } from './read-config.js';
import { endProcess } from './run-to-end.js';
import {
  type DrainOptions,
  FIRST_MESSAGE_MS,
  inTime,
  LOCAL_USER,
  limitDrain,
  MAX_LINE_BYTES,
  signal,
} from './stdio-client.js';

interface HubOptions {
  readonly platform: Platform;
  readonly life: HubLife;
  /** Begins to accept clients. */
  readonly listen: (accept: (hello: Hello, peer: HubPeer) => Refusal | undefined) => ClientSource;
  /** Why this is no hub, but a process that serves one client as a hub would. The configuration cannot say so then. */
  readonly aloneBecause?: string;
}

/** Where the clients of a hub come from. */
interface ClientSource {
  /** Clients get answers from now on. */
  answering(): void;
  /** The servers are being started. */
  ready(hub: RunningHub): void;
  /** Takes no more clients. */
  close(): void;
}

/** The variables whose values each client sends. */
function variablesIn({ servers }: Config): string[] {
  return servers.flatMap(({ variables }) => variables);
}

/**
 * Clients until the configuration says how many there may be. When a hub has died, all of its clients come at once: none of
 * them may be refused that the configuration allows.
 */
const FIRST_CLIENTS = GATEWAY_SETTINGS.hubClients.max;

/** Serves many clients of this user and of one configuration, until the hub's life is over. */
async function serveHub(options: GlobalOptions, { platform, life, listen, aloneBecause }: HubOptions) {
  platform.messages.hold();
  const location = new ConfigLocation(options);
  const since = platform.clock.now();
  const gateway = new PendingGateway((facts) => knownDescription(location, facts));
  let logger: Pick<Logger, 'warn'> | undefined;
  const [firstMessage, onFirstMessage] = signal();
  const [serving, onServing] = signal<DrainOptions>();
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
      // A client that has sent its last request gets the answers that a client alone on stdin would get.
      void serving.then((drain) => {
        if (!isOver) cancel = limitDrain(client, giveUp, drain, 'its session ends');
      });
      return () => {
        isOver = true;
        cancel();
      };
    },
    onUnread: ({ pid }, unwrittenBytes) =>
      logger?.warn({ pid, unwrittenBytes }, 'a client does not read: its session was closed'),
    onChange: () => life.clientsChanged(clients.size),
  });
  const [first, onFirst] = signal<Hello>();
  /** The variables that the file names, which clients send that come now. */
  let named = new Set<string>();
  let isAsked = false;
  /** Ends the hub if the configuration does not want it. A file with mistakes does not say. */
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
  // The first client is welcome. What it sends comes while this loads.
  const loading = import('./serve-clients.js');
  const origin = { environment: hello.environment, folder: hello.folder };
  await inTime(firstMessage, FIRST_MESSAGE_MS);
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
        // Without a hub, there is nothing else to attach to, and the variables of the client are there.
        if (hasMore && aloneBecause === undefined) clients.reattach();
      },
      served: async (options, composition) => {
        onServing(options);
        life.begin(
          () => composition.config.gateway,
          () => existsSync(location.file),
        );
        source.ready({ clients, composition });
        // After a signal, the servers end. What clients write from now on is for the next hub.
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

/** Serves one client by a hub in this process, at the other end of `stream`, and ends the process after it. */
export async function serveInside(
  options: GlobalOptions,
  hello: Omit<Hello, 'wire' | 'token'>,
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
      // This process is the client's own: it has all variables, also those that the configuration names later.
      const environment = process.env as Hello['environment'];
      accept({ ...hello, environment, wire: 0, token: '' }, { stream, reader: { handOver }, welcome: () => {} });
      return { answering: () => {}, ready: () => life.endAfterClients(), close: () => {} };
    },
  });
  await endProcess(code);
}

interface HubProcessOptions {
  /** The folder of this hub, which the process that starts it has made. */
  readonly hubFolder: string;
  /** The descriptor of the listening socket. */
  readonly descriptor: number;
}

/**
 * Loads what a hub needs later. The program may be gone or another one by then: after an update, or when npx has emptied its
 * cache. Left out is what is large and only reads some configurations: such a change has no effect then.
 */
async function loadRest(commands: () => Promise<unknown>): Promise<void> {
  const own = [commands(), import('../record/record-to.js'), import('../config/resolve/secrets.js')];
  await Promise.allSettled([...own, import('opossum'), import('p-queue')]);
}

/** The background process that serves the clients of this user and this configuration. */
export async function runHub(options: GlobalOptions, { hubFolder, descriptor }: HubProcessOptions): Promise<number> {
  // The hub outlives the terminal or the login that started it. Until the servers start, no other listener ignores the signal.
  process.on('SIGHUP', () => {});
  const platform = createPlatform();
  const life = new HubLife(platform.clock);
  const folder = dirname(hubFolder);
  const startedAt = platform.clock.now();
  let runningHub: RunningHub | undefined;
  let onRunning: (hub: RunningHub) => void = () => {};
  const running = new Promise<RunningHub>((resolve) => {
    onRunning = (hub) => {
      runningHub = hub;
      resolve(hub);
    };
  });
  const logFile = options.logFile ?? hubLog(folder);
  const configFile = options.config ?? '';
  const hub = () => runningHub;
  // Loaded after the servers have begun to start: no client needs them.
  let loaded: Promise<ControlCommands> | undefined;
  const commands = () => {
    // The same for all connections: one command can end what another one has begun.
    loaded ??= import('../hub/server/hub-commands.js').then(({ hubCommands }) =>
      hubCommands({ running, hub, life, platform, hubFolder, startedAt, configFile, logFile }),
    );
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
          onHello: (hello, peer) => {
            if (hello.role === 'client') {
              // A desktop program knows fewer folders than a shell, and either may have started the hub.
              process.env.PATH = withFolders(process.env.PATH ?? '', hello.path ?? '');
              return accept(hello, peer);
            }
            serveControl(peer, commands);
            return undefined;
          },
        });
        return {
          // A hub that hangs from now on is no slow start: clients wait for it no longer than for any other.
          answering: () => listener.markReady(),
          ready: (hub) => {
            onRunning(hub);
            void loadRest(commands);
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
 * Adds the folders of another search path to this one, at its end. Only absolute folders are taken: where a relative one
 * leads depends on the working folder of the process that named it.
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
