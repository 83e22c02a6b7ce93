import { readFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { INITIALIZE, Place, type Running } from '../support/http-place.js';
import { FAULTY } from '../support/in-process-gateway.js';
import { IS_MAC } from '../support/platform.js';
import { ps, until } from '../support/processes.js';

const MIB = 1024 * 1024;
/** Calls whose answers nobody reads; each answer has 10 MiB. */
const UNREAD_CALLS = 24;

/** The most memory that the process has had resident. macOS tells only what it has now. */
function peakBytes({ process: { pid = 0 } }: Running): number {
  if (IS_MAC) return Number(ps('rss', pid)) * 1024;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

it('a client on stdin that reads nothing takes bounded memory, has its session closed, and slows no HTTP client down', async () => {
  const place = new Place();
  onTestFinished(() => place.dispose());
  const f = { ...place.server(FAULTY), sharing: 'all', concurrency: UNREAD_CALLS };
  const running = await place.serve({ servers: { f }, args: ['--stdio'] });
  const session = await place.initialize(running);
  /** Calls a tool of the same server over HTTP. */
  const isAnswered = async (nonce: string) => {
    const params = { name: 'f__answer', arguments: { nonce } };
    const response = await place.post(running, { jsonrpc: '2.0', id: nonce, method: 'tools/call', params }, session);
    // An answer that takes longer comes in a stream.
    const text = await response.text();
    expect(JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text)).toMatchObject({
      id: nonce,
      result: { content: [{ text: nonce }] },
    });
  };
  await isAnswered('before');
  const before = peakBytes(running);

  await running.say(INITIALIZE);
  running.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  running.process.stdout.pause();
  for (let id = 2; id < 2 + UNREAD_CALLS; id += 1) {
    const params = { name: 'f__oversized', arguments: { bytes: 10 * MIB } };
    running.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`);
  }
  const isClosed = () => running.stderr.includes('does not read');
  for (let count = 0; count < 200 && !isClosed(); count += 1) await isAnswered(`during ${count}`);
  await until('the session of the client on stdin is closed', isClosed);
  for (let count = 0; count < 20; count += 1) await isAnswered(`after ${count}`);
  // Of 240 MiB, 64 may wait to be read. The rest is one message and memory to be used again.
  expect(peakBytes(running) - before).toBeLessThan(160 * MIB);
  expect(running.process.exitCode).toBeNull();
});
