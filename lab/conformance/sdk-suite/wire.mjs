// Connects a client of the SDK's suite with its server through Trunkline: Streamable HTTP at `/mcp/KEY` on the client's
// side, stdio on the server's.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startTrunkline } from '../targets.mjs';

const PROCESS = fileURLToPath(new URL('server-at-socket.mjs', import.meta.url));
const KEY = 'suite';
const MODERN_REVISION = '2026-07-28';

/** Returns the `wire` of the suite. `sdk` holds the parts of the SDK that it is made of, and what the suite itself has. */
export function wiringThroughGateway(sdk) {
  /** By the name that the suite has for a way of transport. All others stay as they are. */
  const eras = {
    streamableHttp: { serve: serveLegacy, prepare: () => {}, hasHandshake: true },
    entryModern: { serve: serveModern, prepare: pinModern, hasHandshake: false },
  };
  return async (transport, makeServer, client, options = {}) => {
    const era = eras[transport];
    if (era === undefined) return await sdk.wireDirectly(transport, makeServer, client, options);

    sdk.getCurrentTest().meta.isThroughGateway = true;
    const place = await listen((socket) => era.serve(sdk, makeServer, socket));
    let gateway;
    const close = async () => {
      await client.close();
      await gateway?.close();
      await place.close();
    };
    try {
      const entry = { command: process.execPath, args: [PROCESS, place.path] };
      gateway = await startTrunkline({ [KEY]: entry }, ['--no-auth']);
      const url = new URL(`${gateway.url}/${KEY}`);
      const httpLog = [];
      const fetch = recordingFetch(httpLog);
      const sniff = { ...era.prepare(client), ...options };
      await client.connect(sdk.sniffTransport(new sdk.StreamableHTTPClientTransport(url, { fetch }), 'client', sniff));
      // In one process, the server has it when the client is connected, and some tests rely on that.
      if (era.hasHandshake) await place.hasInitialized;
      return { fetch, url, httpLog, [Symbol.asyncDispose]: close };
    } catch (error) {
      await close();
      throw error;
    }
  };
}

function serveLegacy(sdk, makeServer, socket) {
  return makeServer().connect(new sdk.StdioServerTransport(socket, socket));
}

function serveModern(sdk, makeServer, socket) {
  sdk.serveStdio(makeServer, { legacy: 'reject', transport: new sdk.StdioServerTransport(socket, socket) });
}

function pinModern(client) {
  client.setVersionNegotiation({ mode: { pin: MODERN_REVISION } });
  return { allowInputRequiredResults: true };
}

/** Makes one server for each process that Trunkline starts. */
async function listen(serve) {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-sdk-suite-'));
  const path = join(folder, 'socket');
  const sockets = new Set();
  let onInitialized;
  const hasInitialized = new Promise((resolve) => {
    onInitialized = resolve;
  });
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.on('data', (chunk) => {
      if (chunk.includes('"notifications/initialized"')) onInitialized();
    });
    // A process that Trunkline ends may leave before the server has written everything.
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy());
    serve(socket);
  });
  await new Promise((resolve) => listener.listen(path, resolve));
  return {
    path,
    hasInitialized,
    close: async () => {
      // A server ends with its connection.
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Some tests look at what was on the wire. */
function recordingFetch(httpLog) {
  return async (url, init) => {
    const request = new Request(url, init);
    const response = await fetch(request);
    httpLog.push({
      method: request.method,
      requestHeaders: request.headers,
      ...(typeof init?.body === 'string' && { requestBody: init.body }),
      status: response.status,
      contentType: response.headers.get('content-type') ?? '',
      response: response.clone(),
    });
    return response;
  };
}
