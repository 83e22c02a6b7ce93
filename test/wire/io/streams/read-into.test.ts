import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import type { ByteReader } from '../../../../src/wire/io/byte-reader.js';
import { readInto, stopReading, watchReader, withoutBlocking } from '../../../../src/wire/io/streams/read-into.js';
import { IS_WINDOWS } from '../../../support/platform.js';
import { until } from '../../../support/processes.js';

const running: { kill(signal: 'SIGKILL'): unknown }[] = [];

afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});

/** A Node program whose stdout is to be read. */
function program(code: string) {
  const child = spawn(process.execPath, ['-e', code], { stdio: ['pipe', 'pipe', 'inherit'] });
  running.push(child);
  return child;
}

/** Has one piece of memory only, so a read into other memory is noticed. */
function reader(roomBytes = 1000) {
  const memory = Buffer.alloc(roomBytes);
  const pieces: Buffer[] = [];
  const self: ByteReader & { text(): string; readonly sizes: () => number[] } = {
    freeSpace: memory,
    whenMoved: () => {},
    filled: (byteLength) => void pieces.push(Buffer.from(memory.subarray(0, byteLength))),
    text: () => Buffer.concat(pieces).toString(),
    sizes: () => pieces.map((piece) => piece.length),
  };
  return self;
}

describe('the output of a process', () => {
  it("goes into the reader's free space, all and in order, and then it ends", async () => {
    const child = program(`for (let i = 0; i < 20_000; i += 1) process.stdout.write(i + ' ')`);
    const into = reader();
    const stream = readInto(child.stdout, into);
    await once(stream, 'close');
    expect(into.text()).toBe(Array.from({ length: 20_000 }, (_, index) => `${index} `).join(''));
    expect(Math.max(...into.sizes())).toBeLessThanOrEqual(1000);
  });

  it('goes into other memory once the reader has moved, although the next read was prepared before', async () => {
    const child = program(`process.stdout.write('first'); process.stdin.once('data', () => {
      process.stdout.write('second'); process.stdin.pause(); });`);
    let memory = Buffer.allocUnsafeSlow(1_000);
    let moved = () => {};
    let text = '';
    const into: ByteReader = {
      get freeSpace() {
        return memory;
      },
      whenMoved: (listener) => {
        moved = listener;
      },
      filled: (byteLength) => {
        text += memory.toString('latin1', 0, byteLength);
      },
    };
    const stream = readInto(child.stdout, into);
    await until('the first word', () => text === 'first');
    const { buffer } = memory;
    memory = Buffer.allocUnsafeSlow(1_000);
    moved();
    // Who reads into freed memory fails, or crashes.
    structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
    child.stdin.end('go');
    await once(stream, 'close');
    expect(text).toBe('firstsecond');
    moved();
  });

  it('stays in the pipe while it is paused', async () => {
    const child = program(`process.stdout.write('first'); process.stdin.once('data', () => {
      process.stdout.write('second'); process.stderr.write(''); process.stdin.pause(); });`);
    const into = reader();
    const stream = readInto(child.stdout, into);
    await until('the first word', () => into.text() === 'first');
    stream.pause();
    child.stdin.end('go');
    await once(child, 'exit');
    await new Promise((resolve) => setImmediate(resolve));
    expect(into.text()).toBe('first');
    stream.resume();
    await once(stream, 'close');
    expect(into.text()).toBe('firstsecond');
  });

  it('lets those who wait for the process itself go on', async () => {
    const child = program(`process.stdout.write('word')`);
    const into = reader();
    const stream = readInto(child.stdout, into);
    await Promise.all([once(child, 'close'), once(stream, 'close')]);
    expect(into.text()).toBe('word');
  });

  it('is not read any more when the stream is destroyed', async () => {
    const child = program(
      `setInterval(() => process.stdout.write('word'), 1); process.stdout.on('error', () => process.exit(7))`,
    );
    const into = reader();
    const stream = readInto(child.stdout, into);
    await until('a word', () => into.text() !== '');
    stream.destroy();
    expect(await once(child, 'exit')).toEqual([7, null]);
  });
});

it('all reading can be stopped at once', async () => {
  const children = [1, 2].map(() => program(`setInterval(() => process.stdout.write('word'), 1)`));
  const into = children.map(() => reader());
  const streams = children.map((child, index) => readInto(child.stdout, into[index] ?? reader()));
  await until('words of both', () => into.every((each) => each.text() !== ''));
  const closed = streams.map((stream) => once(stream, 'close'));
  stopReading();
  const heard = into.map((each) => each.text());
  await Promise.all(closed);
  expect(into.map((each) => each.text())).toEqual(heard);
});

it('a stream without a handle is copied from', async () => {
  const stream: Readable & PassThrough = new PassThrough();
  const into = reader(4);
  expect(readInto(stream, into)).toBe(stream);
  stream.end('hello world');
  await once(stream, 'close');
  expect(into.text()).toBe('hello world');
  expect(into.sizes()).toEqual([4, 4, 3]);
});

/** A Node program, and the watched pipe to its stdin. */
function watched(code: string): { readonly child: ChildProcessWithoutNullStreams; readonly stdin: Writable } {
  const child = spawn(process.execPath, ['-e', code]);
  running.push(child);
  return { child, stdin: watchReader(child.stdin) };
}

const LIVE_ON = 'setInterval(() => {}, 1000);';

describe('a pipe to the stdin of a process', () => {
  // On Windows, it fails with the next write.
  it.skipIf(IS_WINDOWS)('F66: fails when the process closes it, although nothing is written', async () => {
    const { stdin } = watched(`require('fs').closeSync(0); ${LIVE_ON}`);
    const [error] = await once(stdin, 'error');
    expect(error).toMatchObject({ code: 'EPIPE' });
    expect(stdin.destroyed).toBe(true);
  });

  it.skipIf(IS_WINDOWS)('fails when the process closes it and has left something unread', async () => {
    const { child, stdin } = watched(`process.stdout.write('up'); setTimeout(() => {}, 1e6);`);
    await once(child.stdout, 'data');
    stdin.write('nobody reads this');
    child.kill('SIGKILL');
    const [error] = await once(stdin, 'error');
    expect(['EPIPE', 'ECONNRESET']).toContain(error.code);
  });

  it.skipIf(IS_WINDOWS)('works on when the process ends only its own side', async () => {
    const { child, stdin } = watched(`
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
    const { child, stdin } = watched(`process.stdin.resume().on('end', () => process.stdout.write('bye'));`);
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

describe('a stream that is written to in the background', () => {
  it.each([
    ['win32', [false]],
    ['linux', []],
    ['darwin', []],
  ])('is one of its own on Windows only: %s', (platform, calls) => {
    const blocking: boolean[] = [];
    const stream = Object.assign(new PassThrough(), { _handle: { setBlocking: (is: boolean) => blocking.push(is) } });
    expect(withoutBlocking(stream, platform)).toBe(stream);
    expect(blocking).toEqual(calls);
  });

  it('may have no handle', () => {
    expect(() => withoutBlocking(new PassThrough(), 'win32')).not.toThrow();
  });
});
