// Output that is not JSON-RPC, before, between and instead of answers.
import { MARK } from './mark.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;
/** Answers a call with bytes of its own making. */
const answering = (make) => ({ onCall: (id, params, server) => server.raw(make(id, params)) });
const good = (id, text) =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"${text}"}]}}`;

export const malformed = [
  { name: 'answers that are cut in the middle', ...answering((id) => `${good(id, MARK).slice(0, 30)}\n`) },
  { name: 'two answers on one line', ...answering((id) => `${good(id, 'one')}${good(id, MARK)}\n`) },
  { name: 'one answer on three lines', ...answering((id) => `${good(id, MARK).replaceAll(',', ',\n')}\n`) },
  { name: 'answers in single quotes', ...answering((id) => `${good(id, MARK).replaceAll('"', "'")}\n`) },
  { name: 'answers with trailing commas', ...answering((id) => `${good(id, MARK).replace(/}$/, ',}')}\n`) },
  {
    name: 'answers with NaN and Infinity',
    ...answering((id) => `{"jsonrpc":"2.0","id":${id},"result":{"a":NaN,"b":-Infinity}}\n`),
  },
  { name: 'answers with comments', ...answering((id) => `/* ${MARK} */${good(id, 'x')} // end\n`) },
  { name: 'answers that end with CR only', ...answering((id) => `${good(id, MARK)}\r`) },
  { name: 'answers with CR inside', ...answering((id) => `${good(id, 'a').replace(':', ':\r')}\r\n`) },
  { name: 'answers with NUL bytes around', ...answering((id) => `\0${good(id, MARK)}\0\n`) },
  { name: 'answers with NUL inside a string', ...answering((id) => `${good(id, `a\0${MARK}`)}\n`) },
  { name: 'answers with a byte order mark', ...answering((id) => `\ufeff${good(id, 'x')}\n`) },
  { name: 'answers in UTF-16', ...answering((id) => Buffer.from(`${good(id, MARK)}\n`, 'utf16le')) },
  {
    name: 'answers with invalid UTF-8',
    ...answering((id) => Buffer.from(`${good(id, '\xff\xfe\xc0\xaf')}\n`, 'latin1')),
  },
  { name: 'answers with lone surrogates as escapes', ...answering((id) => `${good(id, '\\ud800 \\udfff')}\n`) },
  {
    name: 'answers with surrogates in UTF-8',
    ...answering((id) => Buffer.from(`${good(id, '\xed\xa0\x80')}\n`, 'latin1')),
  },
  { name: 'answers with control characters', ...answering((id) => `${good(id, '\u0001\u001b[2J\u0007')}\n`) },
  {
    name: 'answers with numbers of 100,000 digits',
    ...answering((id) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"n":${'9'.repeat(100_000)}}}\n`),
  },
  {
    name: 'answers with 1e999999',
    ...answering((id) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"n":1e999999}}\n`),
  },
  {
    name: 'answers with 100,000 levels of nesting',
    ...answering((id) => `{"jsonrpc":"2.0","id":${id},"result":${'['.repeat(100_000)}${']'.repeat(100_000)}}\n`),
  },
  { name: 'open brackets, 4 MiB on a line', ...answering(() => `${'['.repeat(4 * MIB)}\n`) },
  {
    name: 'answers with 500,000 members',
    ...answering(
      (id) => `{"jsonrpc":"2.0","id":${id},"result":{${Array.from({ length: 500_000 }, (_, i) => `"${i}":0`)}}}\n`,
    ),
  },
  {
    name: 'answers with duplicate members',
    ...answering(
      (id) =>
        `{"jsonrpc":"2.0","id":${id},"result":{"content":[]},"result":{"content":[{"type":"text","text":"${MARK}"}]},"id":${id}}\n`,
    ),
  },
  {
    name: 'answers with __proto__ everywhere',
    ...answering(
      (id) =>
        `{"__proto__":{"id":1},"jsonrpc":"2.0","id":${id},"result":{"__proto__":{"isError":true},"content":[],"constructor":{"prototype":{"polluted":"${MARK}"}}}}\n`,
    ),
  },
  {
    name: 'answers without a version',
    ...answering((id) => `{"id":${id},"result":{"content":[{"type":"text","text":"${MARK}"}]}}\n`),
  },
  {
    name: 'answers of version 1.0',
    ...answering((id) => `{"jsonrpc":"1.0","id":${id},"result":{"content":[]},"error":null}\n`),
  },
  {
    name: 'answers with result and error',
    ...answering(
      (id) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[]},"error":{"code":1,"message":"${MARK}"}}\n`,
    ),
  },
  { name: 'answers with neither result nor error', ...answering((id) => `{"jsonrpc":"2.0","id":${id}}\n`) },
  { name: 'answers with a null result', ...answering((id) => `{"jsonrpc":"2.0","id":${id},"result":null}\n`) },
  {
    name: 'results that are numbers, texts and lists',
    ...answering((id) => `{"jsonrpc":"2.0","id":${id},"result":[1,"${MARK}"]}\n`),
  },
  { name: 'errors that are texts', ...answering((id) => `{"jsonrpc":"2.0","id":${id},"error":"${MARK}"}\n`) },
  {
    name: 'errors with wrong types inside',
    ...answering((id) => `{"jsonrpc":"2.0","id":${id},"error":{"code":"x","message":{"a":1}}}\n`),
  },
  {
    name: 'errors with a message of 8 MiB',
    ...answering((id) => `{"jsonrpc":"2.0","id":${id},"error":{"code":-1,"message":"${'m'.repeat(8 * MIB)}"}}\n`),
  },
  { name: 'answers of 20 MiB', ...answering((id) => `${good(id, 'x'.repeat(20 * MIB))}\n`), attackMs: 2_500 },
  {
    name: 'answers longer than maxFrame',
    settings: { maxFrame: '64KiB' },
    ...answering((id) => `${good(id, 'x'.repeat(MIB))}\n`),
  },
  {
    name: 'batches of answers for requests of nobody',
    ...answering((id) => `[${good(id, 'x')},${good(id + 1, MARK)},${good(0, MARK)},1,null,[]]\n`),
  },
  { name: 'a batch of 100,000 elements', ...answering(() => `[${'1,'.repeat(99_999)}1]\n`) },
  { name: 'nested batches', ...answering((id) => `[[[[${good(id, MARK)}]]]]\n`) },
  { name: 'a banner of 1 MiB before the handshake', onStart: ({ raw }) => raw(`${'*'.repeat(MIB)}\n`) },
  {
    name: '50,000 lines of a log on stdout',
    onInitialized: ({ raw }) => raw('INFO something happened\n'.repeat(50_000)),
  },
  {
    name: 'ANSI escapes on stdout',
    onInitialized: ({ raw }) => raw('\u001b[2J\u001b]0;evil\u0007\u001b[31m\n'.repeat(1_000)),
  },
  {
    name: 'HTTP on stdout',
    onInitialized: ({ raw }) => raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}\r\n'),
  },
  {
    name: 'messages with Content-Length heads, as language servers do',
    onCall: (id, _, { raw }) => raw(`Content-Length: ${good(id, 'x').length}\r\n\r\n${good(id, 'x')}`),
  },
  {
    name: 'unfinished lines of 60 MiB, hoarded by five servers',
    isHoard: true,
    attackers: 5,
    attackMs: 4_000,
    onInitialized: ({ raw }) => raw(`{"jsonrpc":"2.0","method":"${'x'.repeat(60 * MIB)}`),
  },
  {
    name: 'an unfinished line that grows by a byte',
    onInitialized: ({ raw, pause }) => {
      raw(`{"jsonrpc":"2.0","method":"${'x'.repeat(8 * MIB)}`);
      for (let times = 0; times < 3_000; times += 1) {
        raw('x');
        if (times % 10 === 0) pause(1);
      }
    },
  },
];
