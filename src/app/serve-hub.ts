import { PendingGateway } from '../gateway/pending-gateway.js';
import { HubClients } from '../hub/server/hub-clients.js';
import type { HubPeer } from '../hub/server/hub-listener.js';
import type { Hello, Refusal } from '../hub/wire.js';
import type { Logger } from '../observe/logger.js';
import { IDENTITY } from '../version.js';
import { createEraChooser } from './choose-era.js';
import type { Composition } from './compose.js';
import { ConfigPlace } from './config-place.js';
import { EXIT } from './exit-codes.js';
import type { GlobalOptions } from './global-options.js';
import type { HubLife } from './hub-life.js';
import { knownInstructions } from './known-instructions.js';
import type { Platform } from './platform.js';
import { LOCAL_USER, MAX_LINE_BYTES } from './stdio-client.js';

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
  /** The servers are being started, and clients get answers. */
  ready(hub: RunningHub): void;
  /** Takes no more clients. */
  close(): void;
}

/** A hub whose servers are being started. */
export interface RunningHub {
  readonly clients: HubClients;
  readonly composition: Composition;
}

/** Clients until the configuration says how many there may be. */
const FIRST_CLIENTS = 64;

/** Serves many clients of this user and of one configuration, until the hub's life is over. */
export async function serveHub(options: GlobalOptions, { platform, life, listen, aloneBecause }: HubOptions) {
  const place = new ConfigPlace(options);
  const since = platform.clock.now();
  const gateway = new PendingGateway((facts) => knownInstructions(place, facts));
  let logger: Pick<Logger, 'warn'> | undefined;
  const clients = new HubClients({
    ...platform,
    maxLineBytes: MAX_LINE_BYTES,
    chooseEra: createEraChooser(platform, gateway, IDENTITY),
    principal: LOCAL_USER,
    onInternalError: platform.internalErrors.onInternalError,
    maxClients: () => life.settings?.hubClients ?? FIRST_CLIENTS,
    onUnread: ({ pid }, unwrittenBytes) =>
      logger?.warn({ pid, unwrittenBytes }, 'a client does not read: its session was closed'),
    onChange: () => life.clientsChanged(clients.size),
  });
  let onFirst: (hello: Hello) => void = () => {};
  const first = new Promise<Hello>((resolve) => {
    onFirst = resolve;
  });
  const source = listen((hello, peer) => {
    const refusal = life.refusal ?? clients.open(hello, peer);
    if (refusal === undefined) onFirst(hello);
    return refusal;
  });
  const loading = import('./serve-clients.js');
  const hello = await Promise.race([first, life.unused, life.over.then(() => undefined)]);
  if (hello === undefined) {
    source.close();
    return EXIT.ok;
  }
  const { serveClients } = await loading;
  return await serveClients(options, {
    platform,
    place,
    gateway,
    http: undefined,
    onListening: () => {},
    local: {
      isAttached: true,
      isGone: () => life.refusal === 'off',
      environment: hello.environment,
      logTo: (opened) => {
        logger = opened;
      },
      service: () =>
        aloneBecause === undefined
          ? { kind: 'hub', pid: process.pid, since, clients: clients.size }
          : { kind: 'alone', because: aloneBecause },
      configured: (config) => {
        if (aloneBecause !== undefined || config.gateway.hub !== 'off') return;
        life.end('off');
        clients.close('off');
        source.close();
      },
      served: async (_, composition) => {
        life.begin(() => composition.config.gateway);
        source.ready({ clients, composition });
        await life.over;
        source.close();
        clients.close(life.closing);
      },
    },
  });
}
