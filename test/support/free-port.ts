import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports that are, also with the 10,000 that a Redis Cluster adds, below those that the system gives to connections. */
const [FIRST, LAST] = [12_000, 22_000];

/** Finds a port on which nothing listens, at any address. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    const server = createServer().listen(port, '0.0.0.0');
    try {
      await once(server, 'listening');
    } catch {
      // Another program has the port.
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
