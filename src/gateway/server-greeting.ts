import { valuesAt } from '../jsonrpc/json-path.js';
import { toBytes } from '../jsonrpc/json-text.js';
import { whole } from '../jsonrpc/message.js';
import { splice } from '../jsonrpc/splice.js';
import type { Backend } from './backend.js';
import type { ServerGreeting } from './gateway-port.js';

/** How the process behind a backend greeted us, once there is one; or why there is none within `waitMs`. */
export async function greetingOf(backend: Backend, waitMs: number): Promise<ServerGreeting> {
  const absence = await backend.untilAttached(waitMs);
  const { connection } = backend.delivery;
  if (connection !== undefined) {
    return { kind: 'greeted', result: connection.greeting, revision: connection.revision };
  }
  const failure = {
    reason: absence ?? 'restarting',
    server: backend.key,
    generation: undefined,
    sent: false,
    retryAfterMs: undefined,
  } as const;
  return { kind: 'failed', failure };
}

/** The result of `initialize` as it was, but for the revision. */
export function inRevision(result: Uint8Array, revision: string): Uint8Array {
  const { span } = whole(result);
  const text = toBytes(JSON.stringify(revision));
  const edits = valuesAt(result, span, ['protocolVersion']).map((value) => ({ span: value, text }));
  return splice({ bytes: result, span, edits });
}
