import { afterEach, expect, it } from 'vitest';
import { InProcessGateway } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

let gateway: InProcessGateway;
afterEach(() => gateway.end());

it("logs every change of a server's state once, and how a failed process ended and what it wrote last, without its secrets", async () => {
  const env = { API_KEY: 'canary-1234567890' };
  gateway = new InProcessGateway({ servers: { f: { env, args: ['reveal'], restart: { firstDelay: '10ms' } } } });
  const client = await gateway.connect();
  await gateway.untilState('f', 'ready');
  await client.call('f__exit', { code: 7 });
  await until('it is started again', () => gateway.status('f').generation === 2);
  await gateway.untilState('f', 'ready');

  const moves = gateway.log.map((line) => JSON.parse(line)).filter(({ state }) => state !== undefined);
  expect(moves.map(({ state, generation }) => `${state} ${generation}`)).toEqual([
    ...['starting 1', 'ready 1', 'backoff 1', 'starting 2', 'ready 2'],
  ]);
  const [failed] = moves.filter(({ state }) => state === 'backoff');
  expect(failed).toMatchObject({ server: 'f', reason: 'exited', code: 7, signal: null });
  expect(failed.cause).toHaveLength(1);
  expect(gateway.status('f').log.join('\n')).toContain('"API_KEY":"[redacted]"');
  expect(gateway.log.join('\n')).not.toContain(env.API_KEY);
});
