import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChildLog } from '../../../src/host/observe/child-log.js';
import { createRedactor } from '../../../src/host/observe/redact.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { bytesOf } from '../../support/wire.js';

const SECRET = `canary-${'0123456789abcdef'.repeat(6)}`;

function write({ stderr }: ChildLog, bytes: Uint8Array): void {
  copyInto(stderr, bytes);
}

/** A log that is followed is told of each line as it comes. */
function logging(isFollowed = true) {
  let now = 0;
  const told: string[] = [];
  const redact = createRedactor([{ env: { API_KEY: SECRET }, args: [] }]);
  const log = new ChildLog({ redact, now: () => now, onLine: (line) => told.push(line), isFollowed: () => isFollowed });
  const wait = (ms: number) => {
    now += ms;
  };
  return { log, told, wait };
}

describe('the log of a child', () => {
  it('has the lines that it wrote, and tells of each as it comes', () => {
    const { log, told } = logging();
    write(log, bytesOf('one\ntwo\r\n\n  \nthr'));
    expect(log.lines).toEqual(['one', 'two']);
    write(log, bytesOf('ee\n'));
    log.add('four');
    expect(log.lines).toEqual(['one', 'two', 'three', 'four']);
    expect(told).toEqual([...log.lines]);
  });

  it('knows the lines of the latest two attempts, also after it dropped the oldest lines', () => {
    const { log } = logging();
    const attempts = () => [log.linesOf('previous'), log.linesOf('latest')];
    log.add('before');
    expect(attempts()).toEqual([[], ['before']]);
    log.beginAttempt();
    log.add('one');
    log.addAttempt(['two', 'three']);
    expect(attempts()).toEqual([['one'], ['two', 'three']]);
    log.beginAttempt();
    expect(attempts()).toEqual([['two', 'three'], []]);
    log.add('x'.repeat(8_000));
    log.beginAttempt();
    for (let line = 0; line < 8; line += 1) log.add(`${line}${'y'.repeat(8_000)}`);
    expect(log.lines).toHaveLength(8);
    expect(attempts()).toEqual([[], [...log.lines]]);
  });

  it('takes what stands without a line end for a line when the stream ends', () => {
    const { log } = logging();
    write(log, bytesOf('last words'));
    expect(log.lines).toEqual([]);
    log.end();
    log.end();
    expect(log.lines).toEqual(['last words']);
  });

  it('is the same wherever chunks are cut, inside characters too', () => {
    const stream = bytesOf('é 猫\n😀 x\nGrüße\n');
    fc.assert(
      fc.property(fc.array(fc.nat(stream.length), { maxLength: 6 }), (cuts) => {
        const { log } = logging();
        const at = [0, ...cuts.sort((a, b) => a - b), stream.length];
        for (let index = 1; index < at.length; index += 1) write(log, stream.subarray(at[index - 1], at[index]));
        expect(log.lines).toEqual(['é 猫', '😀 x', 'Grüße']);
      }),
    );
  });

  it('has of a long line the beginning, in whatever pieces it came', () => {
    for (const size of [1_000, 100_000]) {
      const { log } = logging();
      const line = Array.from({ length: 8_000 }, (_, index) => `<${index}>`).join('');
      for (let at = 0; at < line.length; at += size) write(log, bytesOf(line.slice(at, at + size)));
      write(log, bytesOf('\nnext\n'));
      expect(log.lines).toEqual([line.slice(0, 8 * 1024), 'next']);
    }
  });

  it('has nothing of the rest of a line over 64 KiB, because half a secret is not recognized', () => {
    const { log } = logging(false);
    write(log, bytesOf(`first\n${'x'.repeat(65_500)}${SECRET}${SECRET}\nlast\n`));
    expect(log.lines).toEqual(['first', 'x'.repeat(8 * 1024), 'last']);
  });

  it('has of many lines the last 64 KiB', () => {
    const { log, wait } = logging();
    for (let count = 0; count < 10_000; count += 1) {
      write(log, bytesOf(`${String(count).padStart(99, '.')}\n`));
      wait(1);
    }
    expect(log.lines.join('').length).toBeLessThanOrEqual(64 * 1024);
    expect(log.lines.length).toBe(Math.floor((64 * 1024) / 99));
    expect(log.lines.at(-1)).toMatch(/9999$/);
  });
});

describe('a child that writes without end', () => {
  it('has 1,000 lines in a second taken, and one line that says how much was dropped', () => {
    const { log, told, wait } = logging();
    for (let count = 1; count <= 20_000; count += 1) write(log, bytesOf(`line ${count}\n`));
    expect(told).toHaveLength(1_000);
    expect(told[999]).toBe('line 1000');
    wait(1_000);
    write(log, bytesOf('quiet again\n'));
    const after = told.slice(1_000);
    expect(after[0]).toMatch(/^\[\d+ bytes of output were dropped here: too much came at once\]$/);
    expect(after).toHaveLength(1_001);
    expect(after.slice(-2)).toEqual(['line 20000', 'quiet again']);
    const kept = [...told.slice(0, 1_000), ...after.slice(1)].join('').length;
    const written = Array.from({ length: 20_000 }, (_, index) => `line ${index + 1}`).join('').length;
    expect(log.droppedBytes).toBe(written + 'quiet again'.length - kept);
  });

  it.each([true, false])('has stray lines of stdout among those of stderr, in order: followed %j', (isFollowed) => {
    const { log } = logging(isFollowed);
    write(log, bytesOf('before\n'));
    log.addJunk(bytesOf('hello'), 'not-json');
    write(log, bytesOf('after\nand ha'));
    log.addJunk(bytesOf('again'), 'not-json');
    write(log, bytesOf('lf\n'));
    expect(log.lines).toEqual(['before', 'stdout (not-json): hello', 'after', 'stdout (not-json): again', 'and half']);
  });

  it('has the last 1,000 lines of stdout that are no messages, and decodes none before somebody looks', () => {
    const { log, told } = logging(false);
    for (let count = 1; count <= 100_000; count += 1) log.addJunk(bytesOf(`junk ${count}`), 'not-json');
    write(log, bytesOf('stderr\n'));
    expect([told, log.droppedBytes]).toEqual([[], 0]);
    const { lines } = log;
    expect(lines).toHaveLength(1_001);
    expect(lines[0]).toBe(`[${log.droppedBytes} bytes of output were dropped here: too much came at once]`);
    expect([lines[1], lines.at(-2), lines.at(-1)]).toEqual([
      'stdout (not-json): junk 99002',
      'stdout (not-json): junk 100000',
      'stderr',
    ]);
    const written = Array.from({ length: 99_001 }, (_, index) => `junk ${index + 1}`).join('').length;
    expect(log.droppedBytes).toBe(written);
  });

  it('has the beginnings of long lines of stdout, no more than 64 KiB of them', () => {
    const { log } = logging(false);
    for (let count = 0; count < 100; count += 1) log.addJunk(bytesOf('y'.repeat(1024 * 1024)), 'not-json');
    // Of each, 1 KiB is kept, and the text before it is stored as well.
    expect(log.lines.length).toBe(62);
    expect(log.droppedBytes).toBe(36 * 1024 * 1024);
  });
});

describe('a secret in the log of a child', () => {
  it('is removed, however the stream was cut', () => {
    const line = bytesOf(`key ${SECRET} used\n`);
    for (let cut = 0; cut <= line.length; cut += 1) {
      const { log, told } = logging();
      write(log, line.subarray(0, cut));
      write(log, line.subarray(cut));
      expect(log.lines).toEqual(['key [redacted] used']);
      expect(told).toEqual(['key [redacted] used']);
    }
  });

  it('is removed where a long line is cut', () => {
    for (let before = 8 * 1024 - SECRET.length; before <= 8 * 1024; before += 7) {
      const { log } = logging();
      write(log, bytesOf(`${'x'.repeat(before)}${SECRET}\n`));
      expect(log.lines.join('')).not.toContain('canary');
    }
  });

  it('is removed where a line is cut that shrinks, because it is full of secrets', () => {
    for (let shift = 0; shift < SECRET.length; shift += 5) {
      const { log } = logging();
      write(log, bytesOf(`${'x'.repeat(shift)}${SECRET.repeat(200)}\n`));
      expect(log.lines.join(''), `shifted by ${shift}`).not.toContain('canary');
    }
  });
});
