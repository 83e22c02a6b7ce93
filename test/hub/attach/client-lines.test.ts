import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClientLines, fateOf } from '../../../src/hub/attach/client-lines.js';
import { copyInto } from '../../../src/io/byte-reader.js';
import { LineDecoder } from '../../../src/io/line-decoder.js';
import { repetitions } from '../../support/repetitions.js';

const MIB = 1024 * 1024;

function cutting() {
  const lines: string[] = [];
  const cut: number[] = [];
  const reader = new ClientLines((pieces, isCut) => {
    if (isCut) cut.push(lines.length);
    lines.push(Buffer.concat(pieces).toString('latin1'));
  });
  return { reader, lines, cut };
}

describe('the lines of a client', () => {
  it('are those that the hub counts, however the stream is cut', () => {
    const bytes = fc.array(fc.constantFrom(0x0a, 0x0a, 0x0d, 0x20, 0x09, 0x61, 0xc3, 0x00), { maxLength: 80 });
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(80), { maxLength: 8 }), fc.array(fc.nat(80)), (content, cuts, otherCuts) => {
        const all = Buffer.from(content);
        const { reader, lines } = cutting();
        for (const piece of piecesOf(all, cuts)) reader.add(piece);
        const counted: string[] = [];
        const decoder = new LineDecoder({
          maxLineBytes: 1024,
          sink: { line: (from, start, end) => counted.push(Buffer.from(from.subarray(start, end)).toString('latin1')) },
        });
        for (const piece of piecesOf(all, otherCuts)) copyInto(decoder, piece);
        // The hub skips white space before a line, which belongs to the line all the same.
        expect(lines.map((line) => line.replace(/^[ \t\r]+/, ''))).toEqual(counted);
        const rest = all.subarray(all.lastIndexOf(0x0a) + 1);
        expect(Buffer.concat(reader.unfinished)).toEqual(rest);
      }),
      { numRuns: repetitions({ full: 3_000, short: 500 }) },
    );
  });

  it('that are longer than any hub takes are kept by their beginning, and counted', () => {
    const { reader, lines, cut } = cutting();
    reader.add(Buffer.from('{"id":1}\n{"id":2,'));
    const piece = Buffer.alloc(MIB, 'x');
    for (let count = 0; count < 65; count += 1) reader.add(piece);
    expect(Buffer.concat(reader.unfinished).length).toBeLessThanOrEqual(1024);
    reader.add(Buffer.from('\n{"id":3}\n'));
    expect(lines).toEqual(['{"id":1}', '{"id":2,', '{"id":3}']);
    expect(cut).toEqual([1]);
  });
});

function piecesOf(all: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.filter((cut) => cut <= all.length).sort((one, other) => one - other), all.length];
  return at.slice(1).map((end, index) => all.subarray(at[index], end));
}

function fate(message: unknown, isCut = false) {
  const text = typeof message === 'string' ? message : JSON.stringify(message);
  const half = Math.floor(text.length / 2);
  const pieces = [Buffer.from(text.slice(0, half)), Buffer.from(text.slice(half))];
  const found = fateOf({ pieces, isCut, isReplay: false });
  return found.kind === 'answered' ? JSON.parse(found.answer) : found.kind;
}

const FAILURE = { reason: 'hub_exited', code: 'TL-CALL-HUB-EXITED', sent: true, outcome: 'unknown' };
const call = (id: unknown, params: object = { name: 'x' }) => ({ jsonrpc: '2.0', id, method: 'tools/call', params });

describe('a line whose hub has died', () => {
  it.each([
    'initialize',
    'ping',
    'tools/list',
    'prompts/get',
    'resources/read',
    'logging/setLevel',
    'tasks/get',
    'subscriptions/listen',
  ])('is sent again if it is a request that may be served twice: %s', (method) => {
    expect(fate({ jsonrpc: '2.0', id: 1, method })).toBe('again');
  });

  it('is answered with a tool result if it is a call, under the id as the client wrote it', () => {
    const _meta = { 'trunkline/failure': FAILURE };
    expect(fate(call('a'))).toMatchObject({ jsonrpc: '2.0', id: 'a', result: { isError: true, _meta } });
    const large = fateOf({
      pieces: [Buffer.from('{"method":"tools/call","id":9007199254740993,"params":{}}')],
      isCut: false,
      isReplay: false,
    });
    expect(large).toMatchObject({ kind: 'answered', answer: expect.stringContaining('"id":9007199254740993,') });
  });

  it('is answered as its revision requires if it is a call without a handshake', () => {
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
    expect(fate(call(1, { name: 'x', _meta })).result).toMatchObject({ resultType: 'complete', isError: true });
    expect(fate(call(1)).result).not.toHaveProperty('resultType');
  });

  it('is answered with an error if it was to become a task, or is any other request', () => {
    const error = { code: -32603, data: FAILURE };
    expect(fate(call(1, { name: 'x', task: {} }))).toMatchObject({ id: 1, error });
    expect(fate({ jsonrpc: '2.0', id: 2, method: 'tasks/cancel' })).toMatchObject({ id: 2, error });
    expect(fate('{"jsonrpc":"2.0","id":3,', true)).toMatchObject({ id: null, error });
  });

  it('is dropped if it is an answer or a notification, except for the end of the handshake', () => {
    expect(fate({ jsonrpc: '2.0', id: 1, result: {} })).toBe('dropped');
    expect(fate({ jsonrpc: '2.0', method: 'notifications/cancelled' })).toBe('dropped');
    expect(fate({ jsonrpc: '2.0', method: 'notifications/initialized' })).toBe('again');
  });

  it('is a batch as a whole: sent again if all of it may be, else answered in one array', () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const note = { jsonrpc: '2.0', method: 'notifications/x' };
    expect(fate([list, note])).toBe('again');
    expect(fate([note])).toBe('dropped');
    expect(fate([list, call(2), note])).toMatchObject([
      { id: 1, error: {} },
      { id: 2, result: { isError: true } },
    ]);
  });

  it('is sent again if it is no JSON, since the next hub says what is wrong with it', () => {
    expect(fate('{"half')).toBe('again');
  });
});
