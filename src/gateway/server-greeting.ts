import { valuesAt } from '../jsonrpc/json-path.js';
import { toBytes } from '../jsonrpc/json-text.js';
import { whole } from '../jsonrpc/message.js';
import { splice } from '../jsonrpc/splice.js';
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

/** The result of `initialize` as it was, but for the revision. */
export function inRevision(result: Uint8Array, revision: string): Uint8Array {
  const { span } = whole(result);
  const text = toBytes(JSON.stringify(revision));
  const edits = valuesAt(result, span, ['protocolVersion']).map((value) => ({ span: value, text }));
  return splice({ bytes: result, span, edits });
}
