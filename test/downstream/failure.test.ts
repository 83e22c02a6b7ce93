import { describe, expect, it } from 'vitest';
import {
  describeFailure,
  type Failure,
  type FailureReason,
  failureError,
  failureResult,
  REASONS,
} from '../../src/downstream/failure.js';

const WORDED = Object.keys(REASONS).filter(
  (reason) => !['not_approved', 'denied', 'intercepted'].includes(reason),
) as FailureReason[];

function failure(members: Partial<Failure> = {}): Failure {
  return { reason: 'timeout', server: 'files', generation: 3, sent: true, retryAfterMs: undefined, ...members };
}

/** The tool result as a value. */
function resultOf(failed: Failure) {
  return JSON.parse(Buffer.from(failureResult(failed)).toString());
}

describe('a failure', () => {
  it('is a tool result for the model, with the facts for programs', () => {
    expect(resultOf(failure({ retryAfterMs: 1_500 }))).toEqual({
      content: [{ type: 'text', text: describeFailure(failure({ retryAfterMs: 1_500 })) }],
      isError: true,
      _meta: {
        'trunkline/failure': {
          reason: 'timeout',
          code: 'TL-CALL-TIMEOUT',
          server: 'files',
          generation: 3,
          sent: true,
          outcome: 'unknown',
          retryAfterMs: 1_500,
        },
      },
    });
  });

  it('is a JSON-RPC error with the same facts', () => {
    const error = failureError(failure({ reason: 'queue_full', sent: false, generation: undefined }));
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: -32603,
      message: expect.stringContaining('Server "files" has too many calls waiting'),
      data: { reason: 'queue_full', code: 'TL-CALL-QUEUE-FULL', server: 'files', sent: false, outcome: 'not_sent' },
    });
  });

  it('names the whole gateway when the queues of all servers are full, under the same reason', () => {
    const { content, _meta } = resultOf(failure({ reason: 'all_queues_full', sent: false }));
    expect(_meta['trunkline/failure']).toMatchObject({ reason: 'queue_full', outcome: 'not_sent' });
    expect(content[0].text).toContain('Trunkline as a whole has too many calls waiting');
  });

  it.each([
    ['timeout', true, 'unknown'],
    ['child_exited', true, 'unknown'],
    ['stopped', true, 'unknown'],
    ['response_too_large', true, 'failed'],
    ['response_dropped', true, 'failed'],
    ['response_malformed', true, 'failed'],
    ['overloaded', false, 'not_sent'],
    ['stopped', false, 'not_sent'],
    ['parked', false, 'not_sent'],
  ] as const)('says for %s (sent: %s) that the outcome is %s', (reason, sent, outcome) => {
    const facts = resultOf(failure({ reason, sent }))._meta['trunkline/failure'];
    expect(facts).toMatchObject({ reason, sent, outcome });
  });
});

describe('the words of a failure', () => {
  it.each(WORDED)('for %s name the server, the consequence and where to look', (reason) => {
    const unsent = describeFailure(failure({ reason, sent: false }));
    expect(unsent).toMatch(/^Server "files" [a-z].*\. The call was not sent, so repeating it is safe\. The tool trunk/);
    expect(unsent).toContain('trunkline__status');
    const sent = describeFailure(failure({ reason, sent: true }));
    expect(sent).toContain('unknown: check before repeating');
    expect(sent).not.toContain('safe');
  });

  it.each([
    [0, '1 s'],
    [1, '1 s'],
    [1_000, '1 s'],
    [1_001, '2 s'],
    [30_000, '30 s'],
  ])('say when to try again, in whole seconds: %i ms is %s', (retryAfterMs, text) => {
    const words = describeFailure(failure({ reason: 'restarting', sent: false, retryAfterMs }));
    expect(words).toContain(`Try again in ${text}.`);
  });

  it('have whole milliseconds beside them', () => {
    const facts = resultOf(failure({ reason: 'restarting', sent: false, retryAfterMs: 460.5 }))._meta[
      'trunkline/failure'
    ];
    expect(facts).toMatchObject({ retryAfterMs: 461 });
  });

  it('quote what the output of the server says about the cause', () => {
    const words = describeFailure(
      failure({ reason: 'parked', sent: false, cause: 'Its output says: "Error: no key".' }),
    );
    expect(words).toContain('less often. Its output says: "Error: no key". The call was not sent');
  });

  it.each([
    ['child_exited', true, 'was ended during this call, because it went mad. Trunkline restarts it, unless'],
    ['restarting', false, 'is being restarted, because it went mad. The call was not sent'],
    ['misconfigured', false, 'cannot run: it went mad. The call was not sent'],
    ['parked', false, 'less often. It was ended the last time because it went mad. The call was not sent'],
  ] as const)('say for %s what the server did, if it was ended for that', (reason, sent, words) => {
    const failed = failure({ reason, sent, because: 'it went mad' });
    expect(describeFailure(failed)).toContain(words);
    expect(resultOf(failed)._meta['trunkline/failure']).toMatchObject({ because: 'it went mad' });
  });

  it.each([
    ['restarting', 'has no connection at the moment, because it went mad. Trunkline connects again. The call was not'],
    ['parked', 'parked, because it went mad. Trunkline now connects to it less often. The call was not sent'],
    [
      'connection_lost',
      'lost its connection during this call, because it went mad. Trunkline connects again. The call',
    ],
    ['unresponsive', 'has stopped answering, because it went mad. Trunkline probes it, and connects again if'],
  ] as const)('speak of the connection of a server behind a URL for %s', (reason, words) => {
    expect(describeFailure(failure({ reason, sent: false, because: 'it went mad', isRemote: true }))).toContain(words);
  });

  it('speak of no process at a server behind a URL, whatever the reason', () => {
    for (const reason of Object.keys(REASONS) as FailureReason[]) {
      if (['not_installed', 'not_approved', 'child_exited'].includes(reason)) continue;
      const text = describeFailure(failure({ reason, isRemote: true, detail: '' }));
      expect(text).not.toMatch(/process|exited|restart|input/i);
    }
  });

  it('do not invite to try again what may have happened already', () => {
    expect(describeFailure(failure({ retryAfterMs: 1_000 }))).not.toContain('Try again');
  });
});
