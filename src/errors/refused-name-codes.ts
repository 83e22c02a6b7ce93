import type { CodeTable } from './code-entry.js';

/** Refused HTTP requests. The status tool needs these alone, so that a start does not load the table of all codes. */
export const REFUSED_NAME_CODES = {
  'TL-HTTP-HOST-REFUSED': {
    level: 'warn',
    means:
      'Trunkline over HTTP has refused requests, because it is not allowed to answer to the name in their Host header.',
    remedy:
      'If clients of yours use this name for Trunkline, allow it as they send it: `--allowed-host NAME`. Otherwise do nothing: a web page may have tried to reach Trunkline.',
  },
  'TL-HTTP-ORIGIN-REFUSED': {
    level: 'warn',
    means: 'Trunkline over HTTP has refused requests of web pages, because their Origin is not allowed.',
    remedy:
      'If you know this web page and want it to use your tools, allow it: `--allowed-origin ORIGIN`. Otherwise do nothing: Trunkline has kept it away.',
  },
} as const satisfies CodeTable;
