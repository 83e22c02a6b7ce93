// A server of revision 2025-11-25. `ask` asks the client and answers with what it was told; with `hold` it never answers.
// `report` tells what is open, what was told, and what was canceled.
import { createInterface } from 'node:readline';

const TOOLS = ['ask', 'report'].map((name) => ({ name, inputSchema: { type: 'object' } }));
/** Calls that were neither answered nor canceled. */
const open = new Set();
/** The calls behind the requests to the client. */
const asked = new Map();
/** How often the client has answered, and with what. */
const told = {};
let canceled = 0;
let lastId = 0;

createInterface({ input: process.stdin }).on('line', (line) => take(JSON.parse(line)));

function take({ id, method, params, result, error }) {
  switch (method) {
    case undefined:
      answered(id, result?.action ?? `error ${error.code}`);
      break;
    case 'initialize':
      answer(id, {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'asks-first', version: '1' },
      });
      break;
    case 'tools/list':
      answer(id, { tools: TOOLS });
      break;
    case 'tools/call':
      if (params.name === 'report') answerText(id, JSON.stringify({ open: open.size, told, canceled }));
      else ask(id, params.arguments ?? {});
      break;
    case 'notifications/cancelled':
      if (open.delete(params.requestId)) canceled += 1;
      break;
    default:
      if (id !== undefined) answer(id, {});
  }
}

function ask(call, { hold = false }) {
  lastId += 1;
  open.add(call);
  asked.set(lastId, { call, hold });
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
  write({ id: lastId, method: 'elicitation/create', params: { message: 'Who?', requestedSchema } });
}

function answered(id, what) {
  const { call, hold } = asked.get(id);
  asked.delete(id);
  told[what] = (told[what] ?? 0) + 1;
  // Whoever accepts may have to wait for the answer, and leave meanwhile. After a cancel, the call is canceled, too.
  if (what === 'cancel' || (hold && what === 'accept')) return;
  if (open.delete(call)) answerText(call, `${what} of ${call}`);
}

function answerText(id, text) {
  answer(id, { content: [{ type: 'text', text }] });
}

function answer(id, result) {
  write({ id, result });
}

function write(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
