// The tests of the SDK's suite that fail through Trunkline, and why. A test with `exceedsSdk` is one that the SDK itself
// does not pass: the suite expects it to fail, and it passes. One with `mayPass` fails in most runs.
const STOPPED_CLOCK = 'The test stops the clock of its process, so that nothing of another process arrives in time';
const UNKNOWN_ANSWER =
  'An answer that belongs to no request does not reach the server: its id could be that of another request there';
const RISING_PROGRESS = 'Progress that does not increase is left out, as the revision requires';
const LATE_PROGRESS = 'Progress after the answer is left out, as the revision requires';
const RESPONSE_MODE = 'Trunkline decides itself whether an answer is one JSON text or a stream';
const LOG_LEVEL = 'The request names no log level, and then the revision forbids log messages';
const STATE = 'The state that the client keeps is marked, so that it comes back to the process which made it';

const LEGACY = 'streamableHttp 2025-11-25';
const MODERN = 'entryModern 2026-07-28';

/** By the era of client and server. */
export const DIFFERENCES = {
  legacy: new Map([
    [`protocol:timeout:max-total [${LEGACY}] verifies`, { reason: STOPPED_CLOCK, mayPass: true }],
    [`protocol:timeout:reset-on-progress [${LEGACY}] verifies`, { reason: STOPPED_CLOCK, mayPass: true }],
    [`mcpserver:onerror:reach-through [${LEGACY}] via mcpServer.server`, { reason: UNKNOWN_ANSWER }],
    [`mcpserver:onerror:reach-through [${LEGACY}] raw Server`, { reason: UNKNOWN_ANSWER }],
    [`protocol:progress:monotonic [${LEGACY}] verifies`, { reason: RISING_PROGRESS, exceedsSdk: true }],
    [`protocol:progress:stops-after-completion [${LEGACY}] verifies`, { reason: LATE_PROGRESS, exceedsSdk: true }],
    [
      `typescript:mcpserver:tool:extra [${LEGACY}] verifies`,
      { reason: 'The test wants the id of the HTTP session in the server, which has stdio' },
    ],
  ]),
  modern: new Map([
    [`protocol:timeout:max-total [${MODERN}] verifies`, { reason: STOPPED_CLOCK, mayPass: true }],
    [`protocol:timeout:reset-on-progress [${MODERN}] verifies`, { reason: STOPPED_CLOCK, mayPass: true }],
    [`protocol:progress:monotonic [${MODERN}] verifies`, { reason: RISING_PROGRESS, exceedsSdk: true }],
    [`tools:call:logging-mid-execution [${MODERN}] verifies`, { reason: LOG_LEVEL }],
    [`typescript:hosting:entry:modern-lazy-sse-upgrade [${MODERN}] verifies`, { reason: LOG_LEVEL }],
    [`typescript:hosting:entry:modern-response-mode [${MODERN}] verifies`, { reason: RESPONSE_MODE }],
    [
      `protocol:fallback-notification-handler [${MODERN}] verifies`,
      { reason: 'The client has no subscription, and then the revision forbids to tell it that a list has changed' },
    ],
    [`typescript:mrtr:tools-call:write-once-roundtrip [${MODERN}] verifies`, { reason: STATE }],
    [`typescript:mrtr:rounds-cap [${MODERN}] verifies`, { reason: STATE }],
    [
      `typescript:hosting:entry:strict-rejects-legacy [${MODERN}] verifies`,
      { reason: 'The server refuses clients of the legacy era, and Trunkline translates for them' },
    ],
    [
      `typescript:hosting:entry:method-405 [${MODERN}] verifies`,
      { reason: 'A refused HTTP method has the code -32600 with status 405; the revision names no code' },
    ],
    [
      `sep-2243:std-header:mismatch-rejected [${MODERN}] verifies`,
      { reason: 'Two headers are wrong, and the error names the other one' },
    ],
  ]),
};
