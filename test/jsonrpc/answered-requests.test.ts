import { describe, expect, it } from 'vitest';
import { AnsweredRequests } from '../../src/jsonrpc/correlation-table.js';
import { answerTo, bridging, progressOf, sendCall } from '../upstream/stdio/bridging.js';

describe('requests that became tasks', () => {
  it('stay until they end', () => {
    const lasting = new AnsweredRequests<string>();
    const end = lasting.add(1, 'one');
    lasting.add(2, 'two');
    expect([lasting.get(1), lasting.get(2), lasting.get(3)]).toEqual(['one', 'two', undefined]);
    end();
    end();
    expect([lasting.get(1), lasting.get(2), lasting.size]).toEqual([undefined, 'two', 1]);
  });

  it('are forgotten, the oldest first, when nobody tells of their end', () => {
    const lasting = new AnsweredRequests<number>();
    for (let id = 1; id <= 300; id += 1) lasting.add(id, id);
    expect(lasting.size).toBe(256);
    expect([lasting.get(44), lasting.get(45), lasting.get(300)]).toEqual([undefined, 45, 300]);
  });
});

describe('a request at a child that has become a task', () => {
  it('reports progress after its answer until it is over, and only what moves forward', () => {
    const { bridge, say } = bridging();
    const { listener, sent } = sendCall(bridge);
    say(progressOf(1, 1), answerTo(1, { task: {} }));
    const end = sent?.keepProgress();
    say(progressOf(1, 2), progressOf(1, 2), progressOf(1, 1.5));
    expect(listener.reports).toHaveLength(2);
    expect(bridge.counters.staleProgress).toBe(2);
    end?.();
    say(progressOf(1, 3));
    expect(listener.reports).toHaveLength(2);
    expect(bridge.counters.staleProgress).toBe(3);
  });

  it('is not timed out for the silence after its answer', () => {
    const { bridge, say, clock } = bridging();
    const { listener, sent } = sendCall(bridge);
    say(answerTo(1, { task: {} }));
    sent?.keepProgress();
    say(progressOf(1, 1));
    clock.advance(100_000);
    say(progressOf(1, 2));
    expect(listener.told).toHaveLength(1);
    expect(listener.reports).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });
});
