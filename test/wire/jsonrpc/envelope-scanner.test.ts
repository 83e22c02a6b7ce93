import { isUtf8 } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { type SplicedMessage, splice, splicedLength, visitPieces } from '../../../src/wire/json/splice.js';
import { EnvelopeScanner } from '../../../src/wire/jsonrpc/envelope-scanner.js';
import { batchMessage, unedited } from '../../../src/wire/jsonrpc/message.js';

const scanner = new EnvelopeScanner({
  watch: { name: ['params', 'name'], token: ['params', '_meta', 'progressToken'] },
  maxDepth: 4,
  maxElements: 3,
  isUtf8,
});

function scan(line: string | Uint8Array) {
  return scanner.scan(typeof line === 'string' ? Buffer.from(line) : line);
}

function textAt(bytes: Uint8Array, span: { start: number; end: number } | undefined): string | undefined {
  return span === undefined ? undefined : Buffer.from(bytes.subarray(span.start, span.end)).toString();
}

describe('a refused line', () => {
  it.each([
    ['', 'blank'],
    [' \t\r', 'blank'],
    ['Server listening on stdio', 'not-json'],
    ['{"jsonrpc":"2.0"', 'not-json'],
    ['{"jsonrpc":"2.0","id":1,"result":{}} trailing', 'not-json'],
    ['{"jsonrpc":"2.0","id":01,"result":{}}', 'not-json'],
    ['{"jsonrpc":"2.0",\ufeff"id":1,"result":{}}', 'not-json'],
    ['{"jsonrpc":"2.0","id":1,"result":"a\rb"}', 'not-json'],
    ['"text"', 'not-an-object'],
    ['42', 'not-an-object'],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'batch'],
    ['[]', 'batch'],
    ['{"jsonrpc":"2.0","id":1,"result":[[[[]]]]}', 'too-deep'],
    ['{"jsonrpc":"2.0","method":"m","params":{"_meta":{"other":{"deeper":{}}}}}', 'too-deep'],
    ['[[[[[]]]]]', 'too-deep'],
    ['[1,2,3,4]', 'batch-too-long'],
    ['[1,2,3,4', 'not-json'],
    ...['[1,2,]', '[,1]', '[1 2]', '[', '[1]]', '[1] [2]', '[1] 2', '[01]', '[{"a":1]'].map(
      (line): [string, string] => [line, 'not-json'],
    ),
    [`[${'[],'.repeat(100_000)}[]]`, 'batch-too-long'],
    ['[{"a":[{"b":{}}]}]', 'too-deep'],
    ['{"jsonrpc":"2.0","id":1,"id":2,"result":{}}', 'duplicate-member'],
    ['{"jsonrpc":"2.0","id":1,"\\u0069d":2,"result":{}}', 'duplicate-member'],
    ['{"jsonrpc":"2.0","method":"m","params":{"name":1,"name":1}}', 'duplicate-member'],
    ['{"jsonrpc":"2.0","method":"m","params":{"_meta":{},"_meta":{}}}', 'duplicate-member'],
    ['{}', 'not-json-rpc'],
    ['{"id":1,"result":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"1.0","id":1,"result":{}}', 'not-json-rpc'],
    ['{"jsonrpc":2.0,"id":1,"result":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"error":"broken"}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","result":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":null,"result":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":[1],"error":{}}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":null,"method":"m"}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"method":7}', 'not-json-rpc'],
    ['{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', 'not-json-rpc'],
  ])('%.80s is %s', (line, reason) => {
    expect(scan(line)).toMatchObject({ kind: 'rejected', reason });
  });

  it.each([
    ['a byte order mark', '\ufeff{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['bytes of Latin-1', '{"jsonrpc":"2.0","id":1,"result":"\xff\xe9"}', '{"jsonrpc":"2.0","id":1,"result":"��"}'],
    [
      'a notification with an id',
      '{"id":null,"jsonrpc":"2.0","method":"notifications/m"}',
      '{"jsonrpc":"2.0","method":"notifications/m"}',
    ],
    ['an error without an id', '{"jsonrpc":"2.0","error":{}}', '{"id":null,"jsonrpc":"2.0","error":{}}'],
  ])('is none because of %s, which is repaired', (what, line, repaired) => {
    const message = scan(what.includes('Latin') ? Buffer.from(line, 'latin1') : line);
    expect(message.kind !== 'rejected' && textAt(message.bytes, message.span)).toBe(repaired);
  });

  it('is none because of a batch with bytes that are not UTF-8', () => {
    const batch = scan(Buffer.from('["\xff",1]', 'latin1'));
    expect(batch.kind === 'rejected' && batch.elements?.map((span) => textAt(batch.bytes, span))).toEqual(['"�"', '1']);
  });

  it('tells the id that was seen before the fault, and not one behind it', () => {
    const early = scan('{"jsonrpc":"2.0","id":17,"result":{broken');
    const late = scan('{"jsonrpc":"2.0","result":{broken},"id":17}');
    expect(early.kind === 'rejected' && textAt(early.bytes, early.id)).toBe('17');
    expect(late).toMatchObject({ kind: 'rejected', id: undefined });
  });

  it('tells no id of the line before', () => {
    scan('{"jsonrpc":"2.0","id":17,"result":{}}');
    expect(scan('{broken')).toMatchObject({ kind: 'rejected', id: undefined });
    expect(scan('[1]')).toMatchObject({ kind: 'rejected', id: undefined });
  });
});

describe('a key that differs from a watched one in case only', () => {
  const around = (params: string) => `{"jsonrpc":"2.0","method":"m","params":${params},"id":7}`;

  it.each([
    [around('{"Name":1}'), 'Name'],
    [around('{"NAME":1,"name":2}'), 'NAME'],
    [around('{"name":2,"nAme":1,"Name":1}'), 'nAme'],
    [around('{"\\u004eame":1}'), 'Name'],
    [around('{"na\\u006dE":1}'), 'namE'],
    [around('{"_META":{}}'), '_META'],
    [around('{"_meta":{"progressto\u212aen":1}}'), 'progressto\u212aen'],
    [around('{"_meta":{"progreſsToken":1}}'), 'progreſsToken'],
    [around('{"_meta":{"progre\\u017f\\u017fToken":1}}'), 'progreſſToken'],
    ['{"jsonrpc":"2.0","id":7,"paramſ":{},"method":"m"}', 'paramſ'],
    ['{"jsonrpc":"2.0","id":7,"Params":{},"method":"m"}', 'Params'],
    ['{"jsonrpc":"2.0","id":7,"method":"m","Id":8}', 'Id'],
    ['{"jsonrpc":"2.0","id":7,"method":"m","METHOD":8}', 'METHOD'],
    ['{"jsonrpc":"2.0","id":7,"result":{},"Jsonrpc":8}', 'Jsonrpc'],
    ['{"jsonrpc":"2.0","id":7,"result":{},"\\u0052esult":8}', 'Result'],
    ['{"jsonrpc":"2.0","id":7,"Error":{},"result":{}}', 'Error'],
    ['{"jsonrpc":"2.0","id":7,"Result":{}}', 'Result'],
  ])('is refused and named: %s', (line, lookalike) => {
    const among = Buffer.from(`${line}\n{}`);
    for (const refused of [scan(line), scanner.scan(among, 0, among.length - 3)]) {
      expect(refused).toMatchObject({ kind: 'rejected', reason: 'lookalike-member', lookalike });
      // The id is read wherever it stands, so that the answer reaches its request.
      expect(refused.kind === 'rejected' && textAt(refused.bytes, refused.id)).toBe('7');
      expect(refused).toMatchObject({ isAnswer: !line.includes('"method"') });
    }
  });

  it.each([
    around('{"Names":1,"Nam":1,"n\u0430me":1,"\x7fmeta":1,"`meta":1,"":1,"N":1,"nime":1}'),
    around('{"arguments":{"Name":1,"_META":1}}'),
    around('[{"Name":1}]'),
    around('{"other":{"Name":1},"_meta":{"Name":1,"_meta":{"ProgressToken":1}}}'),
    around('{"na\\u006de":1,"éé":1,"\\u0000":1}'),
    '{"jsonrpc":"2.0","id":7,"result":{"Id":1,"Name":1,"Params":1}}',
    '{"jsonrpc":"2.0","id":7,"method":"m","ids":1,"i":1,"résult":1}',
  ])('is refused nowhere else: %s', (line) => {
    expect(scan(line).kind).not.toBe('rejected');
  });
});

describe('a line that has no end', () => {
  it('is not taken to go on in the next one, which is read as usual', () => {
    const lines = ['{"jsonrpc":"2.0","id":1,"result":', '{"jsonrpc":"2.0","id":2,"result":{}}', '}'];
    const chunk = Buffer.from(`${lines.join('\n')}\n`);
    let start = 0;
    const read = lines.map((line) => {
      const message = scanner.scan(chunk, start, start + line.length);
      start += line.length + 1;
      return message.kind === 'rejected' ? message.reason : textAt(message.bytes, message.span);
    });
    expect(read).toEqual(['not-json', lines[1], 'not-json']);
  });
});

describe('a batch', () => {
  it('is no message, and tells where its elements stand', () => {
    const elementsOf = (line: string) => {
      const batch = scan(line);
      return batch.kind === 'rejected' && batch.elements?.map((element) => textAt(batch.bytes, element));
    };
    expect(elementsOf(' [ {"a" : [{}]} ,"ü,]", 3 ]\r')).toEqual(['{"a" : [{}]}', '"ü,]"', '3']);
    expect(elementsOf('[ ]')).toEqual([]);
  });

  it.each(['7', '{"jsonrpc":"1.0"}', '[1,2,3,4]', '[1'])('is the only thing that has elements, %s has none', (line) => {
    expect(scan(line)).not.toHaveProperty('elements');
  });
});

describe('an accepted message', () => {
  it('may nest exactly as deep as the limit', () => {
    expect(scan('{"jsonrpc":"2.0","id":1,"result":[[[]]]}').kind).toBe('response');
  });

  it('keeps duplicates that nobody watches', () => {
    const line = '{"jsonrpc":"2.0","x":1,"x":2,"method":"m","params":{"a":1,"a":2,"arguments":{"name":1,"name":2}}}';
    expect(scan(line)).toMatchObject({ kind: 'notification', method: 'm' });
  });

  it('has no tokens where an array or a scalar stands in the way', () => {
    for (const params of ['[{"name":"x"}]', '"name"', '{"_meta":[{"progressToken":1}]}', '{"_meta":null}']) {
      const message = scan(`{"jsonrpc":"2.0","method":"m","params":${params}}`);
      expect(message).toMatchObject({ kind: 'notification', tokens: { name: undefined, token: undefined } });
    }
  });

  it('is found between white space', () => {
    const message = scan(' \t{"jsonrpc":"2.0","id":"x","method":"m"}\r');
    expect(message.kind === 'request' && textAt(message.bytes, message.span)).toBe(
      '{"jsonrpc":"2.0","id":"x","method":"m"}',
    );
  });

  it('may be an error with a null id, which says that the request could not be read', () => {
    expect(scan('{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}').kind).toBe('response');
  });

  it('leaves the prototype of objects alone, whatever its members are called', () => {
    const line =
      '{"jsonrpc":"2.0","method":"m","__proto__":{"a":1},"params":{"__proto__":{"name":"x"},"constructor":1}}';
    expect(scan(line)).toMatchObject({ kind: 'notification', tokens: { name: undefined } });
    expect(({} as Record<string, unknown>).a).toBeUndefined();
  });
});

const bytes = (text: string) => Buffer.from(text);

describe('messages put together as a batch', () => {
  const edited: SplicedMessage = {
    bytes: bytes('  {"id":1,"x":2}  '),
    span: { start: 2, end: 16 },
    edits: [{ span: { start: 8, end: 9 }, text: bytes('"é"') }],
  };
  const textOf = (message: SplicedMessage) => Buffer.from(splice(message)).toString();

  it('are an array of what each of them is, edits made', () => {
    const batch = batchMessage([edited, unedited(bytes('{}')), edited]);
    expect(textOf(batch)).toBe('[{"id":"é","x":2},{},{"id":"é","x":2}]');
    expect(splicedLength(batch)).toBe(splice(batch).length);
    expect(textOf(batchMessage([edited]))).toBe('[{"id":"é","x":2}]');
    expect(textOf(batchMessage([]))).toBe('[]');
  });

  it('are not copied', () => {
    const large = bytes(`{"x":"${'x'.repeat(100_000)}"}`);
    const pieces: Uint8Array[] = [];
    visitPieces(batchMessage([unedited(large), edited]), (piece) => pieces.push(piece));
    expect(pieces.some(({ buffer, byteOffset }) => buffer === large.buffer && byteOffset === large.byteOffset)).toBe(
      true,
    );
  });
});
