import { describe, expect, it } from 'vitest';
import { messageFrame, ReplayRing } from '../../../src/downstream/http/sse-stream.js';
import { unedited } from '../../../src/wire/jsonrpc/message.js';
import { bytesOf } from '../../support/wire.js';

const textOf = (frame: Uint8Array) => Buffer.from(frame).toString();

describe('an event', () => {
  it('has its id and the message on one line', () => {
    const bytes = bytesOf('  {"id":0,"x":"ä"}  ');
    const frame = messageFrame('3.14.x', { bytes, span: { start: 2, end: bytes.length - 2 }, edits: [] });
    expect(textOf(frame)).toBe('id: 3.14.x\ndata: {"id":0,"x":"ä"}\n\n');
  });

  it('stays as it is when the memory of its message gets another use', () => {
    const bytes = bytesOf(`"${'x'.repeat(20_000)}"`);
    const frame = messageFrame('0.0.x', unedited(bytes));
    bytes.fill(0);
    expect(textOf(frame)).toBe(`id: 0.0.x\ndata: "${'x'.repeat(20_000)}"\n\n`);
  });

  it('leaves what it was given as it was when it has to replace line breaks', () => {
    for (const breaks of ['\r', '\n', '\r\n']) {
      const bytes = bytesOf(`{"a":${breaks}1}`);
      const spaces = breaks.replace(/./gs, ' ');
      expect(textOf(messageFrame('0.0.x', unedited(bytes)))).toBe(`id: 0.0.x\ndata: {"a":${spaces}1}\n\n`);
      expect(Buffer.from(bytes).toString()).toBe(`{"a":${breaks}1}`);
    }
  });
});

describe('a replay ring', () => {
  const frame = bytesOf;

  it('is bounded in events and in bytes, whatever comes', () => {
    const ring = new ReplayRing({ maxEvents: 3, maxBytes: 10 });
    for (let seq = 0; seq < 5; seq += 1) ring.add({ stream: 0, seq }, frame('aa'));
    expect(ring.after({ stream: 0, seq: -1 })).toHaveLength(3);
    ring.add({ stream: 0, seq: 5 }, frame('bbbbbbb'));
    expect(ring.after({ stream: 0, seq: -1 }).map(textOf)).toEqual(['aa', 'bbbbbbb']);
    ring.add({ stream: 0, seq: 6 }, frame('much too long'));
    expect(ring.has(0)).toBe(false);
  });
});
