import { describe, expect, it } from 'vitest';
import { clientPace, TurnReader } from '../../../src/io/streams/turn-reader.js';

/** A reader whose work on each read takes as long as the test says, and a stream that says whether it flows. */
function reading(msOfRead: () => number) {
  let now = 0;
  let flows = true;
  const read: number[] = [];
  const tasks: (() => void)[] = [];
  const stream = {
    pause: () => {
      flows = false;
    },
    resume: () => {
      flows = true;
    },
  };
  const reader = {
    freeSpace: new Uint8Array(64 * 1024),
    filled: (byteLength: number) => {
      read.push(byteLength);
      now += msOfRead();
    },
  };
  const turns = new TurnReader(reader, {
    stream: () => stream,
    clock: { now: () => now },
    pace: clientPace((task) => tasks.push(task)),
  });
  const nextTurn = () => {
    for (const task of tasks.splice(0)) task();
  };
  return { turns, nextTurn, read, flows: () => flows, waits: () => tasks.length };
}

describe('a client among others', () => {
  it('F147: that writes without a pause is read once in a turn, and goes on in the next', () => {
    const { turns, nextTurn, read, flows } = reading(() => 20);
    for (let turn = 1; turn <= 3; turn += 1) {
      turns.filled(64 * 1024);
      expect([read.length, flows()]).toEqual([turn, false]);
      nextTurn();
      expect(flows()).toBe(true);
    }
  });

  it('gets small reads while they take long, and larger ones when they do not', () => {
    let ms = 20;
    const { turns, nextTurn } = reading(() => ms);
    const sizes: number[] = [];
    const readOn = () => {
      sizes.push(turns.freeSpace.length / 1024);
      turns.filled(turns.freeSpace.length);
      nextTurn();
    };
    for (let turn = 0; turn < 6; turn += 1) readOn();
    ms = 0.5;
    for (let turn = 0; turn < 6; turn += 1) readOn();
    expect(sizes).toEqual([4, 4, 4, 4, 4, 4, 4, 8, 16, 32, 64, 64]);
  });

  it('is read on if its messages take little work', () => {
    const quick = reading(() => 0.9);
    for (let count = 0; count < 32; count += 1) quick.turns.filled(64 * 1024);
    expect([quick.flows(), quick.waits()]).toEqual([true, 0]);
  });

  it('that does not read stays paused in the next turn, and is read when both reasons are over, in any order', () => {
    const { turns, nextTurn, flows } = reading(() => 20);
    turns.filled(64 * 1024);
    turns.pause();
    nextTurn();
    expect(flows()).toBe(false);
    turns.resume();
    expect(flows()).toBe(true);
    turns.filled(64 * 1024);
    turns.pause();
    turns.resume();
    expect(flows()).toBe(false);
    nextTurn();
    expect(flows()).toBe(true);
  });

  it('asks for one turn, also if a stream cannot stop within a chunk', () => {
    const { turns, nextTurn, read, flows, waits } = reading(() => 20);
    for (let count = 0; count < 3; count += 1) turns.filled(64 * 1024);
    expect([read.length, waits()]).toEqual([3, 1]);
    nextTurn();
    expect(flows()).toBe(true);
  });
});
