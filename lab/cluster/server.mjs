// An MCP server that writes down each call before it works on it, so that a run can count executions. Arguments: the folder of the
// journals, that of the users, and the name of the server. Its tool `work` takes a token, the milliseconds to work, and the user whom the process works
// for, if it works for one. It reports progress every 50 ms if it is asked to. Its resource changes every half second.
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const { INSTANCE } = process.env;
const [, , journals, users, name] = process.argv;
const journal = join(journals, `${process.pid}.log`);
const [PROGRESS_EVERY_MS, CHANGE_EVERY_MS] = [50, 500];
let calls = 0;

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') answer(id, hello(params));
  else if (method === 'tools/list') answer(id, { tools: [TOOL] });
  else if (method === 'resources/list') answer(id, { resources: [RESOURCE] });
  else if (method === 'tools/call') work(id, params);
  else if (method === 'resources/subscribe') watch(id, params);
  else if (method === 'resources/unsubscribe' || method === 'ping') answer(id, {});
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'Method not found' } });
});

const TOOL = {
  name: 'work',
  inputSchema: {
    type: 'object',
    properties: { token: { type: 'string' }, ms: { type: 'number' }, user: { type: 'string' } },
  },
};
const RESOURCE = { uri: `${name}://state`, name: 'state' };

function hello({ protocolVersion }) {
  return {
    protocolVersion,
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
    serverInfo: { name, version: '1' },
  };
}

function watch(id, { uri }) {
  answer(id, {});
  setInterval(() => send({ method: 'notifications/resources/updated', params: { uri } }), CHANGE_EVERY_MS).unref();
}

function work(id, { arguments: { token, ms, user }, _meta }) {
  if (user !== undefined && calls === 0) writeFileSync(join(users, `${user} ${process.pid} ${INSTANCE}`), '');
  calls += 1;
  appendFileSync(journal, `${token}\n`);
  const progressToken = _meta?.progressToken;
  let progress = 0;
  const timer =
    progressToken === undefined
      ? undefined
      : setInterval(() => {
          progress += 1;
          send({ method: 'notifications/progress', params: { progressToken, progress } });
        }, PROGRESS_EVERY_MS);
  setTimeout(() => {
    clearInterval(timer);
    answer(id, { content: [token, `${INSTANCE} ${process.pid}`].map((text) => ({ type: 'text', text })) });
  }, ms);
}

function answer(id, result) {
  send({ id, result });
}

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
