// A server that answers what it must to be taken for one, and between that writes what no server should: each process
// of it one sort of garbage, from the seed and the number of the process. Whenever a ping of its own comes back, all
// that it wrote before has been read, and is noted in the file `tally=`, a line each: what sort, how many lines. It
// stops at `lines=` of them, and ends by itself now and then, perhaps in the middle of a line.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { pick, randomFrom } from '../random.mjs';
import { GarbageLines, SORTS } from './garbage-lines.mjs';

const LONGEST_BATCH = 512;
const MOST_LINES_OF_A_PROCESS = 3_000;
const RANDOM_START = 0.03;
const ANSWERED = 0.7;
const CHUNKED = 0.2;

const options = new Map(process.argv.slice(2).map((arg) => arg.split(/=(.*)/s)));
const [tally, goal] = [options.get('tally'), Number(options.get('lines'))];
const noted = existsSync(tally) ? readFileSync(tally, 'utf8').split('\n').slice(0, -1) : [];
const generation = noted.filter((line) => line === 'start').length;
let read = noted.reduce((sum, line) => sum + Number(line.split(' ')[1] ?? 0), 0);
appendFileSync(tally, 'start\n');

const random = randomFrom(Number(options.get('seed')) + 7919 * generation);
const sort = pick(random, SORTS);
const lines = new GarbageLines(random);
const endsAt = read + random() * MOST_LINES_OF_A_PROCESS;
let written = 0;
let pings = 0;
let unfinished = '';

process.stdout.on('error', () => process.exit(1));
process.stdin.on('end', () => process.exit(0));
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const received = (unfinished + chunk).split('\n');
  unfinished = received.pop();
  for (const line of received) take(JSON.parse(line));
});
if (random() < RANDOM_START) process.stdout.write(lines.line('all'));

function take({ id, method, params }) {
  switch (method) {
    case 'initialize':
      answer(id, {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true }, resources: {}, logging: {} },
        serverInfo: { name: 'garbage', version: '1' },
      });
      break;
    case 'notifications/initialized':
      setImmediate(writeGarbage);
      break;
    case 'tools/list':
      answer(id, { tools: [{ name: 'maybe', inputSchema: { type: 'object' } }, ...lines.tools()] });
      break;
    case 'tools/call':
      lines.asked(id);
      if (random() < ANSWERED) answer(id, { content: [{ type: 'text', text: 'for once' }] });
      break;
    case undefined:
      if (id === `read ${pings}`) wasRead();
      break;
    default:
      if (id !== undefined) answer(id, {});
  }
}

async function writeGarbage() {
  if (read >= goal) return;
  if (read >= endsAt) {
    process.stdout.write(lines.line(sort).subarray(0, 20), () => process.kill(process.pid, 'SIGKILL'));
    return;
  }
  const batch = Buffer.concat(Array.from({ length: LONGEST_BATCH ** random() }, () => lines.line(sort)));
  written = batch.reduce((count, byte) => count + (byte === 0x0a ? 1 : 0), 0);
  pings += 1;
  if (random() < CHUNKED) await writeInChunks(batch);
  else process.stdout.write(batch);
  process.stdout.write(`{"jsonrpc":"2.0","id":"read ${pings}","method":"ping"}\n`);
}

function wasRead() {
  read += written;
  appendFileSync(tally, `${sort} ${written}\n`);
  setImmediate(writeGarbage);
}

/** Cut anywhere, characters included. An answer that comes between two chunks is garbage, then. */
async function writeInChunks(bytes) {
  const longest = Math.max(1, bytes.length / 20);
  for (let start = 0; start < bytes.length; ) {
    const end = start + Math.ceil(random() * longest);
    process.stdout.write(bytes.subarray(start, end));
    start = end;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function answer(id, result) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
}
