import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** A TCP relay to a port of this machine, which can be cut. */
export class Link {
  #target;
  #server = createServer((incoming) => this.#relay(incoming));
  #sockets = new Set();
  /** The bytes that the connections have carried to the target while `record` was set. */
  recorded = [];
  record = false;

  constructor(target) {
    this.#target = target;
  }

  static async open(target) {
    const link = new Link(target);
    await link.#listen(0);
    link.port = link.#server.address().port;
    return link;
  }

  /** Breaks all connections, and refuses others until the link is restored. */
  async cut() {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async restore() {
    await this.#listen(this.port);
  }

  async close() {
    if (this.#server.listening) await this.cut();
  }

  async #listen(port) {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  #relay(incoming) {
    const outgoing = connect({ port: this.#target, host: '127.0.0.1', noDelay: true });
    incoming.setNoDelay(true);
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ]) {
      this.#sockets.add(socket);
      // The end of one side ends the other one.
      socket.on('error', () => {});
      socket.once('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
    if (!this.record) return;
    const chunks = [];
    this.recorded.push(chunks);
    incoming.on('data', (chunk) => chunks.push(chunk));
  }
}
