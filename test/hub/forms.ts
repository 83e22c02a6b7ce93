// The kinds of endpoints that hubs have on different systems, and hubs that a test plays at them.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { addressIn, type EndpointForm, pipes, SOCKETS } from '../../src/hub/endpoint.js';
import { type Claim, hubFiles } from '../../src/hub/hub-folder.js';
import { proofOf } from '../../src/hub/proof.js';

/**
 * The forms that can be tried on this system. Sockets with random names in `folder` stand for the pipes of Windows, which has no sockets
 * to hand over.
 */
export function formsIn(folder: () => string): [string, EndpointForm][] {
  if (process.platform === 'win32') return [['pipes', pipes()]];
  const standIn = pipes(() => join(folder(), `pipe-${randomBytes(4).toString('hex')}`));
  return [
    ['sockets', SOCKETS],
    ['pipes', standIn],
  ];
}

/** The process of a hub begins to listen. */
export async function listening({ number, listener }: Claim, folder: string): Promise<Server> {
  if (listener !== undefined) return listener;
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(addressIn(hubFiles(folder, number).folder), resolve);
  });
  return server;
}

/**
 * A hub that proves itself to each client, and then answers its hello with this line, or ends the connection. Calls `onRequest` for what
 * a client writes after that.
 */
export function playHub(
  server: Server,
  { folder }: { readonly folder: string },
  line: string | undefined,
  onRequest: (socket: Socket) => void = () => {},
): Socket[] {
  const token = readFileSync(join(folder, 'token'), 'latin1');
  const sockets: Socket[] = [];
  server.on('connection', (socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', (challenge) => {
      const nonces = { client: JSON.parse(String(challenge)).nonce, hub: 'n' };
      socket.write(`${JSON.stringify({ nonce: nonces.hub, proof: proofOf('hub', token, nonces) })}\n`);
      socket.once('data', () => {
        socket.on('data', () => onRequest(socket));
        if (line === undefined) socket.destroy();
        else socket.write(`${line}\n`);
      });
    });
  });
  return sockets;
}
