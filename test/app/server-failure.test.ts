import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { causeOfFailure, type Failed, StateLog, whyDown } from '../../src/app/server-failure.js';
import { createRedactor } from '../../src/host/observe/redact.js';
import { initialState, toSnapshot } from '../../src/servers/supervision/transition.js';
import { sampleSpec } from '../servers/supervision/sample-spec.js';

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
      expect(whyDown(failed({ state, consecutiveFailures: 0 }))).toEqual({});
    },
  );

  it('is one printable sentence of bounded length in the answer to a call', () => {
    const { cause } = whyDown(failed({ state: 'parked' }));
    expect(cause).toBe('Its output says: "Error: the key [redacted] expired / fatal: no\\u{7} key".');
    const long = whyDown(failed({ state: 'parked' }, [`Error: ${'x'.repeat(490)}`]));
    expect(long.cause).toBe(`Its output says: "Error: ${'x'.repeat(393)}…".`);
  });
});

describe('the reason for which a server behind a URL has no connection', () => {
  it.each([
    ['server/discover: it answered HTTP 500', 'it answered HTTP 500'],
    ['initialize: timeout', 'it did not answer the handshake in time'],
    ['start-timeout', 'it did not answer the handshake in time'],
    ['exited', 'its connection ended'],
    [`it repeats ${SECRET}`, 'it repeats [redacted]'],
  ])('%s, is a clause about it', (reason, because) => {
    const lastFailure = { reason, code: null, signal: null, at: 0 };
    expect(whyDown(failed({ state: 'parked', lastFailure }), true)).toEqual({ because });
  });

  it('tells a server in trouble from one that cannot be reached', () => {
    const lastFailure = { reason: 'it answered HTTP 500', code: null, signal: null, at: 0, fault: 'trouble' as const };
    const because = lastFailure.reason;
    expect(whyDown(failed({ state: 'offline', lastFailure }), true)).toEqual({ because, reason: 'unavailable' });
  });
});

describe('an answer to initialize that cannot be used', () => {
  const reason = 'initialize: the server chose protocol version "canary-0123456789\u0007", which is unknown here';
  const lastFailure = { reason, code: null, signal: null, at: 0 };
  const text =
    'Its last start failed: initialize: the server chose protocol version "[redacted]\\u{7}", which is unknown here.';

  it('may be one to the question about its era', () => {
    const refused = { ...lastFailure, reason: 'server/discover: the server answered with an error' };
    expect(whyDown(failed({ state: 'parked', lastFailure: refused }, [])).cause).toContain('server/discover');
  });

  it.each(['backoff', 'parked'] as const)('is the cause of a failed call in %s if the output names none', (state) => {
    expect(whyDown(failed({ state, lastFailure }, [])).cause).toBe(text);
    expect(whyDown(failed({ state, lastFailure })).cause).toContain('Its output says');
  });

  it('is no cause while the server runs, and no other reason is one', () => {
    expect(whyDown(failed({ state: 'ready', lastFailure }, [])).cause).toBeUndefined();
    const exited = { ...lastFailure, reason: 'exited' };
    expect(whyDown(failed({ state: 'parked', lastFailure: exited }, [])).cause).toBeUndefined();
  });
});

describe('why a server is down', () => {
  const failure = { reason: 'it went mad', code: null, signal: null, at: 0 };

  it('is what the server did, if it was ended for that', () => {
    const lastFailure = { ...failure, isUnfit: true };
    const output = ['Trunkline restarts this server: it went mad'];
    expect(whyDown(failed({ state: 'backoff', lastFailure }, output))).toEqual({ because: 'it went mad' });
  });

  it('is in the output alone, if the server failed by itself: that reason may have words of the server', () => {
    expect(whyDown(failed({ state: 'backoff', lastFailure: failure }, []))).toEqual({});
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

  it('F231: has one line for all attempts to reach a server behind a URL, with the reason', () => {
    const { records, log } = logging();
    const lastFailure = { reason: 'there is no network to it', code: null, signal: null, at: 0 };
    for (const state of [
      'starting',
      'offline',
      'starting',
      'offline',
      'starting',
      'ready',
      'offline',
      'blocked',
    ] as const)
      log.changed('a', failed({ state, lastFailure }, []));
    expect(records).toMatchObject([
      { msg: 'server starting' },
      { level: 40, msg: 'server offline', reason: 'there is no network to it' },
      { msg: 'server ready' },
      { level: 40, msg: 'server offline' },
      { level: 40, msg: 'server blocked' },
    ]);
  });

  it('has a failure, too, if the next start follows at once on the end of the process', () => {
    const { records, log } = logging();
    const lastFailure = { reason: 'it went mad', code: null, signal: null, at: 0 };
    const changes = { state: 'backoff', consecutiveFailures: 1, lastFailure } as const;
    log.changed('a', failed({ state: 'ready', generation: 1, pid: 7 }));
    log.changed('a', failed({ ...changes, generation: 1, pid: 7 }, []));
    log.changed('a', failed({ ...changes, state: 'starting', generation: 2 }, ['Error: no key']));
    log.changed('a', failed({ ...changes, state: 'starting', generation: 2, pid: 8 }));
    expect(records).toMatchObject([
      { msg: 'server ready' },
      { level: 40, msg: 'server backoff', generation: 1, reason: 'it went mad', cause: ['Error: no key'] },
      { msg: 'server starting', generation: 2 },
    ]);
  });
});
