// A server that lists the tools of one server of `tools.json`, for another gateway that searches them. Arguments: the key, and the
// number of tools that there are in all.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [key, count] = process.argv.slice(2);
const servers = JSON.parse(readFileSync(new URL('tools.json', import.meta.url), 'utf8'));
const all = servers.flatMap((server) => server.tools.map((tool) => ({ ...tool, server: server.key })));
const own = all.slice(0, Number(count)).filter(({ server }) => server === key);
const tools = own.map(({ name, title, description, params }) => {
  const properties = Object.fromEntries(params.map(([param, text]) => [param, { type: 'string', description: text }]));
  return { name, title, description, inputSchema: { type: 'object', properties } };
});

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = resultOf(method, params) ?? { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
}

function resultOf(method, params) {
  if (method === 'tools/list') return { result: { tools } };
  if (method !== 'initialize') return undefined;
  const { protocolVersion } = params;
  return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: key, version: '1' } } };
}
