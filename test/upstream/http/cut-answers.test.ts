import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { repetitions } from '../../support/repetitions.js';
import { connect, endAll, type Got, serve } from './remote-server.js';

afterEach(endAll);

/** Members that a parser would change: large numbers, spellings, escapes, doubled names, text outside of ASCII. */
const ODD = String.raw`{"n":[9007199254740993,1.0,-0,1E2],"s":"\u00e4\/ä€😀\n","s":"last","":{}}`;
const RESULT = `{"content":[{"type":"text","text":"data: {\\"x\\":1}\\r\\n\\r\\n"}],"odd":${ODD},"_meta":{"a":${ODD}}}`;
const ERROR = `{"code":-32002,"message":"née","data":${ODD}}`;
const PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1.50}}';

const answer = (rest: string) => `{"jsonrpc":"2.0","id":ID,${rest}}`;
const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream; charset=utf-8';

/** Bodies with the id of the request as `ID`, and the answer in them as bytes. */
const BODIES = [
  ['JSON', JSON_TYPE, answer(`"result":${RESULT}`), RESULT],
  ['JSON with an error', JSON_TYPE, answer(`"error":${ERROR}`), ERROR],
  [
    'JSON over several lines',
    'Application/JSON; charset=utf-8',
    `\r\n{\n  "jsonrpc": "2.0",\r\n  "id": ID,\n  "result": {\n    "odd": ${ODD}\r\n  }\n}\n`,
    `{     "odd": ${ODD}    }`,
  ],
  ['an event', EVENTS, `event: message\ndata: ${answer(`"result":${RESULT}`)}\n\n`, RESULT],
  ['an event with an error', EVENTS, `data:${answer(`"error":${ERROR}`)}\n\n`, ERROR],
  [
    'events with lines that end in CRLF',
    EVENTS,
    `: hello\r\nid: 1\r\ndata:\r\n\r\nid: 2\r\nretry: 5\r\ndata: ${PROGRESS}\r\n\r\ndata: ${answer(`"result":${RESULT}`)}\r\n\r\n`,
    RESULT,
  ],
  [
    'an event over several lines that end in CR',
    EVENTS,
    `\uFEFFdata: {"jsonrpc":"2.0","id":ID,\rdata: "result":{"odd":\rdata: ${ODD}\rdata:}}\r\r: the official SDK waits for more\r`,
    `{"odd": ${ODD} }`,
  ],
] as const;

/** The event of the answer to its end, which is the first byte of an empty line. */
const WHOLE_EVENT = /"(?:result|error)"[\s\S]*\}(?:\n\n|\r\r|\r\n\r)/;

/** Shortened, places next to the end of a line or inside of a character are tried, and every fortieth of the others. */
const STEP = repetitions({ full: 1, short: 40 });

/** Numbers of bytes after which a body is cut, up to one beyond its end. */
function placesIn(body: string): number[] {
  const bytes = Buffer.from(body);
  const places = Array.from({ length: bytes.length + 3 }, (_, place) => place);
  const isEdge = (place: number) => /[\r\n\x80-\xff]/.test(bytes.toString('latin1', Math.max(0, place - 2), place + 1));
  return places.filter((place) => place % STEP === 0 || place > bytes.length - 4 || isEdge(place));
}

const bodyFor = (body: string, { message }: Got) => Buffer.from(body.replaceAll('ID', String(message.id)));

/** What a client of the official SDK gets. */
async function directly(type: string, body: string) {
  const { origin } = await serve((got) => {
    if (got.message.method !== 'tools/call') return undefined;
    got.response.writeHead(200, { 'content-type': type });
    return got.response.end(bodyFor(body, got));
  });
  const client = new Client({ name: 'direct', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(origin)));
  const reports: number[] = [];
  const onprogress = ({ progress }: { progress: number }) => reports.push(progress);
  const request = { method: 'tools/call', params: { name: 'read', arguments: {} } };
  const got = await client.request(request, z.looseObject({}), { onprogress }).then(
    (result) => ({ result }),
    ({ code, data }) => ({ code, data }),
  );
  await client.close();
  return { ...got, reports };
}

describe.each(BODIES)('an answer as %s', (_, type, body, text) => {
  it('has the bytes that a direct client gets, wherever it is cut', async () => {
    const direct = await directly(type, body);
    const parsed = JSON.parse(text);
    expect('result' in direct ? direct.result : direct).toMatchObject(
      'result' in direct ? parsed : { data: parsed.data },
    );
    let cut = 0;
    const { origin, server } = await serve((got) => {
      if (got.message.method !== 'tools/call') return undefined;
      const bytes = bodyFor(body, got);
      got.response.writeHead(200, { 'content-type': type });
      got.response.write(bytes.subarray(0, cut));
      return setImmediate(() => got.response.end(bytes.subarray(cut)));
    });
    const { call, told } = await connect(origin, { inMemory: server });
    for (const place of placesIn(body)) {
      cut = place;
      const { done, listener } = call();
      expect(await done, `cut at ${cut}`).toBe(text);
      expect(listener.reports.map((report) => JSON.parse(report).params.progress)).toEqual(direct.reports);
    }
    expect(told).toEqual([]);
  });

  it('is whole or lost, wherever its connection breaks', async () => {
    // Events with ids would be resumed.
    const plain = body.replaceAll(/id: \d\r\n/g, '');
    let end = 0;
    let isWhole = false;
    const { origin, server } = await serve((got) => {
      if (got.message.method !== 'tools/call') return undefined;
      const bytes = bodyFor(plain, got);
      isWhole = type === EVENTS && WHOLE_EVENT.test(bytes.subarray(0, end).toString());
      got.response.writeHead(200, { 'content-type': type });
      got.response.write(bytes.subarray(0, end));
      return setImmediate(() => got.response.destroy());
    });
    const { call } = await connect(origin, { inMemory: server });
    for (const place of placesIn(plain).slice(1)) {
      end = place;
      const told = await call().done;
      expect(told, `broken at ${end}`).toBe(isWhole ? text : 'connection_lost sent');
    }
  });
});
