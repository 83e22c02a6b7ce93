// The beginning of a session: versions, capabilities, and what comes too early.
import type { Message } from '../../support/wire.js';
import type { Answering, Play } from '../play.js';
import { FAILS, type Row, SOUND } from '../row.js';

const MET = 'The session begins.';

/** A server on stdio that answers `initialize` in its own way. */
function greeting(hello: Message): Play {
  return { on: { initialize: hello } };
}

const HELLO = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };

/** The first request of a client. */
function opening(changes: object = {}) {
  const clientInfo = { name: 'c', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo, ...changes };
  return { jsonrpc: '2.0', id: 0, method: 'initialize', params };
}

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

export const HANDSHAKES: readonly Row[] = [
  ...['2024-11-05', '2025-03-26', '2025-06-18'].map((protocolVersion) => ({
    quirk: `A server answers with revision ${protocolVersion}`,
    right: MET,
    server: greeting({ ...HELLO, protocolVersion }),
  })),
  ...(
    [
      ['members that nobody knows', { ...HELLO, vendor: { x: 1 }, capabilities: { tools: {}, vendor: true } }],
      ['`instructions` that are null', { ...HELLO, instructions: null }],
      ['`tools` in its capabilities as true', { ...HELLO, capabilities: { tools: true } }],
      ['no version of itself', { ...HELLO, serverInfo: { name: 's' } }],
      ['an icon of a wrong type', { ...HELLO, serverInfo: { name: 's', version: '1', icons: 'x' } }],
      ['no `serverInfo`', { ...HELLO, serverInfo: undefined }],
    ] as const
  ).map(([name, hello], at) => ({
    ...{ quirk: `A server answers \`initialize\` with ${name}`, right: MET, server: greeting(hello) },
    ...(at > 0 && { direct: 'fails: the SDK rejects the answer', through: SOUND }),
  })),
  ...(
    [
      [
        'A server logs before it answers `initialize`',
        { method: 'notifications/message', params: { level: 'info', data: 'starting' } },
      ],
      ['A server pings before it answers `initialize`', { id: 'p', method: 'ping' }],
      ['A server asks for the roots before `initialized`', { id: 'r', method: 'roots/list' }],
    ] as const
  ).map(([quirk, early]): Row => {
    const initialize: Answering = (request, server) => {
      server.say({ jsonrpc: '2.0', ...early });
      server.soundly(request);
    };
    return { quirk, right: MET, server: { on: { initialize } } };
  }),
  {
    quirk: 'A server prints lines for people before it answers',
    right: 'They are logged.',
    server: {
      begin: (server) => server.write('Server v1.2 is running on stdio\n\n🚀 ready\n{"level":"info"}\n[1,2]\n'),
    },
  },
  {
    quirk: 'A server prints an object without a protocol after each answer',
    right: 'It is ignored.',
    server: { line: (line) => `${line}{"status":200,"message":"Success","results":[]}\n` },
  },
  {
    quirk: 'A server writes CRLF at the end of each line',
    right: MET,
    server: { line: (line) => line.replace('\n', '\r\n') },
  },
  {
    quirk: 'A server indents its lines',
    right: MET,
    server: { line: (line) => `  \t${line}` },
  },
  {
    quirk: 'A server ends at a cancellation',
    right: 'It is started again.',
    server: {
      on: { 'notifications/cancelled': (_, server) => server.exit() },
    },
    ask: async (client) => {
      const stopped = new AbortController();
      const first = client.call('echo', {}, { signal: stopped.signal });
      stopped.abort();
      await first.catch(() => {});
      for (let tries = 0; ; tries += 1) {
        const text = await client.call().catch((error: Error) => `${FAILS}: ${error.message}`);
        if (text === 'echo: hello' || tries > 20) return text;
      }
    },
    direct: /^fails/,
    through: 'echo: hello',
  },
  {
    quirk: 'A client says `initialized` without its prefix',
    right: 'It is ignored.',
    client: async (wire) => {
      wire.say(opening());
      await wire.answer(0);
      wire.say({ jsonrpc: '2.0', method: 'initialized' }, LIST);
      return await wire.answer(1);
    },
    direct: 'tools: echo',
  },
  {
    quirk: 'A client asks before `initialized`',
    right: 'It gets its answer.',
    client: async (wire) => {
      wire.say(opening(), LIST);
      return await wire.answer(1);
    },
    direct: 'tools: echo',
  },
  {
    quirk: 'A client names no `clientInfo`',
    right: MET,
    client: async (wire) => {
      wire.say(opening({ clientInfo: undefined }));
      await wire.answer(0);
      wire.say(LIST);
      return await wire.answer(1);
    },
    direct: 'tools: echo',
  },
  {
    quirk: 'A client sends `params: null`',
    right: 'It is as if there were none.',
    client: async (wire) => {
      await wire.hello();
      wire.say({ ...LIST, params: null });
      return await wire.answer(1);
    },
    direct: 'fails: no answer',
    through: 'tools: echo',
  },
  {
    quirk: 'A client sends CRLF',
    right: 'Its messages are read.',
    client: async (wire) => {
      await wire.hello();
      wire.write(`${JSON.stringify(LIST)}\r\n`);
      return await wire.answer(1);
    },
    direct: 'tools: echo',
  },
  {
    quirk: 'A client sends empty lines',
    right: 'They are ignored.',
    client: async (wire) => {
      await wire.hello();
      wire.write('\n\r\n  \n');
      wire.say(LIST);
      return await wire.answer(1);
    },
    direct: 'tools: echo',
  },
];
