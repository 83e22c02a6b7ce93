// An MCP server that writes down each call before it works on it, so that a run can count executions. Arguments: the folder of the
// journals. Its tool `work` takes a token, the milliseconds to work, and reports progress every 50 ms if it is asked to.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const journal = join(process.argv[2], `${process.pid}.log`);
const PROGRESS_EVERY_MS = 50;

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') answer(id, hello(params));
  else if (method === 'tools/list') answer(id, { tools: [TOOL] });
  else if (method === 'tools/call') work(id, params);
  else if (id !== undefined) send({ id, error: { code: -32601, message: 'Method not found' } });
});

const TOOL = {
  name: 'work',
  inputSchema: { type: 'object', properties: { token: { type: 'string' }, ms: { type: 'number' } } },
};

function hello({ protocolVersion }) {
  return {
    protocolVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'jobs', version: '1' },
  };
}

function work(id, { arguments: { token, ms }, _meta }) {
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
    answer(id, { content: [{ type: 'text', text: token }] });
  }, ms);
}

function answer(id, result) {
  send({ id, result });
}

function send(message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
