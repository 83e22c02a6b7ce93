// Connections of `node:http` without sockets: a byte that one side writes is read by the other before the turn ends.
import { Agent, type Server } from 'node:http';
import { type Duplex, duplexPair } from 'node:stream';

/** An agent for `node:http` whose connections are made by `open`. An error is that of the connection. */
export function memoryAgent(open: () => Duplex | Error): Agent {
  const createConnection = (_: unknown, created: (error: Error | null, stream?: Duplex) => void) => {
    const opened = open();
    if (opened instanceof Error) created(opened);
    else created(null, opened);
  };
  return Object.assign(new Agent({ keepAlive: true }), { createConnection });
}

/** Connects to a server. The end of one side is the end of the other, as over a network. */
export function connectInMemory(server: Server): { readonly near: Duplex; readonly far: Duplex } {
  const [near, far] = duplexPair();
  for (const [side, other] of [
    [near, far],
    [far, near],
  ] as const) {
    asSocket(side).once('close', () => other.destroy());
  }
  server.emit('connection', far);
  return { near, far };
}

/** Adds the methods that Node calls of a socket. */
function asSocket(stream: Duplex): Duplex {
  const same = () => stream;
  stream.on('error', () => {});
  return Object.assign(stream, { setTimeout: same, setKeepAlive: same, setNoDelay: same, ref: same, unref: same });
}
