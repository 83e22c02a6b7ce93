import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SentRequest } from '../../../src/upstream/upstream-connection.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { requestOf } from '../../support/wire.js';
import { answerTo, bridging, Listener, progressOf, TIMEOUTS } from './bridging.js';

const which = fc.nat(12);
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('relay'), which }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('answer', 'progress', 'cancel', 'malformed', 'wrong', 'oversized'),
      which,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait'), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('block', 'unblock', 'junk'), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close'), which }) },
);

describe('a bridge, with any events in any order', () => {
  it('settles each request exactly once, and with its own answer if it is answered', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const { bridge, clock, output, say } = bridging({ maxFrameBytes: 4_096 });
        const calls: { listener: Listener; sent: SentRequest | undefined }[] = [];
        let isClosed = false;
        for (const one of actions) {
          // By the ids that the child has seen; some are answered twice, some too late, some do not exist.
          const id = one.which + 1;
          if (one.do === 'relay') {
            const listener = new Listener();
            const params = { name: 'x', nonce: calls.length, _meta: { progressToken: `t${calls.length}` } };
            const request = requestOf({ jsonrpc: '2.0', id: 7, method: 'tools/call', params });
            calls.push({ listener, sent: bridge.send(new EnvelopeRequest(request), [], TIMEOUTS, listener) });
          }
          const asked = output.messages.find((message) => message.id === id);
          if (one.do === 'answer') say(answerTo(id, { nonce: asked?.params.nonce }));
          if (one.do === 'progress') say(progressOf(id, clock.now()));
          if (one.do === 'malformed') say(`{"jsonrpc":"2.0","id":${id},"result":[}`);
          if (one.do === 'wrong') say(`{"jsonrpc":"2.0","id":${id},"result":[]}`);
          if (one.do === 'oversized') say(answerTo(id, 'x'.repeat(5_000)));
          if (one.do === 'junk') say('junk');
          if (one.do === 'cancel') calls[one.which]?.sent?.cancel();
          if (one.do === 'wait') clock.advance(one.which * 100);
          if (one.do === 'block') output.unwrittenBytes = 2_000;
          if (one.do === 'unblock') output.unwrittenBytes = 0;
          if (one.do === 'close') {
            bridge.close('exited');
            isClosed = true;
          }
          for (const { listener } of calls) expect(listener.outcomes.length).toBeLessThanOrEqual(1);
          const open = calls.filter(({ listener }) => listener.outcomes.length === 0);
          expect(bridge.inFlight).toBe(open.length);
        }
        clock.advance(TIMEOUTS.maxMs);
        const sent = new Set(output.messages.map(({ params }) => params?.nonce));
        calls.forEach(({ listener }, nonce) => {
          expect(listener.outcomes).toHaveLength(1);
          const [outcome] = listener.outcomes;
          if (outcome?.kind === 'answered') expect(listener.told).toEqual([JSON.stringify({ nonce })]);
          else expect(outcome?.sent).toBe(sent.has(nonce));
        });
        expect(bridge.inFlight).toBe(0);
        expect(clock.pending).toBe(0);

        const ids = output.messages.filter(({ method }) => method === 'tools/call').map((message) => message.id);
        expect(ids).toEqual(ids.map((_, index) => index + 1));
        const cancelled = output.messages.filter(({ method }) => method === 'notifications/cancelled');
        const told = cancelled.map(({ params }) => params.requestId);
        expect(new Set(told).size).toBe(told.length);
        if (isClosed) expect(bridge.isClosed).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
