// The smallest MCP server that can be measured through. It answers at once, and knows what it answers beforehand.
// `tiny-server.mjs --tools COUNT` has so many tools more that nobody calls. `tiny-server.mjs --modern` speaks revision
// 2026-07-28 instead of those with a handshake.
import { Lines } from './lines.mjs';
import { textOf } from './payload.mjs';

const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const TOOLS = [
  { name: 'echo', inputSchema: object({ text: { type: 'string' } }) },
  // A text of a kind and a size.
  { name: 'produce', inputSchema: object({ kind: { type: 'string' }, bytes: { type: 'integer' } }) },
  // Tells how many characters the text had when asked to look, else nothing.
  { name: 'consume', inputSchema: object({ look: { type: 'boolean' }, text: { type: 'string' } }) },
  { name: 'sleep', inputSchema: object({ ms: { type: 'integer' } }) },
  ...Array.from({ length: process.argv[2] === '--tools' ? Number(process.argv[3]) : 0 }, (_, index) => idleTool(index)),
];
const UNKNOWN_METHOD = { code: -32601, message: 'Method not found' };

const INFO = { name: 'tiny', version: '1.0.0' };
const CAPABILITIES = { tools: {} };
/** What servers made with the official SDK write into each result of revision 2026-07-28. */
const OF_RESULTS = { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': INFO } };
const OF_LISTS = { ...OF_RESULTS, ttlMs: 0, cacheScope: 'private' };
const isModern = process.argv[2] === '--modern';

const lines = new Lines();
const produced = new Map();
let answers = '';

process.stdin.on('data', (chunk) => {
  lines.push(chunk, take);
  if (answers !== '') process.stdout.write(answers);
  answers = '';
});

function take(line) {
  if (typeof line === 'string') {
    answer(JSON.parse(line));
  } else if (line.head.includes('"look":true')) {
    const { id, params } = JSON.parse(line.text());
    say(id, textResult(String(params.arguments.text.length)));
  } else {
    say(line.id, textResult(''));
  }
}

function answer({ id, method, params }) {
  if (id === undefined) return;
  const result = method === 'tools/call' ? callTool(id, params) : resultOf(method, params);
  if (result !== LATER) say(id, result);
}

const LATER = Symbol('answered by itself');

function callTool(id, { name, arguments: args }) {
  switch (name) {
    case 'echo':
      return textResult(args.text);
    case 'produce':
      produce(id, args);
      return LATER;
    case 'sleep':
      setTimeout(() => {
        say(id, textResult('awake'));
        process.stdout.write(answers);
        answers = '';
      }, args.ms);
      return LATER;
  }
}

function resultOf(method, params) {
  if (isModern) return modernResultOf(method);
  switch (method) {
    case 'tools/list':
      return { tools: TOOLS };
    case 'initialize':
      return { protocolVersion: params.protocolVersion, capabilities: CAPABILITIES, serverInfo: INFO };
    case 'ping':
      return {};
  }
}

function modernResultOf(method) {
  switch (method) {
    case 'tools/list':
      return { tools: TOOLS, ...OF_LISTS };
    case 'server/discover':
      return { supportedVersions: ['2026-07-28'], capabilities: CAPABILITIES, ...OF_LISTS };
  }
}

function textResult(text) {
  const content = [{ type: 'text', text }];
  return isModern ? { content, ...OF_RESULTS } : { content };
}

function say(id, result) {
  answers += `${JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: UNKNOWN_METHOD }) })}\n`;
}

/** What was answered before is answered again without making it anew. */
function produce(id, { kind, bytes }) {
  const key = `${kind} ${bytes}`;
  const payload = produced.get(key) ?? Buffer.from(`${JSON.stringify(textResult(textOf(kind, bytes)))}}\n`);
  produced.set(key, payload);
  process.stdout.cork();
  process.stdout.write(`${answers}{"jsonrpc":"2.0","id":${id},"result":`);
  process.stdout.write(payload);
  process.stdout.uncork();
  answers = '';
}

/** About as large as the tools of real servers are. */
function idleTool(index) {
  const text = { type: 'string', description: 'What the tool is to work on, as the server documents it' };
  return {
    name: `tool_${index}`,
    description: `Does what nobody asks for, in its ${index}th way, and tells about it in two sentences. Has no effects.`,
    inputSchema: object({ text, limit: { type: 'integer', minimum: 1 } }),
  };
}
