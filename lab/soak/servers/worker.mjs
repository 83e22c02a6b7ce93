// A server that does what it is told: answers, waits, is silent, ends, is loud. Arguments: `name=` stands before each
// answer, `effects=FILE` is where each executed call of `effect` is noted, `crash-while=FILE` makes it end soon after
// its start for as long as that file is there.
import { appendFileSync, existsSync } from 'node:fs';

const options = new Map(process.argv.slice(2).map((arg) => arg.split(/=(.*)/s)));
const TOOLS = ['echo', 'effect', 'hang', 'die', 'report', 'loud', 'quiet'];
const CRASH_AFTER_MS = 150;
const TALK_EVERY_MS = 10;

const cancelled = new Set();
let talk;
let unfinished = '';
let outgoing = '';

process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const lines = (unfinished + chunk).split('\n');
  unfinished = lines.pop();
  for (const line of lines) take(JSON.parse(line));
});

function take({ id, method, params }) {
  switch (method) {
    case 'tools/call':
      call(id, params);
      break;
    case 'notifications/cancelled':
      cancelled.add(params.requestId);
      break;
    case 'notifications/initialized':
      if (existsSync(options.get('crash-while') ?? '')) setTimeout(() => process.exit(1), CRASH_AFTER_MS);
      break;
    case 'tools/list':
      answer(id, { tools: TOOLS.map((name) => ({ name, inputSchema: { type: 'object' } })) });
      break;
    case 'initialize':
      answer(id, {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true }, logging: {} },
        serverInfo: { name: 'worker', version: '1' },
      });
      break;
    default:
      if (id !== undefined) answer(id, {});
  }
}

function call(id, { name, arguments: { nonce, delayMs, text = '' }, _meta }) {
  if (!TOOLS.includes(name)) {
    write({ id, error: { code: -32602, message: `There is no tool ${name}` } });
    return;
  }
  const done = () => {
    if (!cancelled.delete(id))
      answer(id, { content: [{ type: 'text', text: `${options.get('name')} ${nonce}${text}` }] });
  };
  switch (name) {
    case 'effect':
      // Before anything else, and not to be lost by whatever happens next.
      appendFileSync(options.get('effects'), `${nonce}\n`);
      break;
    case 'hang':
      return;
    case 'die':
      process.kill(process.pid, 'SIGKILL');
      return;
    case 'report':
      for (const progress of [1, 2]) notify('notifications/progress', { progressToken: _meta.progressToken, progress });
      break;
    case 'loud':
      talk ??= setInterval(talkMuch, TALK_EVERY_MS);
      break;
    case 'quiet':
      clearInterval(talk);
      talk = undefined;
  }
  if (delayMs === undefined) done();
  else setTimeout(done, delayMs);
}

/** Each second 200 log messages, 500 lines of stderr and, ten times, the claim that the tools are others now. */
function talkMuch() {
  for (let times = 0; times < 2; times += 1) {
    notify('notifications/message', { level: 'info', logger: 'worker', data: 'much ado '.repeat(50) });
  }
  process.stderr.write(`${'about nothing '.repeat(15)}\n`.repeat(5));
  if (Math.random() < 0.1) notify('notifications/tools/list_changed');
}

function notify(method, params) {
  write({ method, params });
}

function answer(id, result) {
  write({ id, result });
}

function write(message) {
  if (outgoing === '') {
    setImmediate(() => {
      process.stdout.write(outgoing);
      outgoing = '';
    });
  }
  outgoing += `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
}
