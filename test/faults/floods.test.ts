import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';
import { hurryingClock } from '../support/hurrying-clock.js';
import { FAULTY, failureOf, InProcessGateway, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

const MIB = 1024 * 1024;

let end: () => Promise<unknown> = async () => {};
afterEach(() => end());

describe('a server that writes to stderr without end', () => {
  // A sixteenth of the gigabyte that the row asks for; the log is nearly full before, so that it has to be rotated.
  it('F42: keeps working, and the log takes no more than 50 MiB', async () => {
    const logs = mkdtempSync(join(tmpdir(), 'trunkline-logs-'));
    for (const suffix of ['.1', '.2', '.3', '.4'])
      writeFileSync(join(logs, `x.log${suffix}`), Buffer.alloc(10 * MIB, 'o\n'));
    writeFileSync(join(logs, 'x.log'), Buffer.alloc(10 * MIB - 1_000, 'o\n'));
    const gateway = await GatewayProcess.start({
      servers: { f: { program: FAULTY } },
      args: ['-vv', '--log-file', join(logs, 'x.log')],
    });
    end = async () => {
      await gateway.dispose();
      rmSync(logs, { recursive: true });
    };
    await gateway.untilState('f', 'ready');
    const flood = gateway.call('f__stderr', { bytes: 64 * MIB, nonce: 'flood' });
    const during = await gateway.call('trunkline__status');
    expect(during.message.result.isError).toBeUndefined();
    expect(textOf((await flood).message.result)).toBe('flood');
    expect(textOf((await gateway.call('f__answer', { nonce: 'after' })).message.result)).toBe('after');

    // The server answers before all that it has to say is taken from it. A fast machine reads more lines in a second than
    // the log takes, and drops the others; on a slow one, they wait in the pipe.
    const heldBack = async () => {
      const { droppedLogBytes, pausedSeconds } = await gateway.status('f');
      return droppedLogBytes > 40_000 || pausedSeconds > 0;
    };
    await expect.poll(heldBack).toBe(true);
    expect(await gateway.status('f')).toMatchObject({ state: 'ready', restarts: 0 });
    const text = (await gateway.call('trunkline__status', { server: 'f' })).message.result.content[0].text;
    expect(text).toMatch(/dropped from the log: \d+ bytes \(too much at once\)|its output was not read for/);
    const sizes = readdirSync(logs).map((name) => statSync(join(logs, name)).size);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(50 * MIB);
  });
});

describe('a server that writes without end and answers nothing', () => {
  it.each([
    ['notifications', '{"jsonrpc":"2.0","method":"a"}\n', 1],
    ['text on stderr', 'x\n', 2],
  ])('F63: is read with pauses, and its neighbor is answered: %s', async (_, text, fd) => {
    const gateway = new InProcessGateway({ servers: { f: {}, g: {} } });
    end = () => gateway.end();
    const client = await gateway.connect();
    await gateway.untilState('f', 'ready');
    await gateway.untilState('g', 'ready');
    await client.call('f__flood', { text, fd });
    const pausedMs = () => gateway.pausedMs('f');
    await until('reading is paused', () => pausedMs() > 0);
    const pausedBefore = pausedMs();
    for (let call = 0; call < 100; call += 1)
      expect(textOf(await client.call('g__answer', { nonce: `n${call}` }))).toBe(`n${call}`);
    await until('reading is paused again', () => pausedMs() > pausedBefore + 50);
  });

  const TIMES = 100;
  it('F64: is restarted after a minute of it, with that reason', async () => {
    // A flood counts as over after a second without a pause. So the time is that of the work of this process, which stands still
    // while a busy machine does not run the server.
    const now = () => (process.cpuUsage().user + process.cpuUsage().system) * (TIMES / 1_000);
    const clock = { ...hurryingClock(TIMES), now };
    const gateway = new InProcessGateway({ servers: { f: { startTimeout: '300s' } }, clock });
    end = () => gateway.end();
    const client = await gateway.connect();
    await gateway.untilState('f', 'ready');
    await client.call('f__flood', { text: '\n' });
    await until('it is restarted', () => gateway.status('f').restarts > 0);
    const failure = gateway.changes.find(({ snapshot }) => snapshot.lastFailure !== undefined);
    expect(failure?.snapshot.lastFailure?.reason).toBe(
      'for a minute it wrote more than Trunkline can read, without answering anything',
    );
  });
});

describe('a server that floods from its first byte on', () => {
  it('is ended when its start takes too long, and its log tells of the flood', async () => {
    const flooder = { command: 'yes', args: [''], era: 'legacy', startTimeout: '30s' };
    const gateway = new InProcessGateway({ servers: { f: flooder }, clock: hurryingClock(20) });
    end = () => gateway.end();
    const client = await gateway.connect();
    await until('it failed', () => gateway.changes.some(({ snapshot }) => snapshot.lastFailure !== undefined));
    const { result } = await client.request('tools/call', { name: 'trunkline__status', arguments: { server: 'f' } });
    expect(result.content[0].text).toMatch(/Trunkline did not read its output for \d+ s in all, because it answers/);
  });
});

describe('servers whose incomplete messages are larger than the common limit', () => {
  it('have the answer dropped that exceeds it, are reported by the status, and go on', async () => {
    const gateway = new InProcessGateway({ servers: { f: {} }, gateway: { maxPartial: '1MiB' } });
    end = () => gateway.end();
    const client = await gateway.connect();
    await gateway.untilState('f', 'ready');
    expect(failureOf(await client.call('f__oversized', { bytes: 3 * MIB }))).toMatchObject({
      reason: 'response_dropped',
      outcome: 'failed',
    });
    expect(textOf(await client.call('f__answer', { nonce: 'next' }))).toBe('next');
    const { result } = await client.request('tools/call', { name: 'trunkline__status' });
    expect(result.structuredContent.limits.partialFrameBytes).toMatchObject({ now: 0, max: MIB, refused: 1 });
    expect(result.content[0].text).toContain(
      'Unfinished messages dropped: 1, the largest first, because all unfinished messages together reached 1048576 bytes (limit `gateway.maxPartial`).',
    );
    expect(result.content[0].text).toContain(
      'unfinished messages dropped: 1 as the largest when the limit `gateway.maxPartial` was reached',
    );
  });
});
