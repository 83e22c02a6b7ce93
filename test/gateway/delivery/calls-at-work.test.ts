import { describe, expect, it } from 'vitest';
import { CallsAtWork } from '../../../src/gateway/delivery/calls-at-work.js';
import type { Exchange } from '../../../src/gateway/exchange.js';
import type { GatewayClient } from '../../../src/gateway/gateway-port.js';
import { Seeded } from '../../support/seeded.js';

const CLIENT = {} as GatewayClient;

function call(): Exchange {
  return { request: { method: 'tools/call' }, client: CLIENT, isSettled: false } as Exchange;
}

describe('the calls that a process is at work on', () => {
  it('are in the order in which they were sent, however they end', () => {
    const random = new Seeded(1);
    const atWork = new CallsAtWork();
    const expected: Exchange[] = [];
    for (let step = 0; step < 5_000; step += 1) {
      if (expected.length === 0 || (expected.length < 400 && random.chance(0.5))) {
        const exchange = call();
        atWork.add(exchange);
        expected.push(exchange);
      } else {
        const [exchange] = expected.splice(random.chance(0.5) ? 0 : random.below(expected.length), 1);
        if (exchange !== undefined) atWork.delete(exchange);
      }
      expect(atWork.size).toBe(expected.length);
      expect(atWork.cause).toBe(expected.at(-1));
    }
  });

  it('are none once the last has ended, and ending it again changes nothing', () => {
    const atWork = new CallsAtWork();
    let idle = 0;
    const [one, other] = [call(), call()];
    atWork.add(one);
    atWork.add(other);
    atWork.whenIdle(() => {
      idle += 1;
    });
    atWork.delete(one);
    atWork.delete(one);
    expect([atWork.size, idle]).toEqual([1, 0]);
    atWork.delete(other);
    expect([atWork.size, idle]).toEqual([0, 1]);
  });
});
