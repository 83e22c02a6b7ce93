import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayProcess, type StartOptions } from '../support/gateway-process.js';
import { sharedPlace } from '../support/hub-place.js';

let gateway: GatewayProcess;

/** A gateway whose servers have been listed. */
async function start(options: StartOptions): Promise<void> {
  gateway = await GatewayProcess.start(options);
  onTestFinished(() => gateway.dispose());
  await gateway.listTools();
}

describe('the relay, with default settings', () => {
  async function start(options: StartOptions): Promise<void> {
    gateway = await sharedPlace(options).client();
    await gateway.listTools();
  }

  it('forwards every byte of large results, which use the same memory one after the other', async () => {
    await start({ servers: { one: {}, two: {}, three: {} } });
    const sizes = [20_000, 70_000, 300_000, 900_000, 1_100_000, 3_000_000, 20_000_000];
    const calls = Array.from({ length: 30 }, async (_, index) => {
      const [server, bytes] = [['one', 'two', 'three'][index % 3], sizes[index === 29 ? 6 : (index * 5) % 6] ?? 0];
      const mark = `<${index} of ${server}>`;
      const { message } = await gateway.call(`${server}__big`, { mark, bytes });
      const { text } = message.result.content[0];
      return text.length === bytes && text === mark.repeat(bytes / mark.length + 1).slice(0, bytes);
    });
    expect(await Promise.all(calls)).toEqual(calls.map(() => true));
  });
});

describe('stdout', () => {
  it('carries nothing but protocol, with -vv and servers that print garbage', async () => {
    const noisy = { args: ['noisy'] };
    await start({ servers: { one: noisy, two: noisy }, args: ['-vv'] });
    for (let call = 0; call < 20; call += 1) {
      const { message } = await gateway.call(call % 2 ? 'one__wait' : 'two__wait', { marker: `m${call}`, delayMs: 0 });
      expect(message.result.content[0].text).toBe(`m${call}`);
    }
    await gateway.call('one__die');
    await gateway.untilState('one', 'ready');
    // Every line was parsed on arrival, which would have failed for anything but JSON.
    for (const { message, raw } of gateway.received) {
      expect(message.jsonrpc).toBe('2.0');
      expect(raw).not.toContain('\r');
    }
    const answers = gateway.received.filter(({ message }) => message.id <= 22);
    for (const { raw } of answers) expect(raw).not.toMatch(/noise|Welcome/);
    const status = await gateway.status('two');
    expect(status.dropped.junk).toBeGreaterThan(10);
    expect(status.log.join('\n')).toContain('noise');
    expect(gateway.stderr).toContain('server ready');
  });
});
