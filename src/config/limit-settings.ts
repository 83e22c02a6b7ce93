import * as z from 'zod/mini';
import { bytes, count, described, expects } from './fields.js';

/** Limits of what the processes of a server use. There are none by default. */
export const limitSettings = z.exactPartial(
  z.strictObject(
    {
      memory: bytes(undefined, 'Most memory that the processes of the server may use together.', {
        min: '1MiB',
        max: '4096GiB',
      }),
      processes: count(undefined, 'Most processes that the server may run at once.', { min: 1, max: 65_536 }),
    },
    expects('a map with `memory` or `processes`'),
  ),
);

export const limits = described(
  limitSettings,
  'Limits of what the processes of the server use. The server is restarted when it exceeds a limit at two checks in a row, 5s apart; this counts as a failure. Without limits, nothing is checked.',
);
