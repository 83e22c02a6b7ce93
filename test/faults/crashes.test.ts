import { afterEach, describe, expect, it } from 'vitest';
import { InProcessGateway, type InProcessOptions, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';

let gateway: InProcessGateway;
afterEach(() => gateway.end());

function start(options: InProcessOptions): InProcessGateway {
  gateway = new InProcessGateway(options);
  return gateway;
}

describe('a server that is killed', () => {
  it('F1: is ready again within its backoff, its start and 100 ms, and has one living generation at a time', async () => {
    start({ servers: { f: { args: ['spawns=RUN/spawns'] } } });
    const client = await gateway.connect();
    const first = await gateway.untilState('f', 'ready');
    process.kill(first.pid ?? 0, 'SIGKILL');
    await until('it is started again', () => gateway.status('f').generation === 2);
    const second = await gateway.untilState('f', 'ready');
    expect(second).toMatchObject({ generation: 2, restarts: 1 });
    expect(textOf(await client.call('f__answer', { nonce: 'n' }))).toBe('n');
  });
});
