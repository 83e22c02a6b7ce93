import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChildLog } from '../../src/observe/child-log.js';
import { createRedactor } from '../../src/observe/redact.js';
import { cpuMsOf } from '../support/cpu-time.js';
import { bytesOf } from '../support/wire.js';

const SECRET = `canary-${'0123456789abcdef'.repeat(6)}`;

function logging() {
  let now = 0;
  const told: string[] = [];
  const redact = createRedactor([{ env: { API_KEY: SECRET }, args: [] }]);
  const log = new ChildLog({ redact, now: () => now, onLine: (line) => told.push(line) });
  const wait = (ms: number) => {
    now += ms;
  };
  return { log, told, wait };
}

describe('the log of a child', () => {
  it('has the lines that it wrote, and tells of each as it comes', () => {
    const { log, told } = logging();
    log.write(bytesOf('one\ntwo\r\n\n  \nthr'));
    expect(log.lines).toEqual(['one', 'two']);
    log.write(bytesOf('ee\n'));
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
    log.write(bytesOf('last words'));
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
        for (let index = 1; index < at.length; index += 1) log.write(stream.subarray(at[index - 1], at[index]));
        expect(log.lines).toEqual(['é 猫', '😀 x', 'Grüße']);
      }),
    );
  });

  it('has of a long line the beginning, in whatever pieces it came', () => {
    for (const size of [1_000, 100_000]) {
      const { log } = logging();
      const line = Array.from({ length: 20_000 }, (_, index) => `<${index}>`).join('');
      for (let at = 0; at < line.length; at += size) log.write(bytesOf(line.slice(at, at + size)));
      log.write(bytesOf('\nnext\n'));
      expect(log.lines).toEqual([line.slice(0, 8 * 1024), 'next']);
    }
  });

  it('has of many lines the last 64 KiB', () => {
    const { log, wait } = logging();
    for (let count = 0; count < 10_000; count += 1) {
      log.write(bytesOf(`${String(count).padStart(99, '.')}\n`));
      wait(1);
    }
    expect(log.lines.join('').length).toBeLessThanOrEqual(64 * 1024);
    expect(log.lines.length).toBe(Math.floor((64 * 1024) / 99));
    expect(log.lines.at(-1)).toMatch(/9999$/);
  });
});

describe('a child that writes without end', () => {
  it('has 1,000 lines in a second taken, and one line that says how many were dropped', () => {
    const { log, told, wait } = logging();
    for (let count = 1; count <= 5_000; count += 1) log.write(bytesOf(`line ${count}\n`));
    expect(told).toHaveLength(1_000);
    expect(log.droppedLines).toBe(4_000);
    wait(999);
    log.write(bytesOf('still too early\n'));
    wait(1);
    log.write(bytesOf('quiet again\n'));
    expect(told.slice(1_000)).toEqual(['[4001 lines were dropped here: more than 1000 in a second]', 'quiet again']);
    expect(told[999]).toBe('line 1000');
  });

  it('has what was dropped last told when it ends', () => {
    const { log, told } = logging();
    for (let count = 1; count <= 1_001; count += 1) log.add(`line ${count}`);
    log.end();
    expect(told.at(-1)).toBe('[1 lines were dropped here: more than 1000 in a second]');
  });

  it('costs little for each line that is dropped', () => {
    const { log } = logging();
    const chunk = bytesOf(`${'x'.repeat(1_023)}\n`.repeat(64));
    const flood = () => {
      for (let sent = 0; sent < 64 * 1024 * 1024; sent += chunk.length) log.write(chunk);
    };
    expect(cpuMsOf(flood)).toBeLessThan(1_000);
    expect(log.droppedLines).toBe(64 * 1024 - 1_000);
  });
});

describe('a secret in the log of a child', () => {
  it('is removed, however the stream was cut', () => {
    const line = bytesOf(`key ${SECRET} used\n`);
    for (let cut = 0; cut <= line.length; cut += 1) {
      const { log, told } = logging();
      log.write(line.subarray(0, cut));
      log.write(line.subarray(cut));
      expect(log.lines).toEqual(['key [redacted] used']);
      expect(told).toEqual(['key [redacted] used']);
    }
  });

  it('is removed where a long line is cut', () => {
    for (let before = 8 * 1024 - SECRET.length; before <= 8 * 1024; before += 7) {
      const { log } = logging();
      log.write(bytesOf(`${'x'.repeat(before)}${SECRET}\n`));
      expect(log.lines.join('')).not.toContain('canary');
    }
  });

  it('is removed where a line is cut that shrinks, because it is full of secrets', () => {
    for (let shift = 0; shift < SECRET.length; shift += 5) {
      const { log } = logging();
      log.write(bytesOf(`${'x'.repeat(shift)}${SECRET.repeat(200)}\n`));
      expect(log.lines.join(''), `shifted by ${shift}`).not.toContain('canary');
    }
  });
});
