import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, type Writable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { watchReader } from '../../../src/io/streams/watch-reader.js';

const running: ChildProcessWithoutNullStreams[] = [];

afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});

/** A Node program, and the watched pipe to its stdin. */
function program(code: string): { readonly child: ChildProcessWithoutNullStreams; readonly stdin: Writable } {
  const child = spawn(process.execPath, ['-e', code]);
  running.push(child);
  return { child, stdin: watchReader(child.stdin) };
}

const LIVE_ON = 'setInterval(() => {}, 1000);';

describe('a pipe to the stdin of a process', () => {
  it('fails when the process closes it, although nothing is written', async () => {
    const { stdin } = program(`require('fs').closeSync(0); ${LIVE_ON}`);
    const [error] = await once(stdin, 'error');
    expect(error).toMatchObject({ code: 'EPIPE' });
    expect(stdin.destroyed).toBe(true);
  });

  it('fails when the process closes it and has left something unread', async () => {
    const { child, stdin } = program(`process.stdout.write('up'); setTimeout(() => {}, 1e6);`);
    await once(child.stdout, 'data');
    stdin.write('nobody reads this');
    child.kill('SIGKILL');
    const [error] = await once(stdin, 'error');
    expect(['EPIPE', 'ECONNRESET']).toContain(error.code);
  });

  it('works on when the process ends only its own side', async () => {
    const { child, stdin } = program(`
      const socket = new (require('net').Socket)({ fd: 0, allowHalfOpen: true });
      socket.on('data', (data) => process.stdout.write('got ' + data));
      socket.end();
    `);
    const errors: unknown[] = [];
    stdin.on('error', (error) => errors.push(error));
    await once(stdin, 'end');
    stdin.write('hello');
    const [data] = await once(child.stdout, 'data');
    expect(String(data)).toBe('got hello');
    expect(errors).toEqual([]);
  });

  it('ends for the process when it is ended, and is closed both ways then', async () => {
    const { child, stdin } = program(`process.stdin.resume().on('end', () => process.stdout.write('bye'));`);
    stdin.end('last words');
    await once(stdin, 'close');
    const [data] = await once(child.stdout, 'data');
    expect(String(data)).toBe('bye');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('is the given stream if that is no pipe', () => {
    const stream = new PassThrough();
    expect(watchReader(stream)).toBe(stream);
  });
});
