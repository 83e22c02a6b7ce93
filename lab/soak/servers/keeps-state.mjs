// A server of revision 2026-07-28 that asks for input with a state of its own. `report` tells how often it got one.
import { createInterface } from 'node:readline';

const TOOLS = ['ask', 'report'].map((name) => ({ name, inputSchema: { type: 'object' } }));
const STATE = 'a state "of the server" é';
let returned = 0;

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined && method !== undefined) answer(id, resultOf(method, params));
});

function resultOf(method, params) {
  const cached = { ttlMs: 0, cacheScope: 'private' };
  if (method === 'server/discover') {
    return {
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {} },
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'keeps-state', version: '1' } },
      ...cached,
    };
  }
  if (method === 'tools/list') return { tools: TOOLS, ...cached };
  if (method !== 'tools/call') return {};
  if (params.name === 'report') return textOf(String(returned));
  if (params.requestState === undefined) {
    const form = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };
    return {
      resultType: 'input_required',
      inputRequests: { who: { method: 'elicitation/create', params: form } },
      requestState: STATE,
    };
  }
  returned += 1;
  return textOf(params.requestState === STATE ? 'as it was' : `changed: ${params.requestState}`);
}

function textOf(text) {
  return { content: [{ type: 'text', text }] };
}

function answer(id, result) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } })}\n`);
}
