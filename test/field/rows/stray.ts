// Messages that answer nothing, or the wrong request.
import type { Message } from '../../support/wire.js';
import type { HttpPlay } from '../http-play.js';
import { NO_ANSWER, type Row } from '../row.js';

const COUNTED = 'It is counted in the status, and otherwise ignored: the server works.';

/** A server that writes the messages five times before the answer to each call, which is more than three in a minute. */
function before(quirk: string, messages: (request: Message) => readonly Message[], status?: RegExp): Row {
  const call = (request: Message, server: { say(...said: unknown[]): void; soundly(request: Message): void }) => {
    for (let count = 0; count < 5; count += 1) server.say(...messages(request));
    server.soundly(request);
  };
  return { quirk, right: COUNTED, server: { on: { 'tools/call': call } }, ...(status && { status }) };
}

/** A server whose answers have their ids in another form. */
function withIds(quirk: string, change: (id: string) => string): Row {
  return {
    quirk,
    right: 'One pending request fits, so it is answered.',
    server: { line: (line) => line.replace(/"id":(\d+)/, (_, id) => `"id":${change(id)}`) },
  };
}

/** A server that can never be ready. */
function useless(quirk: string, line: (line: string) => string, status: RegExp): Row {
  return {
    quirk,
    right: 'The status shows what came.',
    server: { line },
    entry: { startTimeout: '1s', era: 'legacy' },
    ask: (client) => client.tools(),
    direct: NO_ANSWER,
    through: 'tools: none',
    status,
  };
}

/** A server behind a URL that changes the body of each answer. */
function overHttp(quirk: string, change: (body: string) => string | Uint8Array): Row {
  const take: HttpPlay['take'] = ({ message }, response, server) => {
    const answer = server.answerTo(message);
    if (answer === undefined) return false;
    response.writeHead(200, { 'content-type': 'application/json' }).end(change(JSON.stringify(answer)));
    return true;
  };
  return { quirk, right: 'It is read as on stdio.', http: { take } };
}

const jsonrpc = '2.0';
const error = { code: -32601, message: 'Method not found' };

export const STRAY: readonly Row[] = [
  before('A notification that nobody knows before each answer', () => [{ jsonrpc, method: 'notifications/vendor' }]),
  before('Results with the id null, as answers to notifications', () => [{ jsonrpc, id: null, result: {} }], /junk 5/),
  before('Results without an id', () => [{ jsonrpc, result: {} }], /junk 5/),
  before('Results and errors without a version', () => [{ result: {} }, { error }], /junk 10/),
  before('Errors with the id null', () => [{ jsonrpc, id: null, error }], /unknown 5/),
  before('Errors without an id', () => [{ jsonrpc, error }], /unknown 5/),
  before('Answers to ids that nobody asked', () => [{ jsonrpc, id: 4711, result: {} }], /unknown 5/),
  before('Answers to ids of another kind', () => [{ jsonrpc, id: 'init', result: {} }], /unknown 5/),
  before('The answer to the list again', () => [{ jsonrpc, id: 1, result: { tools: [] } }], /duplicate 5/),
  before('Messages with a method and a result', ({ id }) => [{ jsonrpc, id, method: 'x', result: {} }], /junk 5/),
  before('Messages with nothing but a version', () => [{ jsonrpc }], /junk 5/),
  before('Requests whose method is a number', () => [{ jsonrpc, id: 1, method: 7 }], /junk 5/),
  before('Progress that nobody asked for', () => [
    { jsonrpc, method: 'notifications/progress', params: { progressToken: 'none', progress: 1 } },
  ]),
  before(
    'Notifications with the id null',
    () => [{ jsonrpc, id: null, method: 'notifications/tools/list_changed' }],
    /repaired messages: 5/,
  ),
  {
    quirk: 'A second answer to each request',
    right: 'The first one counts, and the second one is counted.',
    server: {
      on: {
        'tools/call': (request, server) => {
          server.soundly(request);
          server.answer(request, { content: [{ type: 'text', text: 'the second' }] });
        },
      },
    },
    status: /duplicate 1/,
  },
  withIds('Ids that come back as text', (id) => `"${id}"`),
  withIds('Ids that come back with a fraction', (id) => `${id}.0`),
  withIds('Ids that come back as text with a fraction', (id) => `"${id}.0"`),
  withIds('Ids that come back with an exponent', (id) => `${id}e0`),
  useless('All answers have the id 0', (line) => line.replace(/"id":\d+/, '"id":0'), /unknown-id.*"id":0/),
  useless('No line ends', (line) => line.trimEnd(), /no-newline.*"id":1/),
  useless(
    'Lines end with a carriage return only',
    (line) => line.replace('\n', '\r'),
    /carriage-return-instead.*"id":1/,
  ),
  overHttp('Ids that come back as text over HTTP', (body) => body.replace(/"id":(\d+)/, '"id":"$1"')),
  overHttp('Ids that come back with a fraction over HTTP', (body) => body.replace(/"id":(\d+)/, '"id":$1.0')),
  overHttp('Carriage returns in answers over HTTP', (body) => body.replaceAll(',"', ',\r"')),
  overHttp('Answers in Latin-1 over HTTP', (body) => Buffer.from(body.replace('played', 'caf\xe9'), 'latin1')),
  {
    quirk: 'The id of an error comes back as text',
    right: 'The client gets the error.',
    server: {
      on: { 'tools/call': ({ id }, server) => server.say({ jsonrpc, id: String(id), error }) },
    },
    ask: (client) => client.call().catch(({ message }) => `refused: ${message}`),
    direct: 'refused: MCP error -32601: Method not found',
  },
  {
    quirk: 'Progress tokens that come back as text',
    right: 'The client gets the progress.',
    server: {
      on: {
        'tools/call': (request, server) => {
          const progressToken = String(request.params._meta.progressToken);
          const params = { progressToken, progress: 1 };
          server.say({ jsonrpc, method: 'notifications/progress', params });
          setImmediate(() => server.soundly(request));
        },
      },
    },
    ask: async (client) => {
      const seen: number[] = [];
      const outcome = await client.call('echo', {}, { onprogress: ({ progress }: Message) => seen.push(progress) });
      return `${outcome}; progress: ${seen.join(' ') || 'none'}`;
    },
    direct: 'echo: hello; progress: 1',
  },
  {
    quirk: 'Calls whose arguments together are larger than what may be unread',
    right: 'They wait until the server reads.',
    server: {},
    entry: { maxUnwritten: '64KiB' },
    ask: async (client) => {
      const text = 'x'.repeat(100_000);
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => client.call('echo', { text })));
      return `${outcomes.filter((outcome) => outcome === `echo: ${text}`).length} of 8`;
    },
    direct: '8 of 8',
  },
  {
    quirk: 'A client whose ids are texts',
    right: 'The answer has the id of the request.',
    client: async (wire) => {
      await wire.hello();
      wire.say({ jsonrpc: '2.0', id: 'a', method: 'tools/list' });
      return await wire.answer('a');
    },
    direct: 'tools: echo',
  },
];
