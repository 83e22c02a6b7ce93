// Bodies of POST: their type, their coding, their text, and JSON-RPC.
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { utf8 } from '../wire.mjs';

const MIB = 1024 * 1024;
const type = (value) => () => ({ headers: { 'content-type': value } });
const body = (text) => () => ({ body: typeof text === 'function' ? text() : text });
const coded =
  (coding, compress) =>
  ({ message, nonce }) => ({
    headers: { 'content-encoding': coding },
    body: compress(Buffer.from(message(nonce))).toString('latin1'),
  });

const TYPES = [
  'text/plain',
  'text/json',
  'application/jsonx',
  'application/json-seq',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/octet-stream',
  'text/html',
  '',
  '/',
  'application',
  'application/*',
  '*/*',
  'text/plain; application/json',
  'text/plain, application/json',
  'application/json; charset=utf-16',
  'application/json; charset=iso-8859-1',
  'application/json; charset=utf-7',
];

const NOT_MESSAGES = {
  nothing: '',
  blanks: '   \r\n\t ',
  null: 'null',
  true: 'true',
  'a number': '42',
  'a string': '"x"',
  'an empty object': '{}',
  'an empty batch': '[]',
  'a batch in a session without batches': '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
  'a batch of 101 messages': `[${Array.from({ length: 101 }, (_, i) => `{"jsonrpc":"2.0","id":${i},"method":"ping"}`)}]`,
  'a batch in a batch': '[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]',
  'no version': '{"id":1,"method":"ping"}',
  'version 1.0': '{"jsonrpc":"1.0","id":1,"method":"ping"}',
  'version 2.0 as a number': '{"jsonrpc":2.0,"id":1,"method":"ping"}',
  'a method that is a number': '{"jsonrpc":"2.0","id":1,"method":1}',
  'a method that is null': '{"jsonrpc":"2.0","id":1,"method":null}',
  'a method that is an object': '{"jsonrpc":"2.0","id":1,"method":{}}',
  'an id that is an object': '{"jsonrpc":"2.0","id":{},"method":"ping"}',
  'an id that is a list': '{"jsonrpc":"2.0","id":[1],"method":"ping"}',
  'an id that is true': '{"jsonrpc":"2.0","id":true,"method":"ping"}',
  'an id that is null': '{"jsonrpc":"2.0","id":null,"method":"ping"}',
  'a cut text': '{"jsonrpc":"2.0","id":1,"method":"pi',
  'two texts': '{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
  'two lines': '{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}',
  'a text and rubbish': '{"jsonrpc":"2.0","id":1,"method":"ping"}x',
  'single quotes': "{'jsonrpc':'2.0','id':1,'method':'ping'}",
  'a comment': '{"jsonrpc":"2.0",/* x */"id":1,"method":"ping"}',
  'a trailing comma': '{"jsonrpc":"2.0","id":1,"method":"ping",}',
  NaN: '{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
  'a number with a leading zero': '{"jsonrpc":"2.0","id":01,"method":"ping"}',
  NUL: '\0',
  'NUL in a string': '{"jsonrpc":"2.0","id":"a\0b","method":"ping"}',
  'a line end in a string': '{"jsonrpc":"2.0","id":"a\nb","method":"ping"}',
  'UTF-16': Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}', 'utf16le').toString('latin1'),
  '600 levels of nesting': `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'{"a":'.repeat(600)}1${'}'.repeat(600)}}`,
  '200,000 levels of nesting': `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}}`,
  '200,000 open brackets': '['.repeat(200_000),
  XML: '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
};

/** Strange, but messages: an answer, whatever it says. */
const MESSAGES = {
  'duplicate ids': '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
  'duplicate methods': '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}',
  'an id of 2^53 + 1': '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}',
  'an id of 1.5': '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
  'an id of 1e400': '{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
  'an id of -0': '{"jsonrpc":"2.0","id":-0,"method":"ping"}',
  'an id of 1 MiB': `{"jsonrpc":"2.0","id":"${'i'.repeat(MIB)}","method":"ping"}`,
  'an empty id': '{"jsonrpc":"2.0","id":"","method":"ping"}',
  'an id of __proto__': '{"jsonrpc":"2.0","id":"__proto__","method":"ping"}',
  'a member __proto__': '{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{"method":"x"}}',
  // Read as the decoder of every server reads them, with U+FFFD.
  'invalid UTF-8': '{"jsonrpc":"2.0","id":"\xff\xfe","method":"ping"}',
  'overlong UTF-8': '{"jsonrpc":"2.0","id":"\xc0\xaf","method":"ping"}',
  'a surrogate in UTF-8': '{"jsonrpc":"2.0","id":"\xed\xa0\x80","method":"ping"}',
  'a lone surrogate as an escape': '{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
  'an escaped method': '{"jsonrpc":"2.0","id":1,"method":"\\u0070ing"}',
  'a byte order mark': utf8('\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}'),
  'a method that does not exist': '{"jsonrpc":"2.0","id":1,"method":"evil/method"}',
  'a method of 1 MiB': `{"jsonrpc":"2.0","id":1,"method":"${'m'.repeat(MIB)}"}`,
  'a method that is __proto__': '{"jsonrpc":"2.0","id":1,"method":"__proto__"}',
  'an empty method': '{"jsonrpc":"2.0","id":1,"method":""}',
  'a method with result and error': '{"jsonrpc":"2.0","id":1,"method":"ping","result":{},"error":{}}',
  'a call without a name': '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
  'a call with a number as name': '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}',
  'a call with params of a wrong type': '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}',
  'a call of __proto__': '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"__proto__","arguments":{}}}',
  'a call of a name of 1 MiB': `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${'n'.repeat(MIB)}"}}`,
  'a cursor that is planted': '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"AAAA"}}',
  'a cursor that is an object': '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":{}}}',
  'a resource of the file system':
    '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
  'a task of nobody': '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"../x"}}',
  'a log level that does not exist': '{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"evil"}}',
  '100 levels of nesting': `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`,
  '300,000 members': `{"jsonrpc":"2.0","id":1,"method":"ping","params":{${Array.from({ length: 300_000 }, (_, i) => `"${i}":0`)}}}`,
};

export const bodies = {
  name: 'bodies',
  attacks: [
    ...TYPES.map((value) => ({ name: `type ${value || 'that is empty'}`, request: type(value), expect: [400, 415] })),
    { name: 'no type', request: () => ({ headers: { 'content-type': undefined } }), expect: 415 },
    { name: 'type with charset utf-8', request: type('application/json; charset=utf-8'), expect: 200 },
    { name: 'type in other letters', request: type('APPLICATION/JSON; Charset="UTF-8"'), expect: [200, 415] },
    { name: 'gzip', request: coded('gzip', gzipSync), expect: 415 },
    { name: 'deflate', request: coded('deflate', deflateSync), expect: 415 },
    { name: 'br', request: coded('br', brotliCompressSync), expect: 415 },
    { name: 'an unknown coding', request: () => ({ headers: { 'content-encoding': 'evil' } }), expect: 415 },
    { name: 'gzip twice', request: coded('gzip, gzip', (bytes) => gzipSync(gzipSync(bytes))), expect: 415 },
    {
      name: 'a gzip bomb',
      request: () => ({
        headers: { 'content-encoding': 'gzip' },
        body: gzipSync(Buffer.alloc(64 * MIB)).toString('latin1'),
      }),
      expect: 415,
    },
    {
      name: 'gzip bytes without the header',
      request: ({ message, nonce }) => ({ body: gzipSync(message(nonce)).toString('latin1') }),
      expect: 400,
    },
    { name: '4 MiB and one byte', request: body(() => ' '.repeat(4 * MIB + 1)), expect: 413 },
    { name: '4 MiB of blanks', request: body(() => ' '.repeat(4 * MIB)), how: { waitMs: 5_000 }, expect: 400 },
    {
      name: '5 MiB in chunks',
      raw: ({ right, request }) => {
        const { 'content-length': _, ...headers } = right.headers;
        const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
        return [
          request({ headers: { ...headers, 'transfer-encoding': 'chunked' }, body: `${chunk.repeat(80)}0\r\n\r\n` }),
        ];
      },
      how: { waitMs: 5_000 },
      expect: [413, 'closed'],
    },
    {
      name: 'a length beyond the body, then the end',
      raw: ({ right, request, message, nonce }) => [
        request({ headers: { ...right.headers, 'content-length': 9_000 }, body: message(nonce) }),
      ],
      how: { end: true },
      expect: [400, 'closed'],
    },
    {
      name: 'a length beyond the body, then a reset',
      raw: ({ right, request, message, nonce }) => [
        request({ headers: { ...right.headers, 'content-length': 9_000 }, body: message(nonce) }),
        50,
      ],
      how: { abort: true },
      expect: 'closed',
    },
    {
      name: 'a length below the body',
      raw: ({ right, request, message, nonce }) => [
        request({ headers: { ...right.headers, 'content-length': 10 }, body: message(nonce) }),
      ],
      how: { responses: 2 },
      most: 2,
      expect: 400,
    },
    {
      name: 'a body for GET',
      request: ({ message, nonce }) => ({
        method: 'GET',
        headers: { accept: 'application/json', 'content-length': message(nonce).length },
        body: message(nonce),
      }),
      expect: [400, 406, 413, 415],
    },
    { name: 'a session of batches with a batch of everything', act: mixedBatch },
    ...Object.entries(NOT_MESSAGES).map(([name, text]) => ({
      name: `not a message: ${name}`,
      request: body(text),
      how: { waitMs: 4_000 },
      expect: 400,
    })),
    ...Object.entries(MESSAGES).map(([name, text]) => ({
      name: `a message: ${name}`,
      request: body(text),
      how: { waitMs: 4_000 },
      expect: [200, 400],
      check: isAnswer,
    })),
  ],
};

/** Each answer is one JSON-RPC message, with a result or an error. */
function isAnswer({ responses: [{ body: text }] }) {
  try {
    const { jsonrpc, result, error } = JSON.parse(Buffer.from(text, 'latin1').toString());
    if (jsonrpc === '2.0' && (result === undefined) !== (error === undefined)) return undefined;
  } catch {
    // Below.
  }
  return `not an answer: ${text.slice(0, 200)}`;
}

async function mixedBatch({ gateway, from }) {
  const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'evil', version: '1' } };
  const { responses } = await gateway.post(undefined, { id: 0, method: 'initialize', params }, { from });
  const session = responses[0].headers.get('mcp-session-id');
  const text =
    '[1,null,[],{},{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]';
  const headers = { ...gateway.headers(session), 'content-length': text.length };
  const answer = (await gateway.send({ headers, body: text }, { from })).responses[0];
  if (answer?.status !== 200) return `${answer?.status}`;
  const errors = JSON.parse(answer.body).filter(({ error }) => error?.code === -32600).length;
  const results = JSON.parse(answer.body).filter(({ result }) => result !== undefined).length;
  return errors === 5 && results === 2
    ? undefined
    : `${errors} errors and ${results} results: ${answer.body.slice(0, 300)}`;
}
