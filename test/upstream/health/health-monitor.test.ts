import { describe, expect, it } from 'vitest';
import { copyInto } from '../../../src/io/byte-reader.js';
import { HealthMonitor } from '../../../src/upstream/health/health-monitor.js';
import { FakeClock } from '../../support/fake-clock.js';
import { bridging, sendCall } from '../stdio/bridging.js';

const MIB = 1024 * 1024;
const TOO_MANY = 'it sent 3 broken, oversized or unfinished frames within a minute';

describe('protocol violations', () => {
  function watching() {
    const clock = new FakeClock();
    const reasons: string[] = [];
    const health = new HealthMonitor(clock, { silent: () => {}, violated: (reason) => void reasons.push(reason) });
    return { clock, reasons, health };
  }

  it('are forgiven twice a minute', () => {
    const { clock, reasons, health } = watching();
    for (let count = 0; count < 6; count += 1) {
      health.brokenFrame();
      clock.advance(30_000);
    }
    expect(reasons).toEqual([]);
  });

  it('are one too many when the third comes within a minute of the first', () => {
    const { clock, reasons, health } = watching();
    health.brokenFrame();
    clock.advance(59_998);
    health.brokenFrame();
    clock.advance(1);
    expect(reasons).toEqual([]);
    health.brokenFrame();
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
    ['an answer that is cut off', '{"jsonrpc":"2.0","id":1,"result":{'],
    ['an answer that is no JSON-RPC', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'],
    ['a request that is none', '{"jsonrpc":"2.0","method":7}'],
    ['a message that nests too deep', `{"jsonrpc":"2.0","method":"x","params":${'['.repeat(600)}${']'.repeat(600)}}`],
    ['a message with bytes that are no UTF-8', Buffer.from('{"jsonrpc":"2.0","method":"\xff"}', 'latin1')],
    ['an answer without a version', '{"id":1,"result":{}}'],
    ['a line that is too large', `{"a":"${'x'.repeat(65 * 1024)}`],
  ])('that writes %s three times is given up', (_, line) => {
    const { bridge, health } = bridging();
    const bytes = Buffer.concat([Buffer.from(line), Buffer.from('\n')]);
    copyInto(bridge, bytes);
    copyInto(bridge, bytes);
    expect(health).toEqual([]);
    copyInto(bridge, bytes);
    expect(health).toEqual([TOO_MANY]);
  });

  it.each([
    ['a banner', 'Server listening'],
    ['objects for people', '{ level: 30 }'],
    ['a log in JSON', '{"level":30,"id":7,"msg":"hello"}'],
    ['half of a log in JSON', '{"level":30,'],
    ['an array', '[1,2]'],
    ['nothing', ''],
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
    const { bridge, health } = bridging({ maxFrameBytes: MIB });
    const piece = Buffer.alloc(64 * 1024, 'x');
    let bytes = piece.length;
    copyInto(bridge, Buffer.from(`{"a":"`.padEnd(bytes, 'x')));
    while (health.length === 0 && bytes < 100 * MIB) {
      copyInto(bridge, piece);
      bytes += piece.length;
    }
    expect(health).toEqual(['it wrote more than 16 MiB that is no message to stdout within a minute']);
    expect(bytes).toBe(17 * MIB + piece.length);
  });

  it('that is given up says nothing more, not even with what stood in the same chunk', () => {
    const { bridge, health, notifications } = bridging({ giveUp: true });
    const { listener } = sendCall(bridge);
    const broken = '{"jsonrpc":"2.0","method":7}\n';
    const chunk = `${broken.repeat(3)}{"jsonrpc":"2.0","method":"notifications/x"}\n{"jsonrpc":"2.0","id":1,"result":{}}\n`;
    copyInto(bridge, Buffer.from(chunk));
    expect(health).toEqual([TOO_MANY]);
    expect(notifications).toEqual([]);
    expect(listener.told).toEqual(['exited sent']);
  });
});
