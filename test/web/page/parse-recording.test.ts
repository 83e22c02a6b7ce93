import { describe, expect, it } from 'vitest';
import { parseRecording } from '../../../src/web/page/parse-recording.js';

const HEADER = { trunkline: 'recording', format: 1, version: '0.1.0', startedAt: '2026-11-24T10:00:00.000Z' };

function read(...lines: unknown[]) {
  return parseRecording(lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
}

function entry(t: number, dir: string, message: unknown, more: object = {}) {
  return { t, dir, conn: 1, raw: JSON.stringify(message), ...more };
}

describe('a recording that the page reads', () => {
  it('has each answer with the method and time of its request, on both legs', () => {
    const request = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'files__read' } };
    const { messages } = read(
      HEADER,
      entry(1_000, 'c>g', request, { client: 'editor 1.0' }),
      entry(1_001, 'g>s', { ...request, id: 1, params: { name: 'read' } }, { server: 'files', gen: 1 }),
      entry(1_011, 's>g', { jsonrpc: '2.0', id: 1, result: {} }, { server: 'files', gen: 1 }),
      entry(1_013, 'g>c', { jsonrpc: '2.0', id: 7, error: { code: 1, message: 'no' } }, { client: 'editor 1.0' }),
    );
    expect(messages.map(({ kind, method, name, party, ms }) => [kind, method, name, party, ms])).toEqual([
      ['request', 'tools/call', 'files__read', 'editor 1.0 #1', null],
      ['request', 'tools/call', 'read', 'files', null],
      ['answer', 'tools/call', 'read', 'files', 10],
      ['error', 'tools/call', 'files__read', 'editor 1.0 #1', 13],
    ]);
  });

  it('tells equal ids of different connections apart', () => {
    const { messages } = read(
      HEADER,
      entry(1, 'c>g', { id: 1, method: 'ping' }),
      entry(2, 'c>g', { id: 1, method: 'tools/list' }, { conn: 2 }),
      entry(9, 'g>c', { id: 1, result: {} }, { conn: 2 }),
    );
    expect(messages[2]).toMatchObject({ method: 'tools/list', ms: 7 });
  });

  it('counts what is missing, and lines that cannot be read', () => {
    const file = read(HEADER, { t: 1, dropped: 12 }, entry(2, 'c>g', { method: 'ping' }), '{"t":3,"dir":"c>g","ra');
    expect([file.messages.length, file.dropped, file.unreadable]).toEqual([1, 12, 1]);
  });

  it('shows messages without text by their size, and those in Base64 as text', () => {
    const base64 = Buffer.from('{"method":"caf\u00e9"}').toString('base64');
    const { messages } = read(
      HEADER,
      { t: 1, dir: 's>g', conn: 1, server: 'files', omitted: 5_000_000 },
      { t: 2, dir: 's>g', conn: 1, base64 },
    );
    expect(messages).toMatchObject([{ text: null, bytes: 5_000_000, kind: 'other' }, { method: 'caf\u00e9' }]);
  });

  it('has no header if the file is something else', () => {
    expect(read('hello', '{}').header).toBeNull();
  });
});
