// The smallest MCP server that can be measured through: one tool that answers at once with the text it was given.
const TOOLS = [
  {
    name: 'echo',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
];

let unfinished = '';

process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const lines = (unfinished + chunk).split('\n');
  unfinished = lines.pop();
  let answers = '';
  for (const line of lines) answers += answer(JSON.parse(line));
  if (answers !== '') process.stdout.write(answers);
});

function answer({ id, method, params }) {
  if (id === undefined) return '';
  const result = resultOf(method, params);
  return `${JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error: UNKNOWN_METHOD }) })}\n`;
}

function resultOf(method, params) {
  switch (method) {
    case 'tools/call':
      return { content: [{ type: 'text', text: params.arguments.text }] };
    case 'tools/list':
      return { tools: TOOLS };
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'tiny', version: '1.0.0' },
      };
    case 'ping':
      return {};
  }
}

const UNKNOWN_METHOD = { code: -32601, message: 'Method not found' };
