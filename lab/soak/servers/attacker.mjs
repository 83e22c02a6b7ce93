// A hostile MCP server: does what the kind `kind=` in `attacks/stdio/` says, and otherwise what a server must. `notes=`
// is a folder for what it has to remember from process to process.
import { appendFileSync, existsSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from '../attacks/stdio/kinds.mjs';

const STDOUT = 1;
const STDERR = 2;

const options = new Map(process.argv.slice(2).map((arg) => arg.split(/=(.*)/s)));
const kind = KINDS.find(({ name }) => name === options.get('kind'));
const starts = join(options.get('notes'), 'starts');
appendFileSync(starts, 'x');
const nothing = new Int32Array(new SharedArrayBuffer(4));
let unfinished = '';

/** What an attack can do. */
const server = {
  generation: readFileSync(starts, 'utf8').length,
  /** Everything that the gateway sent so far, as messages. */
  received: [],
  note: (name) => appendFileSync(join(options.get('notes'), name), 'x'),
  hasNote: (name) => existsSync(join(options.get('notes'), name)),
  raw: (bytes) => write(STDOUT, bytes),
  stderr: (bytes) => write(STDERR, bytes),
  send: (message) => write(STDOUT, `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
  notify: (method, params) => server.send({ method, params }),
  answer: (id, result) => server.send({ id, result }),
  text: (id, text) => server.answer(id, { content: [{ type: 'text', text }] }),
  initialize: (id, params, changed = {}) =>
    server.answer(id, {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: { listChanged: true }, prompts: {}, resources: { subscribe: true }, logging: {} },
      serverInfo: { name: 'attacker', version: '1' },
      ...changed,
    }),
  tools: (id, tools = [], more = {}) =>
    server.answer(id, { tools: [{ name: 'hit', inputSchema: { type: 'object' } }, ...tools], ...more }),
  pause: (ms) => Atomics.wait(nothing, 0, 0, ms),
};

process.stdin.on('error', () => {});
process.stdin.on('end', () => (kind.onEnd ? kind.onEnd(server) : process.exit(0)));
process.stdin.setEncoding('utf8').on('data', (chunk) => {
  const lines = (unfinished + chunk).split('\n');
  unfinished = lines.pop();
  for (const line of lines) take(JSON.parse(line));
});
kind.onStart?.(server);

function take(message) {
  server.received.push(message);
  const { id, method, params } = message;
  switch (method) {
    case 'initialize':
      (kind.onInitialize ?? server.initialize)(id, params, kind.onInitialize ? server : undefined);
      break;
    case 'notifications/initialized':
      kind.onInitialized?.(server);
      break;
    case 'tools/list':
      if (kind.onList) kind.onList(id, params, server);
      else server.tools(id);
      break;
    case 'tools/call':
      if (kind.onCall) kind.onCall(id, params, server);
      else server.text(id, 'fine');
      break;
    case 'prompts/list':
    case 'resources/list':
    case 'resources/templates/list':
      if (kind.onOtherList) kind.onOtherList(id, method, params, server);
      else server.answer(id, { prompts: [], resources: [], resourceTemplates: [] });
      break;
    default:
      if (kind.onOther) kind.onOther(message, server);
      else if (id !== undefined && method !== undefined) server.answer(id, {});
  }
}

function write(descriptor, given) {
  const bytes = Buffer.from(given);
  for (let from = 0; from < bytes.length; ) {
    try {
      from += writeSync(descriptor, bytes, from);
    } catch ({ code }) {
      if (code !== 'EAGAIN') process.exit(1);
      Atomics.wait(nothing, 0, 0, 1);
    }
  }
}
