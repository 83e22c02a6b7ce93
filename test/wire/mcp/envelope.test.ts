import { describe, expect, it } from 'vitest';
import { messagesOf } from '../../../src/wire/mcp/envelope.js';
import { bytesOf, scan } from '../../support/wire.js';

function read(line: string) {
  const batch = scan(bytesOf(line));
  if (batch.kind !== 'rejected') throw new Error(`A message: ${line}`);
  return messagesOf(batch, scan);
}

describe('the messages of a batch', () => {
  it('are read as if each had come alone', () => {
    const messages = read(
      '[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}, {"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2,"result":{}},{"id":3},4]',
    );
    expect(messages.map((message) => (message.kind === 'rejected' ? message.reason : message.kind))).toEqual([
      'request',
      'notification',
      'response',
      'not-json-rpc',
      'not-an-object',
    ]);
    const [call] = messages;
    const name = call?.kind === 'request' ? call.tokens.name : undefined;
    expect(Buffer.from(call?.bytes.subarray(name?.start, name?.end) ?? []).toString()).toBe('"x"');
  });

  it('are not looked for in an array among them', () => {
    const [inner] = read('[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]');
    if (inner?.kind !== 'rejected') throw new Error('A message');
    expect(inner.reason).toBe('batch');
    expect(messagesOf(inner, scan)).toEqual([]);
  });

  it('are at most 100', () => {
    expect(read(`[${Array(100).fill('{}').join(',')}]`)).toHaveLength(100);
    expect(read(`[${Array(101).fill('{}').join(',')}]`)).toEqual([]);
    expect(scan(bytesOf(`[${Array(101).fill('{}').join(',')}]`))).toMatchObject({ reason: 'batch-too-long' });
  });

  it('are none in a line that is no batch', () => {
    expect(read('{"jsonrpc":"2.0"}')).toEqual([]);
    expect(read('[]')).toEqual([]);
  });
});
