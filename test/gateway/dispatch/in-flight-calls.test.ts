import { describe, expect, it } from 'vitest';
import type { DownstreamClient, Exchange } from '../../../src/downstream/port.js';
import { InFlightCalls } from '../../../src/gateway/dispatch/in-flight-calls.js';

interface InFlightCall {
  readonly exchange: Exchange;
}

function call(): InFlightCall {
  const client = {} as DownstreamClient;
  return { exchange: { request: { method: 'tools/call' }, client, isSettled: false } as Exchange };
}

describe('the calls in flight to a process', () => {
  it('have the latest one that was sent or resumed as the cause of what the server sends', () => {
    const inFlightCalls = new InFlightCalls();
    const [one, other] = [call(), call()];
    for (const each of [one, other]) inFlightCalls.add(each);
    expect(inFlightCalls.cause).toBe(other.exchange);
    inFlightCalls.resumed(one.exchange);
    expect(inFlightCalls.cause).toBe(one.exchange);
    inFlightCalls.delete(one);
    expect(inFlightCalls.cause).toBe(other.exchange);
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
