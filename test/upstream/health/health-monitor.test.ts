import { describe, expect, it } from 'vitest';
import { HealthMonitor, LivenessProbe } from '../../../src/upstream/health/health-monitor.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { FakeClock } from '../../support/fake-clock.js';
import { ScriptedChild } from '../../support/scripted-child.js';
import { flush, type Message, requestOf } from '../../support/wire.js';
import { answerTo, bridging, CALL, Listener, progressOf, sendCall } from '../stdio/bridging.js';

const MIB = 1024 * 1024;
const TOO_MANY = 'it sent 3 oversized or unfinished messages within a minute';

describe('excessive messages', () => {
  function watching() {
    const clock = new FakeClock();
    const reasons: string[] = [];
    const health = new HealthMonitor(clock, { silent: () => {}, violated: (reason) => void reasons.push(reason) });
    return { clock, reasons, health };
  }

  it('are forgiven twice a minute', () => {
    const { clock, reasons, health } = watching();
    for (let count = 0; count < 6; count += 1) {
      health.excessiveMessage();
      clock.advance(30_000);
    }
    expect(reasons).toEqual([]);
  });

  it('are one too many when the third comes within a minute of the first', () => {
    const { clock, reasons, health } = watching();
    health.excessiveMessage();
    clock.advance(59_998);
    health.excessiveMessage();
    clock.advance(1);
    expect(reasons).toEqual([]);
    health.excessiveMessage();
    expect(reasons).toEqual([TOO_MANY]);
  });

  it('F23: are no matter of how often something is printed, but of how much within a minute', () => {
    const { clock, reasons, health } = watching();
    for (let second = 0; second < 1_000; second += 1) {
      health.strayOutput(MIB / 4);
      clock.advance(1_000);
    }
    expect(reasons).toEqual([]);
    health.strayOutput(2 * MIB);
    expect(reasons).toEqual([expect.stringContaining('more than 16 MiB')]);
  });
});

describe('a child', () => {
  it.each([
    ['a banner', 'Server listening'],
    ['objects for people', '{ level: 30 }'],
    ['a log in JSON', '{"level":30,"id":7,"msg":"hello"}'],
    ['half of a log in JSON', '{"level":30,'],
    ['an array', '[1,2]'],
    ['nothing', ''],
    ['an answer that is cut off', '{"jsonrpc":"2.0","id":1,"result":{'],
    ['an answer that is no JSON-RPC', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'],
    ['an answer to a notification', '{"jsonrpc":"2.0","id":null,"result":{}}'],
    ['an answer without an id', '{"jsonrpc":"2.0","result":{}}'],
    ['an error without an id', '{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}'],
    ['an answer that nobody asked for', '{"jsonrpc":"2.0","id":77,"result":{}}'],
    ['a request that is none', '{"jsonrpc":"2.0","method":7}'],
    ['a message that nests too deep', `{"jsonrpc":"2.0","method":"x","params":${'['.repeat(600)}${']'.repeat(600)}}`],
    ['an answer without a version', '{"id":1,"result":{}}'],
  ])('that prints %s again and again is not', (_, line) => {
    const { say, health } = bridging();
    for (let count = 0; count < 1_000; count += 1) say(line);
    expect(health).toEqual([]);
  });

  it('whose line is longer than a message may be, but begins like none, is not', () => {
    const { say, health } = bridging();
    for (let count = 0; count < 100; count += 1) say('x'.repeat(65 * 1024));
    expect(health).toEqual([]);
  });

  it('F23: whose line never ends is given up for what is beyond the limit, in whatever pieces it comes', () => {
    const { stdout, health } = bridging({ maxFrameBytes: MIB });
    const piece = Buffer.alloc(64 * 1024, 'x');
    let bytes = piece.length;
    copyInto(stdout, Buffer.from(`{"a":"`.padEnd(bytes, 'x')));
    while (health.length === 0 && bytes < 100 * MIB) {
      copyInto(stdout, piece);
      bytes += piece.length;
    }
    expect(health).toEqual(['it wrote more than 16 MiB that is no message to stdout within a minute']);
    expect(bytes).toBe(17 * MIB + piece.length);
  });

  it('that writes three lines that are too large is given up, and not heard any more, not even with the same chunk', () => {
    const { bridge, stdout, health, notifications } = bridging({ giveUp: true });
    const { listener } = sendCall(bridge);
    const broken = `{"a":"${'x'.repeat(65 * 1024)}"}\n`;
    const chunk = `${broken.repeat(3)}{"jsonrpc":"2.0","method":"notifications/x"}\n{"jsonrpc":"2.0","id":1,"result":{}}\n`;
    copyInto(stdout, Buffer.from(chunk));
    expect(health).toEqual([TOO_MANY]);
    expect(notifications).toEqual([]);
    expect(listener.told).toEqual(['exited sent']);
  });
});

/** Output that proves nothing: a thread may print it while the one that answers is stuck. */
const NO_SIGNS: readonly (readonly [what: string, message: Message | string])[] = [
  ['lines that are no messages', 'not even a message'],
  ['notifications', { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }],
  ['progress that nobody asked for', progressOf(999_999, 1)],
  ['answers that nobody asked for', answerTo(999_999)],
  ['answers that it has given already', answerTo(1)],
  ['requests of its own', { jsonrpc: '2.0', id: 'q', method: 'ping' }],
];

/** A server after its handshake, with the reports of the liveness probe written down. */
async function suspecting() {
  const clock = new FakeClock();
  const told: string[] = [];
  const child = new ScriptedChild({ clock, silent: () => livenessProbe.start() });
  child.listsTools = false;
  const livenessProbe = new LivenessProbe({
    clock,
    connection: child.bridge,
    request: (...request) => child.bridge.request(...request),
    suspected: () => told.push('suspected'),
    cleared: () => told.push('cleared'),
    unresponsive: () => told.push('unresponsive'),
  });
  await child.connect();
  const call = (idleMs = 1_000) =>
    child.bridge.send(new EnvelopeRequest(requestOf(CALL)), [], { idleMs, maxMs: 600_000 }, new Listener());
  const advance = async (ms: number) => {
    clock.advance(ms);
    await flush();
  };
  const asked = () =>
    child.received.messages.map(({ method }) => method).filter((m) => m === 'ping' || m === 'tools/list');
  return { child, told, call, advance, asked, clock };
}

describe('a child that lets requests time out', () => {
  it('is suspect after the third in a row', async () => {
    const { told, call, advance } = await suspecting();
    for (let count = 0; count < 3; count += 1) {
      expect(told).toEqual([]);
      call();
      await advance(1_000);
    }
    expect(told).toEqual(['suspected']);
  });

  it('is not, if it answers others meanwhile, in time or late', async () => {
    const { child, told, call, advance } = await suspecting();
    for (let round = 0; round < 4; round += 1) {
      for (let count = 0; count < 2; count += 1) {
        call();
        await advance(1_000);
      }
      if (round % 2 === 0) call();
      child.say(answerTo(child.calls.at(-1)?.id));
    }
    expect(child.bridge.counters).toMatchObject({ late: 2, duplicate: 0 });
    expect(told).toEqual([]);
  });

  it.each(NO_SIGNS)('F67: is, although it prints %s all the time', async (_, message) => {
    const { child, told, call, advance } = await suspecting();
    for (let count = 0; count < 3; count += 1) {
      call();
      child.say(message);
      await advance(1_000);
      child.say(message);
    }
    expect(told).toEqual(['suspected']);
  });

  it('is not while one of its calls reports progress, however seldom', async () => {
    const { child, told, call, advance } = await suspecting();
    call(60_000);
    child.say(progressOf(child.calls[0]?.id, 1));
    for (let count = 0; count < 20; count += 1) call();
    await advance(59_000);
    child.say(progressOf(child.calls[0]?.id, 2));
    for (let count = 0; count < 20; count += 1) call();
    await advance(59_000);
    expect(told).toEqual([]);
  });

  it('is after that call has timed out, too', async () => {
    const { child, told, call, advance } = await suspecting();
    call(5_000);
    child.say(progressOf(child.calls[0]?.id, 1));
    for (let count = 0; count < 3; count += 1) call();
    await advance(5_000);
    expect(told).toEqual([]);
    for (let count = 0; count < 2; count += 1) call();
    await advance(1_000);
    expect(told).toEqual(['suspected']);
  });
});

describe('a suspect child', () => {
  async function suspect() {
    const world = await suspecting();
    for (let count = 0; count < 3; count += 1) world.call();
    await world.advance(1_000);
    expect(world.told).toEqual(['suspected']);
    return world;
  }

  it('is asked two different things, for ten seconds each, and is of no use when it answers neither', async () => {
    const { told, advance, asked, clock } = await suspect();
    expect(asked()).toEqual(['ping']);
    await advance(10_000);
    expect(asked()).toEqual(['ping', 'tools/list']);
    await advance(9_999);
    expect(told).toEqual(['suspected']);
    await advance(1);
    expect(told).toEqual(['suspected', 'unresponsive']);
    await advance(600_000);
    expect(asked()).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  it('is cleared by its answer to ping, and asked nothing more', async () => {
    const { child, told, advance, asked } = await suspect();
    child.reply('ping');
    await flush();
    await advance(60_000);
    expect(told).toEqual(['suspected', 'cleared']);
    expect(asked()).toEqual(['ping']);
  });

  it('F45: is cleared by its answer to tools/list, be it an error, since some ignore ping', async () => {
    const { child, told, advance } = await suspect();
    await advance(10_000);
    child.reply('tools/list', { code: -32601, message: 'no tools' });
    await flush();
    expect(told).toEqual(['suspected', 'cleared']);
  });

  it('is not probed while another request is in flight, and is cleared by any output about that', async () => {
    const { child, told, call, advance, asked } = await suspecting();
    const long = call(300_000);
    for (let count = 0; count < 3; count += 1) call();
    await advance(1_000);
    expect(told).toEqual(['suspected']);
    await advance(100_000);
    expect(asked()).toEqual([]);
    expect(long).toBeDefined();
    child.say(answerTo(child.calls[0]?.id));
    await advance(250);
    expect(told).toEqual(['suspected', 'cleared']);
    expect(asked()).toEqual([]);
  });

  it('is probed when the other request has timed out as well', async () => {
    const { call, advance, asked } = await suspecting();
    call(5_000);
    for (let count = 0; count < 3; count += 1) call();
    await advance(5_000);
    await advance(250);
    expect(asked()).toEqual(['ping']);
  });

  it('that ends meanwhile concerns nobody any more', async () => {
    const { child, told, advance, clock } = await suspect();
    child.bridge.close('exited');
    await advance(60_000);
    expect(told).toEqual(['suspected']);
    expect(clock.pending).toBe(0);
  });

  it.each(NO_SIGNS)('is not cleared by %s', async (_, message) => {
    const { child, told, advance } = await suspect();
    for (let second = 0; second < 20; second += 1) {
      child.say(message);
      await advance(1_000);
    }
    expect(told).toEqual(['suspected', 'unresponsive']);
  });

  it('is cleared by progress of a call that is still in flight', async () => {
    const { child, told, call, advance } = await suspecting();
    call(60_000);
    for (let count = 0; count < 3; count += 1) call();
    await advance(1_000);
    child.say(progressOf(child.calls[0]?.id, 1));
    await advance(250);
    expect(told).toEqual(['suspected', 'cleared']);
  });

  it('can become suspect again after it was cleared', async () => {
    const { child, told, call, advance } = await suspect();
    child.reply('ping');
    await flush();
    for (let count = 0; count < 3; count += 1) call();
    await advance(1_000);
    expect(told).toEqual(['suspected', 'cleared', 'suspected']);
  });
});
