import * as z from 'zod/mini';
import { bytes, count, described, expects } from './fields.js';
import { LIMIT_SETTINGS } from './settings.js';

/** Limits of what the processes of a server use. There are none by default. */
const limitSettings = z.exactPartial(
  z.strictObject(
    {
      memory: bytes(LIMIT_SETTINGS.memory, 'Most memory that the processes of the server may use together.'),
      processes: count(LIMIT_SETTINGS.processes, 'Most processes that the server may run at once.'),
    },
    expects('a map with `memory` or `processes`'),
  ),
);

export const limits = described(
  limitSettings,
  'Limits of what the processes of the server use. The server is restarted when it exceeds a limit at two checks in a row, 5s apart; this counts as a failure. Without limits, nothing is checked.',
);
