import { describe, expect, it } from 'vitest';
import { RPC_CODES, RpcError } from '../../src/jsonrpc/rpc-error.js';

describe('RpcError', () => {
  it('becomes the error member of a response', () => {
    expect(JSON.stringify(new RpcError(RPC_CODES.invalidParams, 'Unknown tool: x'))).toBe(
      '{"code":-32602,"message":"Unknown tool: x"}',
    );
  });

  it.each([null, 0, '', false, { reason: 'timeout' }])('keeps the data %j, which only undefined is none of', (data) => {
    expect(JSON.parse(JSON.stringify(new RpcError(-32603, 'x', data)))).toEqual({ code: -32603, message: 'x', data });
  });

  it('is an error with a name of its own', () => {
    const error = new RpcError(-32603, 'broken');
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toBe('RpcError: broken');
  });
});
