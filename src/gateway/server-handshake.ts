import type { ServerHandshake } from '../downstream/port.js';
import { valuesAt } from '../json/json-path.js';
import { toBytes } from '../json/json-text.js';
import { splice } from '../json/splice.js';
import { whole } from '../jsonrpc/message.js';
import type { Backend } from './registry/backend.js';

/** How the process behind a backend greeted us, once there is one; or why there is none within `waitMs`. */
export async function serverHandshake(backend: Backend, waitMs: number): Promise<ServerHandshake> {
  const absence = await backend.untilConnected(waitMs);
  const { connection } = backend.dispatcher;
  if (connection !== undefined) {
    return { kind: 'initialized', result: connection.initializeResult, revision: connection.revision };
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
