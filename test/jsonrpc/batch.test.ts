import { isUtf8 } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { type SplicedMessage, splice, splicedLength, visitPieces } from '../../src/json/splice.js';
import { batchMessage, splitBatch } from '../../src/jsonrpc/batch.js';
import { whole } from '../../src/jsonrpc/message.js';

const bytes = (text: string) => Buffer.from(text);

function split(line: string | Uint8Array, maxDepth = 4): readonly string[] | string {
  const text = typeof line === 'string' ? bytes(line) : line;
  const elements = splitBatch(text, text.indexOf(0x5b), { maxDepth, maxElements: 3, isUtf8 });
  return typeof elements === 'string'
    ? elements
    : elements.map(({ start, end }) => Buffer.from(text.subarray(start, end)).toString());
}

describe('a batch that is taken apart', () => {
  it('gives its elements as they are written, without the white space around them', () => {
    expect(split(' [\t{ "a" : 1.0 } ,\r"ü,]" , [ 1 , 2 ]\n] ')).toEqual(['{ "a" : 1.0 }', '"ü,]"', '[ 1 , 2 ]']);
  });

  it('may have no elements, and may have as many as the limit', () => {
    expect(split('[ ]')).toEqual([]);
    expect(split('[1,2,3]')).toEqual(['1', '2', '3']);
  });

  it('may be as deep as the limit, the array itself being the first level', () => {
    expect(split('[{"a":[{}]}]')).toEqual(['{"a":[{}]}']);
    expect(split('[7]', 1)).toEqual(['7']);
  });

  it.each([
    ['[1,2,3,4]', 'batch-too-long'],
    [`[${'[],'.repeat(100_000)}[]]`, 'batch-too-long'],
    ['[[[[[]]]]]', 'too-deep'],
    ['[{"a":[{"b":{}}]}]', 'too-deep'],
    ['[1,2,3,4', 'not-json'],
    ['[1,]', 'not-json'],
    ['[,1]', 'not-json'],
    ['[1 2]', 'not-json'],
    ['[', 'not-json'],
    ['[1]]', 'not-json'],
    ['[1] 2', 'not-json'],
    ['[01]', 'not-json'],
    ['[{"a":1]', 'not-json'],
  ])('is not %.20s, which is %s', (line, fault) => {
    expect(split(line)).toBe(fault);
  });

  it('is in UTF-8 from end to end', () => {
    expect(split(Buffer.from('["ok","caf\xe9"]', 'latin1'))).toBe('invalid-utf8');
  });
});

describe('messages put together as a batch', () => {
  const edited: SplicedMessage = {
    bytes: bytes('  {"id":1,"x":2}  '),
    span: { start: 2, end: 16 },
    edits: [{ span: { start: 8, end: 9 }, text: bytes('"é"') }],
  };
  const textOf = (message: SplicedMessage) => Buffer.from(splice(message)).toString();

  it('are an array of what each of them is, edits made', () => {
    const batch = batchMessage([edited, whole(bytes('{}')), edited]);
    expect(textOf(batch)).toBe('[{"id":"é","x":2},{},{"id":"é","x":2}]');
    expect(splicedLength(batch)).toBe(splice(batch).length);
    expect(textOf(batchMessage([edited]))).toBe('[{"id":"é","x":2}]');
    expect(textOf(batchMessage([]))).toBe('[]');
  });

  it('are not copied', () => {
    const large = bytes(`{"x":"${'x'.repeat(100_000)}"}`);
    const pieces: Uint8Array[] = [];
    visitPieces(batchMessage([whole(large), edited]), (piece) => pieces.push(piece));
    expect(pieces.some(({ buffer, byteOffset }) => buffer === large.buffer && byteOffset === large.byteOffset)).toBe(
      true,
    );
  });
});
