import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { causeInOneLine, causeOfFailure, type Failed, StateLog } from '../../src/app/failures.js';
import { createRedactor } from '../../src/observe/redact.js';
import { initialState, toSnapshot } from '../../src/supervision/child-state.js';
import { sampleSpec } from '../supervision/sample-spec.js';

const SECRET = 'canary-0123456789';
const OUTPUT = [
  'starting',
  `Error: the key \u001b[31mcanary-\u001b[0m0123456789 expired`,
  '    at main (x.js:1:1)',
  'fatal: no\u0007 key',
];

function failed(changes: Partial<Failed['snapshot']>, output: readonly string[] = OUTPUT): Failed {
  const snapshot = { ...toSnapshot({ spec: sampleSpec(), state: initialState(), launched: undefined }), ...changes };
  const log = { linesOf: (attempt: string) => (attempt === 'latest' ? output : ['Error: of the attempt before']) };
  return { snapshot, log, redact: createRedactor([{ env: { KEY: SECRET }, args: [] }]) };
}

describe('the cause of a failure', () => {
  it('is in the output of the latest attempt, without secrets that its colors hid', () => {
    const cause = ['Error: the key [redacted] expired', 'fatal: no\u0007 key'];
    expect(causeOfFailure(failed({ state: 'backoff' }))).toEqual(cause);
    expect(causeOfFailure(failed({ state: 'parked' }))).toEqual(cause);
  });

  it('is in the output of the attempt before while the server is started again', () => {
    const retried = failed({ state: 'starting', consecutiveFailures: 1 });
    expect(causeOfFailure(retried)).toEqual(['Error: of the attempt before']);
  });

  it.each(['starting', 'ready', 'suspect', 'stopping', 'idle', 'stopped', 'installing'] as const)(
    'is unknown for a server that is %s and has not failed',
    (state) => {
      expect(causeOfFailure(failed({ state, consecutiveFailures: 0 }))).toEqual([]);
      expect(causeInOneLine(failed({ state, consecutiveFailures: 0 }))).toBeUndefined();
    },
  );

  it('is one printable line of bounded length in the answer to a call', () => {
    expect(causeInOneLine(failed({ state: 'parked' }))).toBe('Error: the key [redacted] expired / fatal: no\\u{7} key');
    const long = causeInOneLine(failed({ state: 'parked' }, [`Error: ${'x'.repeat(490)}`]));
    expect(long).toBe(`Error: ${'x'.repeat(393)}…`);
  });
});

describe('the log of states', () => {
  function logging() {
    const records: object[] = [];
    const logger = pino({ base: {} }, { write: (line: string) => records.push(JSON.parse(line)) });
    return { records, log: new StateLog(logger) };
  }

  it('has each change once, and a failure when the last output is read', () => {
    const { records, log } = logging();
    log.changed('a', failed({ state: 'starting' }));
    log.changed('a', failed({ state: 'starting', pid: 7 }));
    log.changed('a', failed({ state: 'backoff', pid: 7 }, []));
    log.changed('a', failed({ state: 'backoff' }, ['Error: no key']));
    log.changed('a', failed({ state: 'suspect', pid: 8 }));
    expect(records).toMatchObject([
      { level: 30, msg: 'server starting', server: 'a' },
      { level: 40, msg: 'server backoff', cause: ['Error: no key'] },
      { level: 40, msg: 'server suspect', cause: [] },
    ]);
    log.forget('a');
    log.changed('a', failed({ state: 'suspect', pid: 8 }));
    expect(records).toHaveLength(4);
  });

  it('has a failure also if the next process starts as soon as the group of the failed one has ended', () => {
    const { records, log } = logging();
    log.changed('a', failed({ state: 'starting', pid: 7 }));
    log.changed('a', failed({ state: 'backoff', pid: 7 }, ['Error: no key']));
    log.changed('a', failed({ state: 'starting', generation: 2, consecutiveFailures: 1 }));
    log.changed('a', failed({ state: 'starting', generation: 2, consecutiveFailures: 1, pid: 8 }));
    expect(records).toMatchObject([
      { level: 30, msg: 'server starting' },
      { level: 40, msg: 'server backoff', pid: 7, cause: ['Error: no key'] },
      { level: 30, msg: 'server starting', generation: 2 },
    ]);
  });
});
