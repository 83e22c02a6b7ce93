import { ConfigLocation } from '../config/file/find-config.js';
import { PendingGateway } from '../gateway/pending-gateway.js';
import { knownDescription } from '../state/known-instructions.js';
import { createPlatform } from './platform.js';
import type { GlobalOptions } from './read-config.js';
import { endProcess, fileOperationsEnd } from './run-to-end.js';
import type { LocalClients } from './serve-clients.js';
import type { HttpSettings } from './serve-http.js';
import { drainClient, openStdioClient, type StdioClient } from './stdio-client.js';

/** The transports to open; at least one. */
export interface Transports {
  readonly stdio: boolean;
  readonly http: HttpSettings | undefined;
}

/**
 * Serves one client over stdin and stdout until it leaves, or many clients over HTTP, or both, until a signal comes.
 *
 * The stdio session opens before anything else is loaded: it answers `initialize` while the configuration is read and
 * the servers start, and it buffers the other requests. Loading code is most of the time that a client waits.
 *
 * `aloneBecause` says why no hub serves the client, if one should.
 */
export async function serve(
  options: GlobalOptions,
  { stdio, http }: Transports,
  aloneBecause?: string,
): Promise<number> {
  let left: Signal | undefined;
  let isListening = false;
  // Nothing runs yet, so a signal can end the process as soon as no file operation is pending.
  const leave = (signal: Signal) => {
    left = signal;
    void fileOperationsEnd().then(() => isListening || endProcess(0));
  };
  for (const signal of SIGNALS) process.on(signal, leave);
  const platform = createPlatform();
  platform.messages.hold();
  const location = new ConfigLocation(options);
  const gateway = new PendingGateway((facts) => knownDescription(location, facts));
  const client = stdio ? await openStdioClient(platform, gateway, options.view) : undefined;
  const { serveClients } = await import('./serve-clients.js');
  // A signal without a listener ends the process uncleanly, so these listeners stay until `serveClients` has its own.
  const onListening = () => {
    isListening = true;
    for (const signal of SIGNALS) process.off(signal, leave);
    if (left !== undefined) process.emit(left, left);
  };
  const local = client && onStdin(client, aloneBecause);
  return await serveClients(options, { platform, location, gateway, local, http, onListening });
}

/** The one client on stdin. `aloneBecause` says why no hub serves it, if one should. */
function onStdin(client: StdioClient, aloneBecause: string | undefined): LocalClients {
  const isPerson = process.stdin.isTTY;
  return {
    isAttached: !isPerson,
    isGone: client.isGone,
    inputEnded: client.inputEnded,
    logTo: (logger) => {
      void client.unread.then((unwrittenBytes) =>
        logger.warn({ unwrittenBytes }, 'the client on stdin does not read: its session was closed'),
      );
    },
    service: () => (aloneBecause === undefined ? undefined : { kind: 'alone', because: aloneBecause }),
    configured: ({ file }) => {
      if (isPerson) process.stderr.write(`${describeForTerminal(file)}\n`);
    },
    served: async (options) => await drainClient(client, options),
  };
}

function describeForTerminal(file: string): string {
  return `Trunkline waits for an MCP client on stdin. To use it, register the command \`trunkline --config ${file}\` in your MCP client. To test the servers, run \`trunkline check\`. Ctrl-C stops Trunkline.`;
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
type Signal = (typeof SIGNALS)[number];
