import type { Duplex } from 'node:stream';
import { HubLife } from '../hub/hub-life.js';
import type { Hello } from '../hub/wire.js';
import { type ByteReader, copyInto } from '../io/byte-reader.js';
import { endProcess } from './end-process.js';
import type { GlobalOptions } from './global-options.js';
import { createPlatform } from './platform.js';
import { serveHub } from './serve-hub.js';

/** Serves one client by a hub in this process, at the other end of `stream`, and ends the process after it. */
export async function serveInside(
  options: GlobalOptions,
  hello: Omit<Hello, 'wire' | 'token'>,
  because: string,
  stream: Duplex,
): Promise<void> {
  const platform = createPlatform();
  const life = new HubLife(platform.clock);
  const code = await serveHub(options, {
    platform,
    life,
    aloneBecause: because,
    listen: (accept) => {
      const handOver = (reader: ByteReader) => stream.on('data', (chunk: Uint8Array) => copyInto(reader, chunk));
      // This process is the client's own: it has all variables, also those that the configuration names later.
      const environment = process.env as Hello['environment'];
      accept({ ...hello, environment, wire: 0, token: '' }, { stream, reader: { handOver }, welcome: () => {} });
      return { answering: () => {}, ready: () => life.endAfterClients(), close: () => {} };
    },
  });
  await endProcess(code);
}
