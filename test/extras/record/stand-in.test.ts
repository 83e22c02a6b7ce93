import { describe, expect, it } from 'vitest';
import type { RecordedEntry } from '../../../src/extras/record/recording-file.js';
import { ServerScript, StandIn } from '../../../src/extras/record/stand-in.js';
import { flush, type Message } from '../../support/wire.js';

/** A recording of one server. `>` marks messages of the gateway, `<` those of the server. */
function recorded(...lines: readonly string[]): RecordedEntry[] {
  return lines.map((line, at) => ({
    ...{ line: at + 2, t: at, conn: 1, server: 'files', gen: 1 },
    dir: line.startsWith('>') ? 'g>s' : 's>g',
    raw: line.slice(1),
  }));
}

function standIn(...lines: readonly string[]) {
  const sent: string[] = [];
  const script = new ServerScript(recorded(...lines), 'files');
  const server = new StandIn({ script, server: 'files', send: (text) => sent.push(text) });
  return {
    /** Passes a message to the stand-in. Resolves with the messages that it sends because of that message. */
    receive: async (message: Message | string): Promise<string[]> => {
      server.receive(typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }));
      await flush();
      return sent.splice(0);
    },
  };
}

const CALL = '>{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","arguments":{"path":"a","n":1}}}';
const call = (args: Message, id: number | string = 1, meta?: Message) => ({
  ...{ id, method: 'tools/call' },
  params: { arguments: args, name: 'read', ...(meta && { _meta: meta }) },
});

describe('a server that is replayed', () => {
  it('answers as it did, exactly, under the id of the new request', async () => {
    const { receive } = standIn(CALL, '<{ "jsonrpc":"2.0","id":5,"result":{"n":1.0} }');
    expect(await receive(call({ n: 1, path: 'a' }, 'x', { traceparent: '00' }))).toEqual([
      '{ "jsonrpc":"2.0","id":"x","result":{"n":1.0} }',
    ]);
  });

  it('gives equal requests their answers in turn, and the last one from then on', async () => {
    const answer = (n: number) => `<{"jsonrpc":"2.0","id":5,"result":{"n":${n}}}`;
    const { receive } = standIn(CALL, answer(1), CALL, answer(2));
    const results = [];
    for (let count = 0; count < 3; count += 1) {
      const [text = ''] = await receive(call({ path: 'a', n: 1 }));
      results.push(JSON.parse(text).result.n);
    }
    expect(results).toEqual([1, 2, 2]);
  });

  it('reports progress under the token of the new request, or not at all if nobody wants it', async () => {
    const { receive } = standIn(
      '>{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","_meta":{"progressToken":5}}}',
      '<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}',
      '<{"jsonrpc":"2.0","id":5,"result":{}}',
    );
    const request = { id: 8, method: 'tools/call', params: { name: 'read', _meta: { progressToken: 'p' } } };
    expect((await receive(request)).map((text) => JSON.parse(text))).toMatchObject([
      { params: { progressToken: 'p', progress: 1 } },
      { id: 8 },
    ]);
    expect(await receive({ ...request, params: { name: 'read' } })).toHaveLength(1);
  });

  it('sends its own requests where it did, and goes on when they are answered', async () => {
    const { receive } = standIn(
      CALL,
      '<{"jsonrpc":"2.0","id":"ask","method":"roots/list"}',
      '>{"jsonrpc":"2.0","id":"ask","result":{"roots":[]}}',
      '<{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
      '<{"jsonrpc":"2.0","id":5,"result":{"ok":true}}',
    );
    const [asked = ''] = await receive(call({ path: 'a', n: 1 }));
    expect(JSON.parse(asked)).toEqual({ jsonrpc: '2.0', id: 1, method: 'roots/list' });
    expect((await receive({ id: 1, result: { roots: [] } })).map((text) => JSON.parse(text))).toMatchObject([
      { method: 'notifications/message' },
      { id: 1, result: { ok: true } },
    ]);
  });

  it('sends after a notification what followed it', async () => {
    const { receive } = standIn(
      '>{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '<{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    );
    expect(await receive({ method: 'notifications/initialized' })).toEqual([
      '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
    ]);
  });

  it('shakes hands with any client as it did, in whatever era', async () => {
    const { receive } = standIn(
      '>{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"a":1}}}',
      '<{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}',
      '>{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"clientInfo":{"name":"then"}}}',
      '<{"jsonrpc":"2.0","id":2,"result":{"serverInfo":{"name":"real"}}}',
    );
    expect(await receive({ id: 1, method: 'server/discover', params: { _meta: { a: 2 } } })).toEqual([
      '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}}',
    ]);
    expect(await receive({ id: 9, method: 'initialize', params: { clientInfo: { name: 'now' } } })).toEqual([
      '{"jsonrpc":"2.0","id":9,"result":{"serverInfo":{"name":"real"}}}',
    ]);
  });

  it('takes any text for a secret that was removed', async () => {
    const { receive } = standIn(CALL.replace('"a"', '"x [redacted]"'), '<{"jsonrpc":"2.0","id":5,"result":{}}');
    expect(await receive(call({ path: 'x the-secret', n: 1 }))).toEqual(['{"jsonrpc":"2.0","id":1,"result":{}}']);
  });

  it('says which recorded request is most similar to one that it has no answer to', async () => {
    const far = CALL.replace('"a"', '"b"').replace('"n":1', '"n":2');
    const { receive } = standIn(
      far,
      '<{"jsonrpc":"2.0","id":5,"result":{}}',
      CALL,
      '<{"jsonrpc":"2.0","id":5,"result":{}}',
    );
    const [text = ''] = await receive(call({ path: 'other', n: 1 }));
    expect(JSON.parse(text).error).toEqual({
      code: -32602,
      message:
        'The recording of "files" has no answer to tools/call {"arguments":{"path":"other","n":1},"name":"read"}. The nearest recorded request is tools/call {"name":"read","arguments":{"path":"a","n":1}} (line 4).',
    });
    const [none = ''] = await receive({ id: 2, method: 'prompts/list' });
    expect(JSON.parse(none).error.message).toBe(
      'The recording of "files" has no answer to prompts/list. It has no prompts/list at all.',
    );
  });

  it('that ran already when the recording began has a handshake, and the tools that were called', async () => {
    const { receive } = standIn(CALL, '<{"jsonrpc":"2.0","id":5,"result":{}}');
    const [hello = ''] = await receive({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
    expect(JSON.parse(hello).result).toMatchObject({ protocolVersion: '2025-06-18', capabilities: { tools: {} } });
    const [list = ''] = await receive({ id: 2, method: 'tools/list' });
    expect(JSON.parse(list).result.tools).toEqual([{ name: 'read', inputSchema: { type: 'object' } }]);
    expect(await receive({ id: 3, method: 'ping' })).toEqual(['{"jsonrpc":"2.0","id":3,"result":{}}']);
  });

  it('says nothing more about a request that was cancelled', async () => {
    const { receive } = standIn(
      CALL,
      '<{"jsonrpc":"2.0","id":"ask","method":"roots/list"}',
      '>{"jsonrpc":"2.0","id":"ask","result":{"roots":[]}}',
      '<{"jsonrpc":"2.0","id":5,"result":{}}',
    );
    await receive(call({ path: 'a', n: 1 }, 4));
    await receive({ method: 'notifications/cancelled', params: { requestId: 4 } });
    expect(await receive({ id: 1, result: { roots: [] } })).toEqual([]);
  });
});
