import { openStdioTransport } from '../downstream/stdio/stdio-transport.js';
import { PendingGateway } from '../gateway/pending-gateway.js';
import { IDENTITY } from '../version.js';
import { createEraChooser } from './choose-era.js';
import { inTime } from './in-time.js';
import { createPlatform, type Platform } from './platform.js';
import type { HttpSettings } from './serve-http.js';
import type { GlobalOptions } from './settings.js';

/** A gateway must not be narrower than a direct connection. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** How long a client that is there already may take for its first word. */
const GREETING_MS = 30;

/**
 * Serves one client over stdin and stdout until it leaves, or many over HTTP, or both, until a signal comes.
 *
 * The front opens before anything else is loaded, so that the client is greeted while we read the configuration and
 * start the servers; what it asks meanwhile is held. What is loaded before that is most of the time it waits.
 */
export async function serve(settings: GlobalOptions, { stdio, http }: Fronts): Promise<number> {
  // Nothing runs yet that would have to be ended.
  for (const signal of SIGNALS) process.on(signal, leave);
  const platform = createPlatform();
  const gateway = new PendingGateway();
  const client = stdio ? await openStdio(platform, gateway) : undefined;
  const { serveClients } = await import('./serve-clients.js');
  // A signal that comes while nobody listens is lost, so we listen until somebody else does.
  const onListening = () => {
    for (const signal of SIGNALS) process.off(signal, leave);
  };
  return await serveClients(settings, { platform, gateway, client, http, onListening });
}

/** Which ways in there are; one at least. */
export interface Fronts {
  readonly stdio: boolean;
  readonly http: HttpSettings | undefined;
}

/** The client at the other end of our stdin. */
export interface StdioClient {
  readonly left: Promise<void>;
  readonly isGone: () => boolean;
}

async function openStdio(platform: Platform, gateway: PendingGateway): Promise<StdioClient> {
  let isGone = false;
  let onFirstMessage = () => {};
  const handshake = new Promise<void>((resolve) => {
    onFirstMessage = resolve;
  });
  const left = new Promise<void>((resolve) => {
    openStdioTransport({
      input: process.stdin,
      output: process.stdout,
      backpressure: platform.backpressure,
      maxLineBytes: MAX_LINE_BYTES,
      partialFrames: platform.partialFrames,
      bufferPool: platform.bufferPool,
      scan: platform.scan,
      chooseEra: createEraChooser(platform, gateway, IDENTITY),
      principal: LOCAL_USER,
      onFault: platform.internalErrors.onFault,
      onFirstMessage,
      onEnd: () => {
        isGone = true;
        resolve();
      },
    });
  });
  await inTime(handshake, GREETING_MS);
  return { left, isGone: () => isGone };
}

/** Principal for the stdio client: the operating-system user that started the gateway. */
const LOCAL_USER = 'local';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

function leave(): void {
  process.exit(0);
}
