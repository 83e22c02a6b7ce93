// A client in search mode, in front of Trunkline: each call of a tool goes through `trunkline__call_tool`.
import { createServer, request } from 'node:http';

const CALL_TOOL = 'trunkline__call_tool';

/** Serves what this URL serves, except that calls of tools go through the tool that calls others. Returns its `url`, and `close()`. */
export async function startCallToolProxy(url) {
  const target = new URL(url);
  const server = createServer(async (incoming, outgoing) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { body, headers } = throughCallTool(Buffer.concat(chunks), addressedTo(target, incoming.headers));
    const sent = request(target, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.rawHeaders);
      // So that the client of a stream sees its beginning.
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    sent.on('error', () => outgoing.destroy());
    // A client that closes its connection cancels the request.
    outgoing.on('close', () => sent.destroy());
    sent.end(body);
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}${target.pathname}`, close };

  /** Trunkline checks the host and the origin: those of the proxy become its own, and all others stay. */
  function addressedTo({ port: targetPort }, headers) {
    const entries = ['host', 'origin'].flatMap((name) => {
      return headers[name] === undefined ? [] : [[name, headers[name].replace(`:${port}`, `:${targetPort}`)]];
    });
    return { ...headers, ...Object.fromEntries(entries) };
  }
}

/** Everything that calls no tool keeps its bytes. */
function throughCallTool(body, headers) {
  const message = parse(body);
  const { name, arguments: args } = message?.params ?? {};
  if (message?.method !== 'tools/call' || typeof name !== 'string') return { body, headers };
  const given = { name, ...(args === undefined ? {} : { arguments: args }) };
  const params = { ...message.params, name: CALL_TOOL, arguments: given };
  const changed = Buffer.from(JSON.stringify({ ...message, params }));
  // A client of 2026-07-28 names the tool in a header also. A wrong name stays wrong.
  const named = headers['mcp-name'] === name ? { 'mcp-name': CALL_TOOL } : {};
  return { body: changed, headers: { ...headers, ...named, 'content-length': changed.length } };
}

function parse(body) {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}
