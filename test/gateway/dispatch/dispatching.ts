import type { CallLimits } from '../../../src/gateway/dispatch/call-limits.js';
import { Dispatcher } from '../../../src/gateway/dispatch/dispatcher.js';
import { FakeClock } from '../../support/fake-clock.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { ScriptedChild } from '../../support/scripted-child.js';
import { LIMITS } from '../../support/scripted-gateway.js';
import type { Message } from '../../support/wire.js';

/** Delivery to children that the test plays. */
export function delivering(limits: Partial<CallLimits> = {}, retryInMs: () => number | undefined = () => undefined) {
  const clock = new FakeClock();
  const dispatcher = new Dispatcher({ key: 'files', clock, limits: { ...LIMITS, ...limits }, retryInMs });
  let generation = 0;
  const start = async (): Promise<ScriptedChild> => {
    const child = new ScriptedChild({ clock });
    generation += 1;
    dispatcher.connect(await child.connect(generation));
    return child;
  };
  const serve = (members: Message = {}, isRepeatable?: boolean): InMemoryExchange => {
    const exchange = new InMemoryExchange('tools/call', { name: 'read', ...members });
    dispatcher.serve(exchange, { edits: [], isRepeatable });
    return exchange;
  };
  return { clock, dispatcher, start, serve };
}
