// A server of revision 2026-07-28 whose tools and whose resource change, and which ends the streams that report it: `cuts`
// of them, each after `cutMs`. It changes once while a stream is open, and once while there is none. `report` tells how
// many streams are and were open, and what the last version is.
import { createInterface } from 'node:readline';

const [cutMs, cuts] = process.argv.slice(2).map(Number);
const URI = 'soak:///version';
const ID = 'io.modelcontextprotocol/subscriptionId';
/** By the id of the request. */
const streams = new Map();
let version = 0;
let opened = 0;
let cut = 0;
let most = 0;

createInterface({ input: process.stdin }).on('line', (line) => take(JSON.parse(line)));

function take({ id, method, params }) {
  const cached = { ttlMs: 0, cacheScope: 'private' };
  switch (method) {
    case 'server/discover':
      answer(id, {
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'cuts-streams', version: '1' } },
        ...cached,
      });
      break;
    case 'tools/list':
      answer(id, {
        tools: [{ name: 'report', description: `version ${version}`, inputSchema: { type: 'object' } }],
        ...cached,
      });
      break;
    case 'resources/list':
      answer(id, { resources: [{ uri: URI, name: 'version' }], ...cached });
      break;
    case 'resources/read':
      answer(id, { contents: [{ uri: URI, text: `version ${version}` }], ...cached });
      break;
    case 'tools/call':
      answer(id, {
        content: [{ type: 'text', text: JSON.stringify({ open: streams.size, opened, most, cut, version }) }],
      });
      break;
    case 'subscriptions/listen':
      listen(id, params.notifications);
      break;
    case 'notifications/cancelled':
      streams.delete(params.requestId);
      break;
    default:
      if (id !== undefined) answer(id, {});
  }
}

function listen(id, wishes) {
  opened += 1;
  streams.set(id, wishes);
  most = Math.max(most, streams.size);
  notify('notifications/subscriptions/acknowledged', id, { notifications: wishes });
  // A stream without the resource will be replaced as soon as somebody subscribes to it.
  if (wishes.resourceSubscriptions === undefined || cut === cuts) return;
  cut += 1;
  setTimeout(change, cutMs / 2);
  setTimeout(() => {
    for (const open of streams.keys()) answer(open, {});
    streams.clear();
    change();
  }, cutMs);
}

function change() {
  version += 1;
  for (const [id, { resourceSubscriptions = [] }] of streams) {
    notify('notifications/tools/list_changed', id);
    if (resourceSubscriptions.includes(URI)) notify('notifications/resources/updated', id, { uri: URI });
  }
}

function notify(method, id, params = {}) {
  write({ method, params: { _meta: { [ID]: id }, ...params } });
}

function answer(id, result) {
  write({ id, result: { resultType: 'complete', ...result } });
}

function write(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
