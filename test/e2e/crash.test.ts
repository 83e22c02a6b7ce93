import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sharedPlace } from '../support/hub-place.js';
import { until } from '../support/processes.js';

const QUICK_RESTARTS = { restart: { firstDelay: '20ms', maxDelay: '50ms', budget: 1000 } };

describe('a server killed with SIGKILL', () => {
  it('F2: costs the 16 calls in flight an answer each before its next start, as unknown, and none is sent again', async () => {
    // The next start is a minute away, so that no answer can have waited for it.
    const restart = { firstDelay: '1m', maxDelay: '1m' };
    const gateway = await sharedPlace({ servers: { lab: { restart } }, gateway: { restartTool: true } }).client();
    await gateway.listTools();
    const { pid } = await gateway.status('lab');
    const file = join(gateway.folder, 'effects');
    const calls = Array.from({ length: 16 }, (_, index) =>
      gateway.call('lab__effect', { file, marker: `call-${index}`, delayMs: 60_000 }),
    );
    await until('all are in flight', () => effects(file).length === 16);
    expect((await gateway.status('lab')).inFlight).toBe(16);

    process.kill(pid, 'SIGKILL');
    const answers = await Promise.all(calls);
    for (const { message } of answers) {
      expect(message.result.isError).toBe(true);
      expect(message.result.content[0].text).toContain('exited during this call');
      expect(message.result._meta['trunkline/failure']).toMatchObject({
        reason: 'child_exited',
        server: 'lab',
        generation: 1,
        sent: true,
        outcome: 'unknown',
      });
    }
    expect(await gateway.status('lab')).toMatchObject({ state: 'backoff', generation: 1 });
    await gateway.call('trunkline__restart', { server: 'lab' });
    const status = await gateway.untilState('lab', 'ready');
    expect(status).toMatchObject({ generation: 2, restarts: 1, inFlight: 0, queued: 0, failures: 16 });
    expect(status.lastExit.signal).toBe('SIGKILL');
    // Behind the status, the new process has read everything that could have been sent to it.
    await gateway.call('lab__wait', { marker: 'again', delayMs: 0 });
    expect(effects(file).toSorted()).toEqual(Array.from({ length: 16 }, (_, index) => `call-${index}`).toSorted());
  });

  it('F3: gets the calls that were still queued once, on its next generation', async () => {
    const gateway = await sharedPlace({ servers: { lab: { ...QUICK_RESTARTS, concurrency: 4 } } }).client();
    await gateway.listTools();
    const { pid } = await gateway.status('lab');
    const file = join(gateway.folder, 'effects');
    const calls = Array.from({ length: 20 }, (_, index) => {
      const delayMs = index < 4 ? 60_000 : 0;
      return gateway.call('lab__effect', { file, marker: `call-${index}`, delayMs });
    });
    await until('four calls are in flight', () => effects(file).length === 4);
    process.kill(pid, 'SIGKILL');
    const answers = (await Promise.all(calls)).map(({ message }) => message.result);
    expect(answers.slice(0, 4).map((result) => result._meta['trunkline/failure'].outcome)).toEqual(
      Array(4).fill('unknown'),
    );
    expect(answers.slice(4).map((result) => result.content[0].text)).toEqual(
      Array.from({ length: 16 }, (_, index) => `call-${index + 4}`),
    );
    expect(effects(file).toSorted()).toEqual(Array.from({ length: 20 }, (_, index) => `call-${index}`).toSorted());
    expect((await gateway.status('lab')).generation).toBe(2);
  });
});

function effects(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').trim().split('\n');
  } catch {
    // Not there before the first call.
    return [];
  }
}
