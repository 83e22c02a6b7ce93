import { ConfigLocation } from '../config/file/find-config.js';
import { openStdioTransport } from '../downstream/stdio/stdio-transport.js';
import { PendingGateway } from '../gateway/pending-gateway.js';
import { END_SIGNALS, type EndSignal } from '../host/errors/usage-error.js';
import { knownDescription } from '../state/known-instructions.js';
import { IDENTITY } from '../version.js';
import { readInto, withoutBlocking } from '../wire/io/streams/read-into.js';
import type { DrainedClient } from './drain-client.js';
import type { GlobalOptions } from './global-options.js';
import { deferred, firstMessageOrTimeout, type LocalClients, MAX_LINE_BYTES } from './local-clients.js';
import { createEraChooser, createPlatform, LOCAL_USER, type Platform } from './platform.js';
import { endProcess, fileOperationsEnd } from './run-to-end.js';
import type { HttpSettings } from './serve-http.js';

/** The transports to open; at least one. */
export interface Transports {
  readonly stdio: boolean;
  readonly http: HttpSettings | undefined;
}

/**
 * Serves one client over stdin and stdout until it leaves, or many clients over HTTP, or both, until a signal comes.
 *
 * The stdio session opens before anything else is loaded, because loading code takes most of the time that a client waits.
 * The session answers `initialize` while the configuration is read and the servers start, and buffers other requests.
 *
 * `aloneBecause` is the reason why no hub serves the client although the configuration asks for a hub.
 */
export async function serve(
  options: GlobalOptions,
  { stdio, http }: Transports,
  aloneBecause?: string,
): Promise<number> {
  let left: EndSignal | undefined;
  let isListening = false;
  // Nothing runs yet, so a signal can end the process as soon as no file operation is pending.
  const leave = (signal: EndSignal) => {
    left = signal;
    void fileOperationsEnd().then(() => isListening || endProcess(0));
  };
  for (const signal of END_SIGNALS) process.on(signal, leave);
  const platform = createPlatform();
  platform.messages.hold();
  const location = new ConfigLocation(options);
  const gateway = new PendingGateway((facts) => knownDescription(location, facts));
  const client = stdio ? await openStdioClient(platform, gateway, options.view) : undefined;
  const { serveClients } = await import('./serve-clients.js');
  // A signal without a listener ends the process uncleanly, so these listeners stay until `serveClients` has its own.
  const onListening = () => {
    isListening = true;
    for (const signal of END_SIGNALS) process.off(signal, leave);
    if (left !== undefined) process.emit(left, left);
  };
  const local = client && onStdin(client, aloneBecause);
  return await serveClients(options, { platform, location, gateway, local, http, onListening });
}

/** The client at the other end of stdin and stdout. */
interface StdioClient extends DrainedClient {
  /** Resolves with the number of unwritten bytes when the session was closed because the client does not read. */
  readonly unread: Promise<number>;
  readonly isGone: () => boolean;
}

/** Opens a session over stdin and stdout, for a client of this view; resolves after the first message or after 30 ms. */
async function openStdioClient(platform: Platform, gateway: PendingGateway, view?: string): Promise<StdioClient> {
  let isGone = false;
  const [firstMessage, onFirstMessage] = deferred();
  const [inputEnded, onInputEnd] = deferred();
  const [left, onLeft] = deferred();
  const [unread, onUnread] = deferred<number>();
  const transport = openStdioTransport({
    read: (reader) => readInto(process.stdin, reader),
    output: withoutBlocking(process.stdout),
    backpressure: platform.backpressure,
    maxLineBytes: MAX_LINE_BYTES,
    unfinishedLines: platform.unfinishedLines,
    bufferPool: platform.bufferPool,
    clock: platform.clock,
    messages: platform.messages,
    scan: platform.scan,
    chooseEra: createEraChooser(platform, gateway, IDENTITY),
    principal: LOCAL_USER,
    view,
    onInternalError: platform.internalErrors.onInternalError,
    onFirstMessage,
    onInputEnd,
    onEnd: () => {
      isGone = true;
      onLeft();
    },
    onUnread,
  });
  await firstMessageOrTimeout(firstMessage);
  return {
    inputEnded,
    left,
    unread,
    isGone: () => isGone,
    get inFlight() {
      return transport.inFlight;
    },
    get isLive() {
      return transport.isLive;
    },
    probe: () => transport.probe(),
    close: () => transport.close(),
  };
}

function onStdin(client: StdioClient, aloneBecause: string | undefined): LocalClients {
  const isTerminal = process.stdin.isTTY;
  return {
    isAttached: !isTerminal,
    isGone: client.isGone,
    inputEnded: client.inputEnded,
    layers: 'own',
    logTo: (logger) => {
      void client.unread.then((unwrittenBytes) =>
        logger.warn({ unwrittenBytes }, 'closed the session of the client on stdin, because it does not read'),
      );
    },
    service: () => (aloneBecause === undefined ? undefined : { kind: 'alone', because: aloneBecause }),
    configured: ({ file }) => {
      if (isTerminal) process.stderr.write(`${describeForTerminal(file)}\n`);
    },
    served: async (options) => {
      const { drainClient } = await import('./drain-client.js');
      await drainClient(client, options);
    },
  };
}

function describeForTerminal(file: string): string {
  return `Trunkline waits for an MCP client on stdin. To use it, register the command \`trunkline --config ${file}\` in your MCP client. To test the servers, run \`trunkline check\`. Ctrl-C stops Trunkline.`;
}
