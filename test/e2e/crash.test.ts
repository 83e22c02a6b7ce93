import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';
import { until } from '../support/processes.js';
import { repetitions } from '../support/repetitions.js';

let gateway: GatewayProcess;
afterEach(() => gateway.dispose());

const KILLS = repetitions({ full: 50, short: 10 });
const QUICK_RESTARTS = { restart: { firstDelay: '20ms', maxDelay: '50ms', budget: 1000 } };

describe('a server killed with SIGKILL', () => {
  it('F2: costs the 16 calls in flight an answer each before its next start, as unknown, and none is sent again', async () => {
    // The next start is a minute away, so that no answer can have waited for it.
    const restart = { firstDelay: '1m', maxDelay: '1m' };
    gateway = await GatewayProcess.start({ servers: { lab: { restart } }, gateway: { restartTool: true } });
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
    gateway = await GatewayProcess.start({ servers: { lab: { ...QUICK_RESTARTS, concurrency: 4 } } });
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

  it(`loses no answer and gives none twice over ${KILLS} kills in a row, and leaves no process`, async () => {
    gateway = await GatewayProcess.start({ servers: { lab: QUICK_RESTARTS, other: {} } });
    await gateway.listTools();
    const file = join(gateway.folder, 'effects');
    let asked = 0;
    const answers: unknown[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      const { pid } = await gateway.untilState('lab', 'ready');
      const calls = Array.from({ length: 6 }, () => {
        asked += 1;
        return gateway.call('lab__effect', { file, marker: `call-${asked}`, delayMs: kill % 3 });
      });
      const others = gateway.call('other__wait', { marker: 'unharmed', delayMs: 1 });
      process.kill(pid, 'SIGKILL');
      for (const { message } of await Promise.all(calls)) answers.push(message.id);
      expect((await others).message.result.content[0].text).toBe('unharmed');
    }
    expect(new Set(answers).size).toBe(asked);
    const ids = gateway.received.map(({ message }) => message.id).filter((id) => id !== undefined);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(effects(file)).size).toBe(effects(file).length);
    expect(await gateway.untilState('lab', 'ready')).toMatchObject({
      generation: KILLS + 1,
      restarts: KILLS,
      inFlight: 0,
    });
    expect(await gateway.close()).toBe(0);
    expect(gateway.leftovers()).toEqual([]);
  });
});

describe('a server that ends by itself', () => {
  it('F6: is restarted even when it exits with code 0, which counts as a failure', async () => {
    gateway = await GatewayProcess.start({ servers: { lab: QUICK_RESTARTS } });
    await gateway.listTools();
    expect((await gateway.call('lab__die', { code: 0 })).message.result._meta['trunkline/failure'].reason).toBe(
      'child_exited',
    );
    const { message } = await gateway.call('lab__wait', { marker: 'again', delayMs: 0 });
    expect(message.result.content[0].text).toBe('again');
    expect(await gateway.status('lab')).toMatchObject({ generation: 2, lastExit: { code: 0 }, lastFailure: 'exited' });
  });

  it('is parked after five failures in a row, leaves the list, and comes back with trunkline__restart', async () => {
    gateway = await GatewayProcess.start({
      servers: { lab: { restart: { firstDelay: '5ms', maxDelay: '10ms' } }, other: {} },
      gateway: { restartTool: true },
    });
    await gateway.listTools();
    for (let failure = 0; failure < 5; failure += 1) {
      const { pid } = await gateway.untilState('lab', 'ready');
      process.kill(pid, 'SIGKILL');
      await gateway.call('lab__wait', { delayMs: 0 });
    }
    const parked = await gateway.untilState('lab', 'parked');
    expect(parked.generation).toBe(5);
    expect(parked.retryInSeconds).toBeGreaterThan(200);
    expect(parked.advice).toContain('trunkline__restart');
    expect((await gateway.listTools()).map(({ name }) => name)).not.toContain('lab__wait');
    const refused = await gateway.call('lab__wait', { delayMs: 0 });
    expect(refused.message.result._meta['trunkline/failure']).toMatchObject({ reason: 'parked', outcome: 'not_sent' });

    await gateway.call('trunkline__restart', { server: 'lab' });
    await gateway.untilState('lab', 'ready');
    expect((await gateway.listTools()).map(({ name }) => name)).toContain('lab__wait');
  });

  it('is parked with the cause that its output names: in the status, the log, and the answers to calls', async () => {
    const program = fileURLToPath(new URL('../fixtures/cli/no-key.mjs', import.meta.url));
    gateway = await GatewayProcess.start({
      servers: { bad: { command: 'node', args: [program], restart: { firstDelay: '5ms', budget: 2 } } },
      args: ['-v'],
    });
    const cause = ['Error: ACME_KEY is not set'];
    const parked = await gateway.untilState('bad', 'parked');
    await until('the cause is logged', () => gateway.stderr.includes('"msg":"server parked"'));
    expect(await gateway.status('bad')).toMatchObject({ cause });
    expect(parked.log).toContain(`Node.js ${process.version}`);
    const records = gateway.stderr.split('\n').filter((line) => /server (?:backoff|parked)/.test(line));
    expect(records.map((line) => JSON.parse(line).cause)).toEqual([cause, cause]);
    const { result } = (await gateway.call('bad__anything', {})).message;
    expect(result.content[0].text).toContain('Its output says: "Error: ACME_KEY is not set". The call was not sent');
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
