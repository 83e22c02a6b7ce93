import { isIP, type Server, type Socket } from 'node:net';
import {
  matchesDomainPattern,
  splitDomainPatternPort,
} from '@anthropic-ai/sandbox-runtime/dist/sandbox/domain-pattern.js';
import { createHttpProxyServer } from '@anthropic-ai/sandbox-runtime/dist/sandbox/http-proxy.js';
import {
  canonicalizeHost,
  isValidHost,
  resolveParentProxy,
} from '@anthropic-ai/sandbox-runtime/dist/sandbox/parent-proxy.js';
import {
  createResolvedAddressGuard,
  isResolvedAddressDenied,
} from '@anthropic-ai/sandbox-runtime/dist/sandbox/resolved-address-guard.js';

export interface NameProxyOptions {
  /** Names with an optional port, as in the configuration; `all` for all names of the public network. */
  readonly allowed: readonly string[] | 'all';
  /** Called for each refused connection. `name` is text of the server. */
  readonly onRefused: (name: string, port: number, reason: string) => void;
  /** Called for each allowed connection. */
  readonly onUsed?: (name: string, port: number) => void;
}

/** Limit of the connections of one server. Further ones are closed. */
const MAX_CONNECTIONS = 256;
const ANY = '*';
/** Ports of a name without a port. */
const USUAL_PORTS = [80, 443];
/** Addresses that a name may not have if all names are allowed, because a public name could point to them. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];

/**
 * The proxy of one confined server: HTTP requests and tunnels to the allowed names. A name may not lead to an address of this
 * machine, nor to one that is local to its network segment.
 */
export class NameProxy {
  readonly #options: NameProxyOptions;
  readonly #sockets = new Set<Socket>();
  readonly #http: ReturnType<typeof createHttpProxyServer>;
  #listener: Server | undefined;
  #isClosed = false;

  constructor(options: NameProxyOptions) {
    this.#options = options;
    const { allowed, onRefused } = options;
    const entries = allowed === 'all' ? [ANY] : allowed;
    const isOpen = entries.some((entry) => splitDomainPatternPort(entry).hostPattern === ANY);
    const guard = createResolvedAddressGuard({
      allowedDomains: entries,
      deniedResolvedAddresses: isOpen ? PRIVATE : [],
    });
    const parentProxy = resolveParentProxy(undefined);
    this.#http = createHttpProxyServer({
      filter: (port, name) => this.#filter(name, port),
      ...(parentProxy && { parentProxy }),
      lookupFor: (port) => (name, lookup, answer) =>
        guard.lookupFor(port)(name, lookup, (error, ...rest) => {
          if (isResolvedAddressDenied(error)) onRefused(name, port, `it ${error.reason}`);
          answer(error, ...rest);
        }),
    });
  }

  /** Serves the connections to a listening socket in the network of the server. */
  serve(listener: Server): void {
    this.#listener = listener;
    listener.maxConnections = MAX_CONNECTIONS;
    // The socket can fail when its process has ended.
    listener.on('error', () => {});
    listener.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', () => socket.destroy());
      this.#http.emit('connection', socket);
    });
    if (this.#isClosed) this.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#listener?.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #filter(name: string, port: number): boolean {
    const { allowed, onRefused, onUsed } = this.#options;
    if (isAllowed(name, port, allowed)) {
      onUsed?.(name, port);
      return true;
    }
    onRefused(name, port, 'it is not in `network`');
    return false;
  }
}

export function isAllowed(name: string, port: number, entries: NameProxyOptions['allowed']): boolean {
  if (!isValidHost(name)) return false;
  const host = canonicalizeHost(name) ?? name;
  const isLocal = isIP(host) !== 0 || /(?:^|\.)localhost\.?$/i.test(host);
  if (entries === 'all') return !isLocal;
  return entries.some((entry) => {
    const { hostPattern, port: only } = splitDomainPatternPort(entry);
    if (only === undefined ? !USUAL_PORTS.includes(port) : only !== port) return false;
    // Wildcards stand for names of the public network.
    return isLocal ? hostPattern.toLowerCase() === host : matchesDomainPattern(host, hostPattern);
  });
}
