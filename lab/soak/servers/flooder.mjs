// A server that behaves until the file `flood-while=` is there, and then writes the flood `kind=` as fast as the pipe
// takes it. It never stops and reads nothing more. After a restart it answers the handshake and floods again.
import { existsSync, writeSync } from 'node:fs';
import { FLOODS } from './flood-kinds.mjs';

const BLOCK_BYTES = 64 * 1024;
const LOOK_EVERY_MS = 20;
const STDOUT = 1;
const STDERR = 2;

const options = new Map(process.argv.slice(2).map((arg) => arg.split(/=(.*)/s)));
const flood = FLOODS[options.get('kind')];
const nothing = new Int32Array(new SharedArrayBuffer(4));
let unfinished = '';

process.stdin.on('end', () => process.exit(0));
process.stdin.setEncoding('utf8').on('data', (chunk) => {
  const lines = (unfinished + chunk).split('\n');
  unfinished = lines.pop();
  for (const line of lines) take(JSON.parse(line));
});

function take({ id, method, params }) {
  if (id === undefined || method === undefined) return;
  switch (method) {
    case 'initialize':
      answer(id, {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true }, logging: {} },
        serverInfo: { name: 'flooder', version: '1' },
      });
      break;
    case 'tools/list':
      answer(id, { tools: [{ name: 'calm', inputSchema: { type: 'object' } }] });
      setInterval(() => existsSync(options.get('flood-while')) && pour(), LOOK_EVERY_MS);
      break;
    default:
      answer(id, { content: [{ type: 'text', text: 'calm' }] });
  }
}

function answer(id, result) {
  write(STDOUT, Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`));
}

/** Never returns. */
function pour() {
  const { first, out, err, byteEveryMs, blockBytes = BLOCK_BYTES } = flood;
  const onStdout = out === undefined ? undefined : block(out, byteEveryMs === undefined ? blockBytes : 1);
  const onStderr = err === undefined ? undefined : block(err, blockBytes);
  if (first !== undefined) write(STDOUT, Buffer.from(first));
  for (;;) {
    if (blockBytes === 1) for (const byte of onStdout) write(STDOUT, Buffer.of(byte));
    else if (onStdout !== undefined) write(STDOUT, onStdout);
    if (onStderr !== undefined) write(STDERR, onStderr);
    if (byteEveryMs !== undefined) Atomics.wait(nothing, 0, 0, byteEveryMs);
  }
}

/** Whole units, of so many bytes at least. */
function block(unit, bytes) {
  const make = typeof unit === 'function' ? unit : () => unit;
  const units = [];
  for (let length = 0, number = 0; length < bytes; number += 1) {
    units.push(Buffer.from(make(number)));
    length += units.at(-1).length;
  }
  return Buffer.concat(units);
}

function write(descriptor, bytes) {
  for (let from = 0; from < bytes.length; ) {
    try {
      from += writeSync(descriptor, bytes, from);
    } catch ({ code }) {
      if (code !== 'EAGAIN') process.exit(1);
      Atomics.wait(nothing, 0, 0, 1);
    }
  }
}
