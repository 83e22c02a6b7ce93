import { existsSync } from 'node:fs';
import type { Config } from '../config/resolve/config.js';
import { GATEWAY_SETTINGS } from '../config/schema/settings.js';
import type { StdioTransport } from '../downstream/stdio/stdio-transport.js';
import { EXIT } from '../errors/usage-error.js';
import { PendingGateway } from '../gateway/pending-gateway.js';
import type { HubLife } from '../hub/hub-life.js';
import { HubClients } from '../hub/server/hub-clients.js';
import type { HubPeer } from '../hub/server/hub-listener.js';
import type { Hello, Refusal } from '../hub/wire.js';
import type { Logger } from '../observe/logger.js';
import { IDENTITY } from '../version.js';
import { createEraChooser } from './choose-era.js';
import type { Composition } from './composition.js';
import { ConfigPlace } from './config-place.js';
import type { DrainOptions } from './drain-client.js';
import type { GlobalOptions } from './global-options.js';
import { knownDescription } from './known-instructions.js';
import type { Platform } from './platform.js';
import { FIRST_MESSAGE_MS, inTime, LOCAL_USER, MAX_LINE_BYTES, signal } from './stdio-client.js';

export interface HubOptions {
  readonly platform: Platform;
  readonly life: HubLife;
  /** Begins to accept clients. */
  readonly listen: (accept: (hello: Hello, peer: HubPeer) => Refusal | undefined) => ClientSource;
  /** Why this is no hub, but a process that serves one client as a hub would. The configuration cannot say so then. */
  readonly aloneBecause?: string;
}

/** Where the clients of a hub come from. */
export interface ClientSource {
  /** Clients get answers from now on. */
  answering(): void;
  /** The servers are being started. */
  ready(hub: RunningHub): void;
  /** Takes no more clients. */
  close(): void;
}

/** A hub whose servers are being started. */
export interface RunningHub {
  readonly clients: HubClients;
  readonly composition: Composition;
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
export async function serveHub(options: GlobalOptions, { platform, life, listen, aloneBecause }: HubOptions) {
  platform.messages.hold();
  const place = new ConfigPlace(options);
  const since = platform.clock.now();
  const gateway = new PendingGateway((facts) => knownDescription(place, facts));
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
      const over = new AbortController();
      void drain(client, { serving, giveUp, over: over.signal });
      return () => over.abort();
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
  // Nothing is cached that could be listed before the servers start, so they start first.
  const headStart = gateway.isNew ? await import('./head-start.js') : undefined;
  const started = await headStart?.startServers(place, { clock: platform.clock, origin });
  const { serveClients } = await loading;
  return await serveClients(options, {
    platform,
    place,
    gateway,
    http: undefined,
    started,
    onListening: () => {},
    local: {
      isAttached: true,
      ignoresHangup: aloneBecause === undefined,
      isGone: () => life.refusal === 'off',
      inputEnded: life.over,
      origin,
      logTo: (opened) => {
        // A record such as that of many tools comes before the first list, which would wait for the code of the log.
        opened.postpone();
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
          () => existsSync(place.file),
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

interface Drain {
  /** Resolves when the servers are being started. */
  readonly serving: Promise<DrainOptions>;
  readonly giveUp: () => void;
  readonly over: AbortSignal;
}

/** A client that has sent its last request gets the answers that a client alone on stdin would get. */
async function drain(client: Pick<StdioTransport, 'inFlight'>, { serving, giveUp, over }: Drain): Promise<void> {
  const [options, { limitDrain }] = await Promise.all([serving, import('./drain-client.js')]);
  if (over.aborted) return;
  const drained = {
    get inFlight() {
      return client.inFlight;
    },
    close: giveUp,
  };
  over.addEventListener('abort', limitDrain(drained, options, 'its session ends'));
}
