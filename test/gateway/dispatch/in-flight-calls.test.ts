import { describe, expect, it } from 'vitest';
import type { DownstreamClient, Exchange } from '../../../src/downstream/port.js';
import { type InFlightCall, InFlightCalls } from '../../../src/gateway/dispatch/attempt.js';
import { Seeded } from '../../support/seeded.js';

const CLIENT = {} as DownstreamClient;

function call(): InFlightCall {
  return { exchange: { request: { method: 'tools/call' }, client: CLIENT, isSettled: false } as Exchange };
}

describe('the calls in flight to a process', () => {
  it('are in the order in which they were sent or resumed, however they end', () => {
    const random = new Seeded(1);
    const inFlightCalls = new InFlightCalls();
    const expected: InFlightCall[] = [];
    for (let step = 0; step < 5_000; step += 1) {
      if (expected.length === 0 || (expected.length < 400 && random.chance(0.5))) {
        const added = call();
        inFlightCalls.add(added);
        expected.push(added);
      } else if (random.chance(0.2)) {
        const [resumed] = expected.splice(random.below(expected.length), 1);
        if (resumed !== undefined) {
          inFlightCalls.resumed(resumed.exchange);
          expected.push(resumed);
        }
      } else {
        const [ended] = expected.splice(random.chance(0.5) ? 0 : random.below(expected.length), 1);
        if (ended !== undefined) inFlightCalls.delete(ended);
      }
      expect(inFlightCalls.size).toBe(expected.length);
      expect(inFlightCalls.cause).toBe(expected.at(-1)?.exchange);
    }
  });

  it('F183: cause what an active one can cause, unless a suspended one of another user may have caused it', () => {
    const of = (principal: string, isSuspended: boolean): InFlightCall => {
      const client = { principal } as DownstreamClient;
      const request = { method: 'tools/call' };
      return { exchange: { request, client, conversation: client, isSettled: false, isSuspended } as Exchange };
    };
    const causeOf = (...calls: InFlightCall[]) => {
      const inFlightCalls = new InFlightCalls();
      for (const each of calls) inFlightCalls.add(each);
      return inFlightCalls.cause;
    };
    const [active, waiting, waitingOfOther] = [of('me', false), of('me', true), of('you', true)];
    expect(causeOf(active, waiting)).toBe(active.exchange);
    expect(causeOf(waiting)).toBe(waiting.exchange);
    expect(causeOf(active, waitingOfOther)).toBeUndefined();
  });

  it('are none once the last has ended, and ending it again changes nothing', () => {
    const inFlightCalls = new InFlightCalls();
    let idle = 0;
    const [one, other] = [call(), call()];
    inFlightCalls.add(one);
    inFlightCalls.add(other);
    inFlightCalls.whenIdle(() => {
      idle += 1;
    });
    inFlightCalls.delete(one);
    inFlightCalls.delete(one);
    inFlightCalls.resumed(one.exchange);
    inFlightCalls.resumed(other.exchange);
    expect([inFlightCalls.size, idle]).toEqual([1, 0]);
    inFlightCalls.delete(other);
    expect([inFlightCalls.size, idle]).toEqual([0, 1]);
  });
});
