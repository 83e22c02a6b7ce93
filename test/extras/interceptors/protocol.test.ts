import { describe, expect, it } from 'vitest';
import {
  inOrder,
  isHooked,
  MalformedAnswer,
  type Phase,
  readInterceptors,
  readVerdict,
} from '../../../src/extras/interceptors/protocol.js';

const described = (more: object = {}) => ({
  name: 'x',
  type: 'validation',
  hooks: [{ events: ['tools/call'], phase: 'request' }],
  ...more,
});
const one = (more: object = {}) => {
  const [interceptor] = readInterceptors({ interceptors: [described(more)] }).all;
  if (interceptor === undefined) throw new Error('It was left out');
  return interceptor;
};

describe('the list of interceptors', () => {
  it.each([
    ['a hook a phase, as the present text has it', {}, { request: true, response: false }],
    [
      'one hook, as the earlier text has it',
      { hooks: undefined, hook: { events: ['tools/call'], phase: 'both' } },
      { request: true, response: true },
    ],
    ['all events', { hooks: [{ events: ['*'], phase: 'response' }] }, { request: false, response: true }],
    ['all requests', { hooks: [{ events: ['*/request'], phase: 'both' }] }, { request: true, response: false }],
    ['a namespace', { hooks: [{ events: ['tools/*'], phase: 'request' }] }, { request: true, response: false }],
    [
      'other events',
      { hooks: [{ events: ['llm/completion', 'tools/list'], phase: 'both' }] },
      { request: false, response: false },
    ],
  ])('hooks %s', (_, more, expected) => {
    const asked = (phase: Phase) => isHooked(one(more), 'tools/call', phase);
    expect({ request: asked('request'), response: asked('response') }).toEqual(expected);
  });

  it.each([
    [undefined, false],
    ['active', false],
    ['enforce', false],
    ['something new', false],
    ['audit', true],
  ])('takes the mode %s for one that blocks, unless it is audit', (mode, isAudit) => {
    expect(one({ mode }).isAudit).toBe(isAudit);
  });

  it('leaves out types of other versions', () => {
    expect(readInterceptors({ interceptors: [described({ type: 'sink' })], nextCursor: 'c' })).toEqual({
      all: [],
      next: 'c',
    });
  });

  it.each([
    [null],
    [{}],
    [{ interceptors: {} }],
    [{ interceptors: [1] }],
    [{ interceptors: [described({ name: '' })] }],
    [{ interceptors: [described({ type: 7 })] }],
    [{ interceptors: [described({ hooks: undefined })] }],
    [{ interceptors: [described({ hooks: [{ events: 'tools/call', phase: 'request' }] })] }],
    [{ interceptors: [described({ hooks: [{ events: ['tools/call'], phase: 'later' }] })] }],
    [{ interceptors: Array.from({ length: 101 }, () => described()) }],
  ])('is refused as %j', (result) => {
    expect(() => readInterceptors(result)).toThrow(MalformedAnswer);
  });

  it('orders changes by the priority of the phase, then by name', () => {
    const all = [
      one({ name: 'c', priorityHint: { response: -5 } }),
      one({ name: 'b' }),
      one({ name: 'a', priorityHint: 3 }),
      one({ name: 'd', priorityHint: -1000 }),
      one({ name: 'e', priorityHint: Number.NaN }),
    ];
    const namesIn = (phase: Phase) => inOrder(all, phase).map(({ name }) => name);
    expect(namesIn('request')).toEqual(['d', 'b', 'c', 'e', 'a']);
    expect(namesIn('response')).toEqual(['d', 'c', 'b', 'e', 'a']);
  });
});

describe('an answer of an interceptor', () => {
  it.each([
    ['passes', { valid: true }, false, []],
    ['blocks without a severity', { valid: false }, true, ['it gives no reason']],
    [
      'blocks with an error',
      { valid: false, severity: 'error', messages: [{ path: 'arguments.a', message: 'no', severity: 'error' }] },
      true,
      ['no (arguments.a)'],
    ],
    ['only warns', { valid: false, severity: 'warn', messages: [{ message: 'hm', severity: 'warn' }] }, false, ['hm']],
    ['only informs', { valid: true, severity: 'info', messages: [{ message: 'so', severity: 'info' }] }, false, ['so']],
    [
      'has all members',
      { interceptor: 'x', type: 'validation', phase: 'request', valid: true, durationMs: 1, info: {}, suggestions: [] },
      false,
      [],
    ],
  ])('%s', (_, result, isBlocking, findings) => {
    expect(readVerdict(result, one(), 'request')).toEqual({ type: 'validation', isBlocking, findings });
  });

  it.each([
    [
      { interceptor: 'x', type: 'mutation', phase: 'response', modified: true, payload: { content: [] } },
      { content: [] },
    ],
    [{ modified: false, payload: { content: [] } }, undefined],
    [{ modified: false }, undefined],
  ])('changes a message: %j', (result, payload) => {
    expect(readVerdict(result, one({ type: 'mutation' }), 'response')).toEqual({ type: 'mutation', payload });
  });

  it.each([
    ['validation', 7],
    ['validation', { valid: 1 }],
    ['validation', { valid: false, severity: 'fatal' }],
    ['validation', { valid: true, messages: 'no' }],
    ['validation', { valid: true, messages: [{}] }],
    ['validation', { valid: true, interceptor: 'y' }],
    ['validation', { valid: true, phase: 'response' }],
    ['validation', { valid: true, type: 'mutation' }],
    ['mutation', { payload: {} }],
    ['mutation', { modified: true }],
    ['mutation', { modified: true, payload: [] }],
  ])('to a %s is refused as %j', (type, result) => {
    expect(() => readVerdict(result, one({ type }), 'request')).toThrow(MalformedAnswer);
  });
});
