import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InMemoryExchange } from '../../support/in-memory-client.js';
import type { ScriptedPeer } from '../../support/scripted-peer.js';
import { flush } from '../../support/wire.js';
import { dispatching } from './dispatching.js';

const which = fc.nat(12);
const action = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('call'), which }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('answer', 'cancel'), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('start', 'exit', 'disconnect'), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('give up', 'die quietly'), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait'), which }) },
);

describe('a dispatcher, with any events in any order', () => {
  it('answers each call once or never if it was cancelled, and sends none twice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 50 }), async (actions) => {
        const { clock, dispatcher, start, serve } = dispatching({
          ...{ concurrency: 2, maxQueued: 3, maxWaitMs: 3_000, timeoutMs: 2_000, maxTimeoutMs: 4_000 },
        });
        const exchanges: InMemoryExchange[] = [];
        const children: ScriptedPeer[] = [];
        for (const one of actions) {
          const child = children.at(-1);
          if (one.do === 'call') exchanges.push(serve({ arguments: { nonce: exchanges.length } }));
          if (one.do === 'cancel') exchanges[one.which]?.cancel();
          if (one.do === 'answer' && child !== undefined) {
            const call = child.calls[one.which % 4];
            if (call !== undefined) child.answer(one.which % 4, call.params.arguments.nonce);
          }
          if (one.do === 'start') {
            // Only one process runs at a time.
            child?.connection.close('exited');
            children.push(await start());
          }
          // The bridge closes before or after supervision reports the end, or nobody has reported the end yet.
          if (one.do === 'die quietly') child?.connection.close('exited');
          if (one.do === 'exit') {
            dispatcher.stateChanged('backoff');
            child?.connection.close('exited');
          }
          if (one.do === 'disconnect') {
            child?.connection.close('stopped');
            dispatcher.stateChanged('backoff');
          }
          if (one.do === 'give up') {
            dispatcher.stateChanged('parked');
            child?.connection.close('exited');
          }
          if (one.do === 'wait') clock.advance(one.which * 200);
          if (one.which % 3 === 0) await flush();
        }
        children.at(-1)?.connection.close('exited');
        for (await flush(); clock.pending > 0; await flush()) clock.advance(10_000);

        exchanges.forEach((exchange, nonce) => {
          expect(exchange.answers).toHaveLength(exchange.isCancelled ? 0 : 1);
          const sent = children.flatMap(({ calls }) => calls).filter(({ params }) => params.arguments.nonce === nonce);
          expect(sent.length).toBeLessThanOrEqual(1);
          const [answer] = exchange.answers;
          if (answer !== undefined && exchange.failure === undefined) expect(answer).toBe(String(nonce));
          if (exchange.failure !== undefined) expect(exchange.failure.sent).toBe(sent.length === 1);
        });
        const { calls, failures, cancelled } = dispatcher.counters;
        const answered = exchanges.filter(({ answers, failure }) => answers.length > 0 && failure === undefined);
        expect(calls).toBe(exchanges.length);
        expect(failures + cancelled + answered.length).toBe(calls);
        expect(dispatcher.admission.queued).toBe(0);
        expect(clock.pending).toBe(0);
        dispatcher.close();
      }),
      { numRuns: 300 },
    );
  });
});
