import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { exitOfError, isUnlisted, printResult } from '../../../../src/cli/commands/calls/one-call.js';
import { setQuiet } from '../../../../src/cli/output.js';
import { type Failure, failureError, failureResult } from '../../../../src/downstream/failure.js';
import { RPC_CODES, RpcError } from '../../../../src/wire/jsonrpc/message.js';
import { bytesOf } from '../../../support/wire.js';

let stdout: string;
let stderr: string;
beforeEach(() => {
  stdout = '';
  stderr = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text;
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  setQuiet(false);
});

function failed(reason: Failure['reason'], sent: boolean): Failure {
  return { reason, server: 'a', generation: 1, sent, retryAfterMs: undefined, detail: 'says no.' };
}

const text = (value: string) => ({ type: 'text', text: value });
const resultOf = (result: object) => bytesOf(JSON.stringify(result));

describe('the exit code of a call', () => {
  it.each<[Failure['reason'], boolean, number]>([
    ['denied', false, 5],
    ['intercepted', false, 5],
    ['intercepted', true, 10],
    ['not_approved', false, 6],
    ['login_required', false, 7],
    ['login_required', true, 7],
    ['parked', false, 8],
    ['queue_timeout', false, 8],
    ['breaker_open', false, 8],
    ['connection_lost', false, 8],
    ['timeout', true, 9],
    ['child_exited', true, 10],
    ['connection_lost', true, 10],
    ['response_too_large', true, 10],
  ])('tells the failure %s (sent: %s) as %i, in a result and in an error', (reason, sent, code) => {
    expect(printResult(failureResult(failed(reason, sent)), false)).toBe(code);
    expect(exitOfError(failureError(failed(reason, sent)))).toBe(code);
    expect(stdout).toBe('');
  });

  it.each<[string, RpcError, number]>([
    ['an unknown tool', new RpcError(RPC_CODES.invalidParams, 'Unknown tool: x'), 4],
    ['arguments that are refused', new RpcError(RPC_CODES.invalidParams, 'no'), 2],
    ['any other error of the server', new RpcError(RPC_CODES.internalError, 'no', { outcome: 'not_sent' }), 1],
    [
      'a hub that has ended',
      new RpcError(RPC_CODES.internalError, 'no', { reason: 'hub_exited', outcome: 'unknown' }),
      10,
    ],
  ])('tells %s', (_, error, code) => {
    expect(exitOfError(error)).toBe(code);
  });

  it.each(['it broke', 'MCP error -32602: not sent'])('of a tool that fails with %j is 1', (message) => {
    expect(printResult(resultOf({ isError: true, content: [text(message)] }), false)).toBe(1);
    expect(stderr).toBe(`${message}\n`);
  });

  it('depends on the tools that the server lists, for a name that may be wrong', () => {
    const listed = ['a__read', 'a__write', 'b__x'];
    expect(['a__raed', 'a__zzzzzz', 'a__read', 'c__x'].map((name) => isUnlisted(name, listed))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(stderr).toBe('  did you mean `a__read`?\n  `trunkline find WORDS` searches the tools\n');
  });
});

describe('a result with --quiet', () => {
  beforeEach(() => setQuiet(true));

  it('is its text alone, and stderr names what is missing', () => {
    const resource = { type: 'resource', resource: { uri: 'x://1', text: 'of a resource' } };
    const image = { type: 'image', data: 'AA==', mimeType: 'image/png' };
    expect(printResult(resultOf({ content: [text('one\n'), image, resource] }), false)).toBe(0);
    expect(stdout).toBe('one\nof a resource\n');
    expect(stderr).toBe('trunkline: the result also has image; `--json` prints them\n');
  });

  it('is the structured content if there is no text', () => {
    printResult(resultOf({ content: [], structuredContent: { a: 1 } }), false);
    expect([stdout, stderr]).toEqual(['{"a":1}\n', '']);
  });
});
