import { afterEach, describe, expect, it, vi } from 'vitest';
import { readableLine, toText } from '../../../src/host/observe/log-line.js';
import { createLogger } from '../../../src/host/observe/logger.js';
import { createRedactor } from '../../../src/host/observe/redact.js';

const time = new Date(2026, 0, 2, 12, 0, 1).toISOString();

/** The text of a record of this time. */
function textOf(record: Record<string, unknown>): string {
  return toText({ level: 40, time, ...record });
}

describe('a record as text', () => {
  it('says when, how bad, which server, what, and why; then the facts', () => {
    expect(textOf({ server: 'files', msg: 'server parked', reason: 'it exited', restarts: 4, pid: undefined })).toBe(
      '12:00:01 warn  files: server parked: it exited (restarts 4)\n',
    );
    expect(textOf({ level: 30, msg: 'shutting down', cause: 'SIGINT' })).toBe(
      '12:00:01 info  shutting down (cause SIGINT)\n',
    );
  });

  it('leaves out what says nothing', () => {
    const record = {
      level: 30,
      added: ['a', 'b'],
      removed: [],
      isOther: true,
      isReordered: false,
      pid: null,
      state: 'x',
    };
    expect(textOf({ ...record, msg: 'applied the changed configuration' })).toBe(
      '12:00:01 info  applied the changed configuration (added a b, isOther)\n',
    );
  });

  it('puts the cause of a failure and the hint on lines of their own', () => {
    const cause = ['first', '{"level":50,"time":1,"msg":"no key"}'];
    expect(textOf({ server: 'a', msg: 'server backoff', reason: 'exited', cause })).toBe(
      `12:00:01 warn  a: server backoff: exited\n${' '.repeat(15)}| first\n${' '.repeat(15)}| error no key\n`,
    );
    expect(textOf({ level: 50, server: 'a', message: 'it is wrong', hint: 'put it right', line: 3, column: 4 })).toBe(
      `12:00:01 error a: it is wrong (line 3)\n${' '.repeat(15)}put it right\n`,
    );
    expect(textOf({ level: 20, server: 'a', line: 'hello', msg: 'output' })).toBe('12:00:01 debug a: output: hello\n');
  });

  it('shows the stack of an internal error, and of another error the message alone', () => {
    const err = { type: 'Error', message: 'EACCES', stack: 'Error: EACCES\n    at x' };
    expect(textOf({ msg: 'cannot be written', err })).toBe('12:00:01 warn  cannot be written: EACCES\n');
    expect(textOf({ msg: 'cannot be written', err: { ...err, hint: 'make room' } })).toBe(
      `12:00:01 warn  cannot be written: EACCES\n${' '.repeat(15)}make room\n`,
    );
    expect(textOf({ level: 50, msg: 'internal error', err })).toMatch(
      /internal error: EACCES\n +Error: EACCES\n +at x\n$/,
    );
  });

  it('cannot fool a terminal', () => {
    const text = textOf({ server: 'a', msg: 'x\u001b[2J', cause: ['\u202e'] });
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

describe('a line of a log', () => {
  it.each([
    [
      '{"level":40,"time":"x","server":"files","reason":"exited","msg":"server parked"}',
      'warn files: server parked: exited',
    ],
    ['{"level":"error","message":"no API key","timestamp":"x"}', 'error no API key'],
    ['{"level":30,"msg":"a\\nb"}', 'info a\\u{a}b'],
    ['{"code":1}', '{"code":1}'],
    ['{broken', '{broken'],
    ['plain', 'plain'],
  ])('%s is shown as %s', (line, shown) => {
    expect(readableLine(line)).toBe(shown);
  });
});

describe('the log on stderr', () => {
  const { isTTY } = process.stderr;
  afterEach(() => {
    vi.restoreAllMocks();
    process.stderr.isTTY = isTTY;
  });

  function written(isTerminal: boolean): string {
    let text = '';
    process.stderr.isTTY = isTerminal;
    vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
      text += chunk;
      return true;
    });
    const redact = createRedactor([{ env: { API_KEY: 'canary1234' }, args: [] }]);
    createLogger({ verbosity: 0, redact }).warn({ server: 'a', reason: 'used canary1234' }, 'server backoff');
    return text;
  }

  it('is text on a terminal, without secrets', () => {
    expect(written(true)).toMatch(/^\d\d:\d\d:\d\d warn {2}a: server backoff: used \[redacted\]\n$/);
  });

  it('is JSON for a program', () => {
    expect(JSON.parse(written(false))).toMatchObject({ level: 40, server: 'a', msg: 'server backoff' });
  });
});
