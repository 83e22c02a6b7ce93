import { Dispatcher } from '../../../src/gateway/dispatch/dispatcher.js';
import type { CallLimits } from '../../../src/spec/server-rules.js';
import { FakeClock } from '../../support/fake-clock.js';
import { InMemoryExchange } from '../../support/in-memory-client.js';
import { InMemoryUpstream } from '../../support/in-memory-upstream.js';
import { LIMITS } from '../../support/scripted-gateway.js';
import type { Message } from '../../support/wire.js';

/** A dispatcher whose server is played by the test. */
export function dispatching(limits: Partial<CallLimits> = {}, retryInMs: () => number | undefined = () => undefined) {
  const clock = new FakeClock();
  const dispatcher = new Dispatcher({ key: 'files', id: 'files', clock, limits: { ...LIMITS, ...limits }, retryInMs });
  let generation = 0;
  const start = async (): Promise<InMemoryUpstream> => {
    const child = new InMemoryUpstream({ clock });
    generation += 1;
    dispatcher.stateChanged('starting');
    dispatcher.connect(await child.connect(generation));
    dispatcher.stateChanged('ready');
    return child;
  };
  const serve = (members: Message = {}, isRepeatable?: boolean): InMemoryExchange => {
    const exchange = new InMemoryExchange('tools/call', { name: 'read', ...members });
    dispatcher.serve(exchange, { edits: [], isRepeatable });
    return exchange;
  };
  return { clock, dispatcher, start, serve };
}
