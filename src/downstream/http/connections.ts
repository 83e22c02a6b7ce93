import type * as net from 'node:net';

/**
 * The open connections, and which of them make room for new ones.
 *
 * Anyone who reaches the port can open connections and say nothing. So a connection is a stranger's until a request on it
 * was authenticated. If there are too many connections, the oldest stranger is closed for the new one. A client sends its
 * token right after it has connected, so it is no longer a stranger when it would be the oldest. A connection with an
 * authenticated request is never closed for another one.
 */
export class Connections {
  readonly #max: number;
  readonly #onEvicted: (socket: net.Socket) => void;
  /** Accepted sockets; with TLS the encrypted side. */
  readonly #open = new Set<net.Socket>();
  /** Those without an authenticated request, by address, the oldest first. */
  readonly #strangers = new Map<string, Set<net.Socket>>();
  /** The sides of connections that requests are read from, once one was authenticated. */
  readonly #authenticated = new WeakSet<net.Socket>();
  /** With TLS: the encrypted side while the handshake runs, by peer, and then by its decrypted side. */
  readonly #handshaking = new Map<string, net.Socket>();
  readonly #encrypted = new WeakMap<net.Socket, net.Socket>();

  constructor(max: number, onEvicted: (socket: net.Socket) => void) {
    this.#max = max;
    this.#onEvicted = onEvicted;
  }

  /** Returns `false` if there is no room for the connection: clients with a token have all of them. */
  accept(socket: net.Socket, isEncrypted: boolean): boolean {
    const address = addressOf(socket);
    if (this.#open.size >= this.#max && !this.#evictOldest()) return false;
    if (socket.destroyed) return true;
    this.#open.add(socket);
    this.#strangers.set(address, (this.#strangers.get(address) ?? new Set()).add(socket));
    const peer = peerOf(socket);
    if (isEncrypted) this.#handshaking.set(peer, socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#handshaking.delete(peer);
      this.#forgetStranger(socket, address);
    });
    return true;
  }

  /** The TLS handshake has succeeded; requests come on this side of the connection. */
  decrypted(socket: net.Socket): void {
    const peer = peerOf(socket);
    const encrypted = this.#handshaking.get(peer);
    if (encrypted !== undefined) this.#encrypted.set(socket, encrypted);
    this.#handshaking.delete(peer);
  }

  /** A request on this connection was authenticated. */
  authenticated(socket: net.Socket): void {
    if (this.#authenticated.has(socket)) return;
    this.#authenticated.add(socket);
    this.#forgetStranger(this.#encrypted.get(socket) ?? socket, addressOf(socket));
  }

  destroy(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Closes the oldest stranger of the address that has the most; returns `false` if there are none. */
  #evictOldest(): boolean {
    let fullest = '';
    let oldest: net.Socket | undefined;
    let most = 0;
    for (const [address, strangers] of this.#strangers) {
      if (strangers.size <= most) continue;
      [fullest, most] = [address, strangers.size];
      [oldest] = strangers;
    }
    if (oldest === undefined) return false;
    this.#onEvicted(oldest);
    // `close` comes later, and the room is needed now.
    this.#open.delete(oldest);
    this.#forgetStranger(oldest, fullest);
    oldest.destroy();
    return true;
  }

  #forgetStranger(socket: net.Socket, address: string): void {
    const strangers = this.#strangers.get(address);
    strangers?.delete(socket);
    if (strangers?.size === 0) this.#strangers.delete(address);
  }
}

export function addressOf(socket: { readonly remoteAddress?: string | undefined }): string {
  return socket.remoteAddress ?? 'unknown';
}

function peerOf(socket: net.Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
