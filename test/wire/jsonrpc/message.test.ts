import { describe, expect, it } from 'vitest';
import { type SplicedMessage, splice, splicedLength, visitPieces } from '../../../src/wire/json/splice.js';
import {
  NULL_ID,
  notificationMessage,
  RpcError,
  requestMessage,
  resultMessage,
  rpcErrorMessage,
} from '../../../src/wire/jsonrpc/message.js';

const bytes = (text: string) => Buffer.from(text);
const text = (message: SplicedMessage) => Buffer.from(splice(message)).toString();

describe('messages of our own', () => {
  it('leave params out when there are none', () => {
    expect(text(requestMessage(7, 'tools/list'))).toBe('{"jsonrpc":"2.0","id":7,"method":"tools/list"}');
    expect(text(notificationMessage('x'))).toBe('{"jsonrpc":"2.0","method":"x"}');
  });

  it('carry params as JSON', () => {
    expect(text(requestMessage(1, 'm', { cursor: 'é' }))).toBe(
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"cursor":"é"}}',
    );
    expect(text(notificationMessage('m', { a: [] }))).toBe('{"jsonrpc":"2.0","method":"m","params":{"a":[]}}');
  });
});

describe('answers', () => {
  it.each(['1', '"1"', '9007199254740993', '1.0', '"\\u0069"'])('carry the id %s as it was written', (id) => {
    expect(text(resultMessage(bytes(id), bytes('{"n":1e400}')))).toBe(
      `{"jsonrpc":"2.0","id":${id},"result":{"n":1e400}}`,
    );
    expect(text(rpcErrorMessage(bytes(id), new RpcError(-32601, 'No "x"')))).toBe(
      `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"No \\"x\\""}}`,
    );
  });

  it('to what could not be read carry a null id', () => {
    expect(text(rpcErrorMessage(NULL_ID, new RpcError(-32700, 'x')))).toContain('"id":null');
  });
});

describe('splicing', () => {
  const source = bytes('  {"id":1,"name":"abc"}  ');
  const message: SplicedMessage = {
    bytes: source,
    span: { start: 2, end: source.length - 2 },
    edits: [
      { span: { start: 17, end: 22 }, text: bytes('"é"') },
      { span: { start: 8, end: 9 }, text: bytes('1234') },
    ],
  };

  it('puts the edits in whatever their order and leaves out what is around the message', () => {
    expect(text({ ...message, edits: [...message.edits] })).toBe('{"id":1234,"name":"é"}');
    expect(text({ ...message, edits: message.edits.toReversed() })).toBe('{"id":1234,"name":"é"}');
    expect(splicedLength(message)).toBe(bytes('{"id":1234,"name":"é"}').length);
  });

  it('may empty or begin or end a message', () => {
    const edit = (start: number, end: number, into: string) => ({ span: { start, end }, text: bytes(into) });
    const all = { bytes: bytes('abc'), span: { start: 0, end: 3 } };
    expect(text({ ...all, edits: [edit(0, 1, 'xx'), edit(2, 3, '')] })).toBe('xxb');
    expect(text({ ...all, edits: [edit(0, 3, '')] })).toBe('');
  });

  it('puts a part of another message in as well, however it is written', () => {
    const line = bytes('{"id":12,"x":1}');
    const edits = [{ span: { start: 6, end: 8 }, text: bytes('{"id":"abc"}'), part: { start: 6, end: 11 } }];
    const message = { bytes: line, span: { start: 0, end: line.length }, edits };
    const pieces: Uint8Array[] = [];
    visitPieces(message, (piece) => pieces.push(piece));
    expect(text(message)).toBe('{"id":"abc","x":1}');
    expect(Buffer.concat(pieces).toString()).toBe('{"id":"abc","x":1}');
    expect(splicedLength(message)).toBe(18);
  });

  it('copies nothing when it visits the pieces', () => {
    const pieces: Uint8Array[] = [];
    visitPieces(message, (piece) => pieces.push(piece));
    expect(pieces.map((piece) => Buffer.from(piece).toString())).toEqual(['{"id":', '1234', ',"name":', '"é"', '}']);
    expect(pieces[0]?.buffer).toBe(source.buffer);
  });
});
