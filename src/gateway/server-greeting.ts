import type { Clock } from '../timing/clock.js';
import type { Backend } from './backend.js';
import type { FailureReason } from './failure.js';
import type { ServerGreeting } from './gateway-port.js';

/** How the process behind a backend greeted us, once there is one; or why there is none within `waitMs`. */
export function greetingOf(backend: Backend, clock: Clock, waitMs: number): Promise<ServerGreeting> {
  return new Promise((resolve) => {
    const fail = (reason: FailureReason) =>
      resolve({
        kind: 'failed',
        failure: { reason, server: backend.key, generation: undefined, sent: false, retryAfterMs: undefined },
      });
    let takeBack = () => {};
    const cancel = clock.schedule(waitMs, () => {
      takeBack();
      fail(backend.isStartSettled ? 'restarting' : 'starting');
    });
    takeBack = backend.whenAttached((absence) => {
      cancel();
      const { connection } = backend.delivery;
      if (connection === undefined) fail(absence ?? 'stopped');
      else resolve({ kind: 'greeted', result: connection.greeting, revision: connection.revision });
    });
  });
}
