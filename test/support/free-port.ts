import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports below those that the system gives to connections, which could take a free port before its program listens. */
const [FIRST, LAST] = [12_000, 32_000];

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
