// Bytes of lines on stdio that are not as the specification wants them.

import { tool } from '../play.js';
import { NO_ANSWER, type Row } from '../row.js';

const REPLACED = 'The bytes become U+FFFD, as in every client, and the status says so.';
const text = (value: string) => ({ content: [{ type: 'text', text: value }] });
const latin1 = (line: string) => Buffer.from(line, 'latin1');

/** A server whose results have this text, in these bytes. */
function inBytes(quirk: string, bytes: string, shown: string): Row {
  const server = { result: text(bytes), line: latin1 };
  return { quirk, right: REPLACED, server, direct: `tools: echo; echo: ${shown}`, status: /repaired messages: 1, / };
}

export const BYTES: readonly Row[] = [
  inBytes('A result in Latin-1', 'caf\xe9', 'caf�'),
  inBytes('A result in GBK', '\xc4\xe3\xba\xc3', '���'),
  inBytes('A result with half a surrogate', 'a\xed\xa0\x80b', 'a���b'),
  inBytes('A result that was cut inside a character', 'a\xe2\x82', 'a�'),
  {
    quirk: 'A description in Latin-1',
    right: REPLACED,
    server: { tools: [tool('echo', { description: 'caf\xe9' })], line: latin1 },
    status: /repaired messages/,
  },
  {
    quirk: 'Log lines in Latin-1 between the answers',
    right: 'They are in the log of the server.',
    server: {
      on: {
        'tools/call': (request, server) => {
          for (let count = 0; count < 5; count += 1) server.write(latin1('Gr\xfc\xdfe\n'));
          server.soundly(request);
        },
      },
    },
  },
  {
    quirk: 'A byte order mark before the first line of the server',
    right: 'It is skipped.',
    server: { begin: (server) => server.write('\ufeff') },
    direct: NO_ANSWER,
    through: 'tools: echo; echo: hello',
  },
  {
    quirk: 'A byte order mark before each line of the server',
    right: 'It is skipped.',
    server: { line: (line) => `\ufeff${line}` },
    direct: NO_ANSWER,
    through: 'tools: echo; echo: hello',
  },
  {
    quirk: 'A byte order mark before the first message of the client',
    right: 'It is skipped.',
    client: async (wire) => {
      wire.write('\ufeff');
      return await wire.hello();
    },
    direct: NO_ANSWER,
    through: 'answered',
  },
  {
    quirk: 'A request of the client in Latin-1',
    right: 'The bytes become U+FFFD, as in the official servers.',
    client: async (wire) => {
      await wire.hello();
      const params = { name: 'echo', arguments: { text: 'caf\xe9' } };
      wire.write(latin1(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`));
      return await wire.answer(1);
    },
    direct: 'echo: caf�',
  },
  ...['\r\n', '\r\r\n', ' \n', '\n\n', '\n\r\n', '\t\n'].map(
    (end): Row => ({
      quirk: `Lines that end with ${JSON.stringify(end)}`,
      right: 'White space around a message means nothing.',
      server: { line: (line) => line.replace('\n', end) },
    }),
  ),
  {
    quirk: 'Carriage returns between the members of each message',
    right: 'They are white space, and become spaces.',
    server: { line: (line) => line.replaceAll(',"', ',\r"').replace('{', '{\r') },
  },
  {
    quirk: 'U+2028, U+2029 and U+0085 in a text',
    right:
      'They reach the client as they are: behind them there can be no message, because quotes in a text are escaped.',
    server: { result: text('a\u2028b\u2029c\u0085d') },
    direct: 'tools: echo; echo: a\u2028b\u2029c\u0085d',
  },
];
