// A gateway as one would write it in an afternoon: the official SDK's server towards the client, one SDK client for
// each child. `naive-gateway.mjs CONFIG` reads the same file as Trunkline does, as long as that is JSON.
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const { servers } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const clients = new Map(
  await Promise.all(Object.entries(servers).map(async ([key, entry]) => [key, await connect(entry)])),
);

const server = new Server({ name: 'naive-gateway', version: '1.0.0' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, listTools);
server.setRequestHandler(CallToolRequestSchema, callTool);
await server.connect(new StdioServerTransport());

process.stdin.on('end', async () => {
  for (const client of clients.values()) await client.close();
});

async function connect({ command, args }) {
  const client = new Client({ name: 'naive-gateway', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command, args }));
  return client;
}

async function listTools() {
  const lists = await Promise.all(
    [...clients].map(async ([key, client]) => {
      const { tools } = await client.listTools();
      return tools.map((tool) => ({ ...tool, name: `${key}__${tool.name}` }));
    }),
  );
  return { tools: lists.flat() };
}

async function callTool({ params }, { signal }) {
  const [key, name] = params.name.split('__');
  const client = clients.get(key);
  if (client === undefined) throw new Error(`Unknown tool: ${params.name}`);
  return await client.callTool({ ...params, name }, undefined, { signal });
}
