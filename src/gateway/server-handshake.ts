import type { ServerHandshake } from '../downstream/port.js';
import type { Backend } from './registry/backend.js';

/**
 * The initialize result of a backend's process as soon as the process has sent it; or why there is none within `waitMs`
 * milliseconds.
 */
export async function serverHandshake(backend: Backend, waitMs: number): Promise<ServerHandshake> {
  const reason = await backend.untilOpen(waitMs);
  const { openConnection: connection } = backend;
  if (connection !== undefined) {
    const { initializeResult: result, revision, requestedRevision } = connection;
    return { kind: 'initialized', result, revision, requestedRevision };
  }
  const failure = {
    reason: reason ?? 'restarting',
    server: backend.key,
    generation: undefined,
    sent: false,
    retryAfterMs: undefined,
  } as const;
  return { kind: 'failed', failure };
}
