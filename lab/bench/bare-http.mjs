// The least that an HTTP server written for Node can do with a call: it reads the body, parses it and answers with the
// text in it. No session, token or server behind it; whatever serves MCP over HTTP with Node cannot be faster.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method === 'DELETE') response.writeHead(204).end();
    else if (request.method === 'GET') response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    else answer(JSON.parse(Buffer.concat(chunks).toString()), response);
  });
});

function answer({ id, method, params }, response) {
  if (id === undefined) {
    response.writeHead(202, { 'content-length': 0 }).end();
    return;
  }
  const result = method === 'tools/call' ? { content: [{ type: 'text', text: params.arguments.text }] } : {};
  const body = JSON.stringify({ jsonrpc: '2.0', id, result });
  const headers = { 'content-type': 'application/json', 'content-length': body.length, 'mcp-session-id': 'none' };
  response.writeHead(200, headers).end(body);
}

// While another way is measured, nothing is asked here; connections wait for that to end.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => process.stderr.write(`Listens on http://127.0.0.1:${server.address().port}/mcp\n`));
for (const end of ['SIGTERM', 'disconnect']) process.once(end, () => process.exit(0));
