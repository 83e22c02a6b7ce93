// A server behind a URL for measurements: `remote-origin.mjs`. It prints its port. `/mcp` answers at once, `/hang` never does.
import { createServer } from 'node:http';

const LARGE = 'x'.repeat(10 * 1024 * 1024);
const TOOLS = ['echo', 'report', 'large'].map((name) => ({ name, inputSchema: { type: 'object' } }));
const HELLO = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'o', version: '1' } };

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (request.url === '/hang') return;
    if (request.method !== 'POST') return response.writeHead(request.method === 'GET' ? 405 : 204).end();
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
    if (id === undefined) return response.writeHead(202).end();
    const answer = (result) => JSON.stringify({ jsonrpc: '2.0', id, result });
    if (params?.name === 'report') return report(response, params._meta.progressToken, answer);
    const text = params?.name === 'large' ? LARGE : params?.arguments?.text;
    const result = {
      initialize: HELLO,
      'tools/list': { tools: TOOLS },
      'tools/call': { content: [{ type: 'text', text }] },
    }[method];
    if (result === undefined) return response.writeHead(404).end();
    const body = answer(result);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    response.writeHead(200, method === 'initialize' ? { ...headers, 'mcp-session-id': 's' } : headers).end(body);
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));

/** Reports progress at once, and answers later. */
function report(response, progressToken, answer) {
  const params = { progressToken, progress: 1 };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}\n\n`);
  setTimeout(() => response.end(`data: ${answer({ content: [] })}\n\n`), 10);
}
