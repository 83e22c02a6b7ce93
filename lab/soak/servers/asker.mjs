// A server whose tool `ask` asks the client, and answers with what it was told.
const waiting = new Map();
let lastId = 0;
let unfinished = '';

process.stdin.setEncoding('utf8').on('data', (chunk) => {
  const lines = (unfinished + chunk).split('\n');
  unfinished = lines.pop();
  for (const line of lines) take(JSON.parse(line));
});

function take({ id, method, params, result, error }) {
  switch (method) {
    case 'initialize':
      write({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'asker', version: '1' },
        },
      });
      break;
    case 'tools/list':
      write({ id, result: { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] } });
      break;
    case 'tools/call':
      lastId += 1;
      waiting.set(lastId, id);
      write({
        id: lastId,
        method: 'elicitation/create',
        params: { message: 'Well?', requestedSchema: { type: 'object', properties: {} } },
      });
      break;
    case undefined:
      write({
        id: waiting.get(id),
        result: { content: [{ type: 'text', text: `told ${JSON.stringify(result ?? error)}` }] },
      });
      break;
    default:
      if (id !== undefined) write({ id, result: {} });
  }
}

function write(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
