import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { INITIALIZE, Place, type Running } from '../support/http-place.js';
import { FAULTY } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

const MIB = 1024 * 1024;
const SLOW_CALLS = 40;

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.dispose());

/** A gateway whose client on stdin has asked for a lot from a server and reads none of it. */
async function unread({ answerBytes }: { answerBytes: number }) {
  const f = { ...place.server(FAULTY), sharing: 'all', concurrency: SLOW_CALLS };
  const running = await place.serve({ servers: { f }, args: ['--stdio'] });
  await running.say(INITIALIZE);
  running.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  running.process.stdout.pause();
  const ask = () => {
    for (let id = 2; id < 2 + SLOW_CALLS; id += 1) {
      const params = { name: 'f__oversized', arguments: { bytes: answerBytes } };
      running.process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })}\n`);
    }
  };
  return { running, ask };
}

/** Calls a tool of the same server over HTTP and checks that the answer comes. */
async function answeredCall(running: Running, session: Record<string, string>, nonce: string): Promise<void> {
  const params = { name: 'f__answer', arguments: { nonce } };
  const response = await place.post(running, { jsonrpc: '2.0', id: nonce, method: 'tools/call', params }, session);
  expect(await response.json()).toMatchObject({ id: nonce, result: { content: [{ text: nonce }] } });
}

/** The most memory that the process has had resident. */
function peakBytes({ process: { pid } }: Running): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

describe('a client on stdin that reads nothing, beside an HTTP client of the same server', () => {
  it('does not slow the other one down, takes bounded memory, and has its session closed', async () => {
    const { running, ask } = await unread({ answerBytes: 10 * MIB });
    const session = await place.initialize(running);
    await answeredCall(running, session, 'before');
    const before = peakBytes(running);
    ask();
    const isClosed = () => running.stderr.includes('does not read');
    for (let count = 0; count < 200 && !isClosed(); count += 1) {
      await answeredCall(running, session, `during ${count}`);
    }
    await until('the session of the client on stdin is closed', isClosed);
    for (let count = 0; count < 20; count += 1) await answeredCall(running, session, `after ${count}`);
    // 400 MiB were asked for. The limit for unread bytes is 64 MiB; the rest are one message and memory to be reused.
    expect(peakBytes(running) - before).toBeLessThan(200 * MIB);
    expect(running.process.exitCode).toBeNull();
  });

  it('only waits if it is slow and not beyond the limit', async () => {
    const { running, ask } = await unread({ answerBytes: MIB });
    const session = await place.initialize(running);
    ask();
    for (let count = 0; count < 20; count += 1) {
      await answeredCall(running, session, `during ${count}`);
    }
    running.process.stdout.resume();
    expect(await running.say({ jsonrpc: '2.0', id: 'ping', method: 'ping' })).toMatchObject({ result: {} });
    expect(running.stderr).not.toContain('does not read');
  });
});

describe('a client on stdin that sends requests and reads nothing, with no other client', () => {
  it('is not read from either, takes bounded memory, and gets every answer once it reads', async () => {
    const running = await place.serve({ servers: { f: place.server(FAULTY) }, args: ['--stdio'] });
    await running.say(INITIALIZE);
    const { stdin, stdout } = running.process;
    let answers = 0;
    stdout.on('data', (text: string) => {
      answers += text.split('\n').length - 1;
    });
    stdout.pause();
    const before = peakBytes(running);
    const ids = Array.from({ length: 150 }, (_, count) => `${count}`.padEnd(MIB, '.'));
    // The gateway answers a ping itself, with the id of the ping.
    for (const id of ids) stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n`);
    await until('the gateway has stopped reading', () => peakBytes(running) - before > 64 * MIB);
    let unread = stdin.writableLength;
    await until('the client cannot write more', () => {
      const last = unread;
      unread = stdin.writableLength;
      return unread === last && unread > 0;
    });
    expect(peakBytes(running) - before).toBeLessThan(200 * MIB);
    stdout.resume();
    await until('every ping is answered', () => answers === ids.length);
    expect(stdin.writableLength).toBe(0);
  });
});
