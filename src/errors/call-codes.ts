import type { CodeTable } from './code-entry.js';

/** Why a call fails that the server itself did not answer. The codes of its state are among those of servers. */
export const CALL_CODES = {
  'TL-CALL-NOT-APPROVED': {
    level: 'fail',
    means: 'The tool, as it is now, is not approved.',
    remedy: 'Review it: `trunkline approve SERVER`.',
  },
  'TL-CALL-QUEUE-FULL': {
    level: 'fail',
    means: 'Too many calls wait, for this server or in Trunkline as a whole.',
    remedy: 'Try again later, or raise `concurrency` or `maxQueued` of the server.',
  },
  'TL-CALL-QUEUE-TIMEOUT': {
    level: 'fail',
    means: 'The server was busy with other calls for too long.',
    remedy: 'Try again later, or raise `concurrency` or `maxWait` of the server.',
  },
  'TL-CALL-OVERLOADED': {
    level: 'fail',
    means: 'The server does not read its input, so no more messages can be sent to it.',
    remedy: 'Wait, or restart it: `trunkline restart SERVER`.',
  },
  'TL-CALL-TIMEOUT': {
    level: 'fail',
    means: 'The server did not answer the call in time.',
    remedy: 'Check whether the call took effect. If it needs more time, raise `timeout` of the server.',
  },
  'TL-CALL-EXITED': {
    level: 'fail',
    means: 'The server ended during the call.',
    remedy: 'Check whether the call took effect before you repeat it. The log of the server says why it ended.',
  },
  'TL-CALL-TOO-LARGE': {
    level: 'fail',
    means: 'The answer was larger than `maxFrame` of the server allows.',
    remedy: 'Ask for less, or raise `maxFrame`.',
  },
  'TL-CALL-DROPPED': {
    level: 'fail',
    means: 'The answer was dropped, because unfinished messages took all of `gateway.maxPartial`.',
    remedy: 'Ask for less at once, or raise `gateway.maxPartial`.',
  },
  'TL-CALL-UNFINISHED': {
    level: 'fail',
    means: 'The server began an answer and did not finish it within `gateway.lineTimeout`.',
    remedy: 'Check whether the call took effect. If the server is that slow, raise `gateway.lineTimeout`.',
  },
  'TL-CALL-MALFORMED': {
    level: 'fail',
    means: 'The answer of the server was not valid JSON-RPC, or its result was no object.',
    remedy: 'Report it to the author of the server.',
  },
  'TL-CALL-HUB-EXITED': {
    level: 'fail',
    means: 'The process that clients share ended during the call.',
    remedy: 'Check whether the call took effect before you repeat it. `trunkline logs` says why it ended.',
  },
  'TL-CALL-INTERNAL': {
    level: 'fail',
    means: 'Trunkline failed at the request because of a bug of its own.',
    remedy: 'Check whether the call took effect, and report the bug with the log: `trunkline logs`.',
  },
} as const satisfies CodeTable;
