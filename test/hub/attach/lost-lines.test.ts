import { describe, expect, it } from 'vitest';
import { fateOf } from '../../../src/hub/attach/lost-lines.js';

function fate(message: unknown, isCut = false) {
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  const half = Math.floor(text.length / 2);
  const pieces = [Buffer.from(text.slice(0, half)), Buffer.from(text.slice(half))];
  const found = fateOf({ pieces, isCut, isReplay: false });
  return found.kind === 'answered' ? JSON.parse(found.answer) : found.kind;
}

const FAILURE = { reason: 'hub_exited', code: 'TL-CALL-HUB-EXITED', sent: true, outcome: 'unknown' };
const call = (id: unknown, params: object = { name: 'x' }) => ({ jsonrpc: '2.0', id, method: 'tools/call', params });

describe('a line whose hub has died', () => {
  it.each([
    'initialize',
    'ping',
    'tools/list',
    'prompts/get',
    'resources/read',
    'logging/setLevel',
    'tasks/get',
    'subscriptions/listen',
  ])('is sent again if it is a request that may be served twice: %s', (method) => {
    expect(fate({ jsonrpc: '2.0', id: 1, method })).toBe('again');
  });

  it('is answered with a tool result if it is a call, under the id as the client wrote it', () => {
    const _meta = { 'trunkline/failure': FAILURE };
    expect(fate(call('a'))).toMatchObject({ jsonrpc: '2.0', id: 'a', result: { isError: true, _meta } });
    const large = fateOf({
      pieces: [Buffer.from('{"method":"tools/call","id":9007199254740993,"params":{}}')],
      isCut: false,
      isReplay: false,
    });
    expect(large).toMatchObject({ kind: 'answered', answer: expect.stringContaining('"id":9007199254740993,') });
  });

  it('is answered with an error if it was to become a task, or is any other request', () => {
    const error = { code: -32603, data: FAILURE };
    expect(fate(call(1, { name: 'x', task: {} }))).toMatchObject({ id: 1, error });
    expect(fate({ jsonrpc: '2.0', id: 2, method: 'tasks/cancel' })).toMatchObject({ id: 2, error });
    expect(fate('{"jsonrpc":"2.0","id":3,', true)).toMatchObject({ id: null, error });
  });

  it('is dropped if it is an answer or a notification, except for the end of the handshake', () => {
    expect(fate({ jsonrpc: '2.0', id: 1, result: {} })).toBe('dropped');
    expect(fate({ jsonrpc: '2.0', method: 'notifications/cancelled' })).toBe('dropped');
    expect(fate({ jsonrpc: '2.0', method: 'notifications/initialized' })).toBe('again');
  });

  it('is a batch as a whole: sent again if all of it may be, else answered in one array', () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const note = { jsonrpc: '2.0', method: 'notifications/x' };
    expect(fate([list, note])).toBe('again');
    expect(fate([note])).toBe('dropped');
    expect(fate([list, call(2), note])).toMatchObject([
      { id: 1, error: {} },
      { id: 2, result: { isError: true } },
    ]);
  });

  it('is sent again if it is no JSON, since the next hub says what is wrong with it', () => {
    expect(fate('{"half')).toBe('again');
  });
});
