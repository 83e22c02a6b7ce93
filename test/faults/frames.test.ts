import { describe, expect, it } from 'vitest';
import { Bridge } from '../../src/upstream/channel/bridge.js';
import { copyInto } from '../../src/wire/io/byte-reader.js';
import { cpuMsOf } from '../support/cpu-time.js';
import { FakeClock } from '../support/fake-clock.js';
import { failureOf, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { flush, type Message, RecordingSink, scan } from '../support/wire.js';

const MIB = 1024 * 1024;

async function serving(entry: Record<string, unknown> = {}) {
  const gateway = InProcessGateway.start({ servers: { f: entry } });
  const client = await gateway.connect();
  await gateway.untilState('f', 'ready');
  return { gateway, client };
}

describe('the output of a server', () => {
  it('F19: is read among banners and blank lines, with CRLF and many lines in one chunk; junk is counted', async () => {
    const { gateway, client } = await serving({
      args: ['banner', 'crlf', 'gathered'],
      concurrency: 100,
      era: 'legacy',
    });
    const nonces = Array.from({ length: 100 }, (_, index) => `n${index}`);
    const results = await Promise.all(nonces.map((nonce) => client.call('f__answer', { nonce })));
    expect(results.map(textOf)).toEqual(nonces);
    const { dropped, log } = gateway.status('f');
    expect(dropped.junk).toBe(105);
    expect(log.join('\n')).toContain('about to write');
    for (const line of client.received.lines) expect(() => JSON.parse(line)).not.toThrow();
    expect(client.received.lines.join('\n')).not.toMatch(/Welcome|dotenv|about to write/);
  });

  it('F20: is forwarded byte for byte when it comes one byte at a time', async () => {
    const { client } = await serving({ args: ['bytewise'] });
    await client.call('f__verbatim');
    expect(client.received.lines.at(-1)).toContain('"text":"\\u00e9\\ud83d\\ude00é😀"');
  });

  it('F21: has U+FFFD for bytes that are no UTF-8, and no other message is altered', async () => {
    const { gateway, client } = await serving();
    const [bad, good] = await Promise.all([client.call('f__invalid_utf8'), client.call('f__answer', { nonce: 'n' })]);
    expect(textOf(bad)).toContain('\ufffd');
    expect(textOf(good)).toBe('n');
    expect(gateway.status('f')).toMatchObject({ generation: 1, dropped: { repaired: 1 } });
  });

  it('F22: fails a request when its answer is one byte too long, and the next is read', async () => {
    const { gateway, client } = await serving({ maxFrame: '10MiB' });
    const tooLong = client.call('f__oversized', { bytes: 10 * MIB + 1 });
    const next = client.call('f__answer', { nonce: 'next' });
    expect(failureOf(await tooLong)).toMatchObject({ reason: 'response_too_large', outcome: 'failed' });
    expect(textOf(await next)).toBe('next');
    expect(gateway.status('f').dropped.oversized).toBe(1);
    // Of a line of 10 MiB, all is text but the members around it.
    expect(textOf(await client.call('f__oversized', { bytes: 10 * MIB })).length).toBeGreaterThan(10 * MIB - 100);
    expect(gateway.status('f').generation).toBe(1);
  });

  it('F26: fails the request that it answers 200,000 levels deep, and nothing else comes of it', async () => {
    const { gateway, client } = await serving();
    expect(failureOf(await client.call('f__deep', { levels: 200_000 }))).toMatchObject({
      reason: 'response_malformed',
      outcome: 'failed',
    });
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
    expect(gateway.status('f')).toMatchObject({ generation: 1, dropped: { junk: 1 } });
  });

  it('F137: fails the request that it answers with a result that is no object, at once and as often as it comes', async () => {
    const { gateway, client } = await serving({ concurrency: 100 });
    const wrong = [null, 'done', [], [{ type: 'text', text: 'done' }], 7, true];
    for (const result of wrong)
      expect(failureOf(await client.call('f__result', { result }))).toMatchObject({
        reason: 'response_malformed',
        outcome: 'failed',
      });
    // Neither the supervisor nor the circuit breaker takes the other tools away.
    expect(textOf(await client.call('f__answer', { nonce: 'other' }))).toBe('other');
    const { generation, dropped, log } = gateway.status('f');
    expect([generation, dropped]).toMatchObject([1, { junk: wrong.length }]);
    expect(log.join('\n')).toContain('"result":null}');
  });

  it('F28: has its numbers and duplicates forwarded byte for byte, in both directions', async () => {
    const { client } = await serving();
    const raw = '"big":9007199254740993,"one":1.0,"zero":-0,"far":1e400,"k":1,"k":2';
    await client.call('f__verbatim');
    expect(client.received.lines.at(-1)).toContain(`{${raw},`);
    const asked = client.received.lines.length;
    client.say(`{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{"name":"f__echo","arguments":{${raw}}}}`);
    await gatewayAnswers(client.received, asked);
    expect(textOf(client.received.last.result)).toContain(`"arguments":{${raw}}`);
  });
});

describe('a line of 8 MiB that goes on in 100,000 chunks of one byte', () => {
  it('F24: costs less than a second, delays nothing for long, and takes at most twice the limit of a line', async () => {
    const maxFrameBytes = 16 * MIB;
    const lines: Message[] = [];
    const bridge = new Bridge({
      clock: new FakeClock(),
      scan,
      output: new RecordingSink(),
      maxFrameBytes,
      maxUnwrittenBytes: MIB,
      events: {
        request: () => {},
        notification: ({ span }) => lines.push({ length: span.end }),
        junk: () => {},
        silent: () => {},
        violated: () => {},
      },
    });
    const stdout = bridge.open();
    const head = Buffer.from(`{"jsonrpc":"2.0","method":"x","params":{"text":"${'x'.repeat(8 * MIB)}`);
    const byte = Buffer.from('y');
    const memoryBefore = process.memoryUsage().arrayBuffers;
    let mostMemory = 0;
    const costsMs = [cpuMsOf(() => copyInto(stdout, head))];
    for (let batch = 0; batch < 1_000; batch += 1) {
      const writeBatch = () => {
        for (let count = 0; count < 100; count += 1) copyInto(stdout, byte);
      };
      costsMs.push(cpuMsOf(writeBatch));
      mostMemory = Math.max(mostMemory, process.memoryUsage().arrayBuffers);
      await flush();
    }
    costsMs.push(cpuMsOf(() => copyInto(stdout, Buffer.from('"}}\n'))));
    expect(lines).toEqual([{ length: head.length + 100_000 + 3 }]);
    // Processor time, which other work of the machine does not change: in all, and of what runs without a pause.
    expect(costsMs.reduce((sum, ms) => sum + ms)).toBeLessThan(1_000);
    expect(costsMs.toSorted((one, other) => other - one)[10]).toBeLessThan(50);
    expect(mostMemory - memoryBefore).toBeLessThan(2 * maxFrameBytes);
  });
});

async function gatewayAnswers(received: RecordingSink, after: number): Promise<void> {
  while (received.lines.length === after) await flush();
}
