import { describe, expect, it } from 'vitest';
import { resultText } from '../../../src/cli/commands/calls/replay.js';
import { differences, differenceText, replayClients } from '../../../src/extras/record/client-replay.js';
import type { RecordedEntry } from '../../../src/extras/record/recording-file.js';

/** A recording of clients. `>` marks sent and `<` received messages. A number before the mark is the connection. */
function recorded(...lines: readonly string[]): RecordedEntry[] {
  return lines.map((line, at) => {
    const [, conn = '', way = '', raw = ''] = /^(\d*)([<>])(.*)$/.exec(line) ?? [];
    return { line: at + 2, t: at, conn: Number(conn || 1), dir: way === '>' ? 'c>g' : 'g>c', raw };
  });
}

const INITIALIZE = '>{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}';
const request = (id: number, name: string) =>
  `>{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}"}}`;
const answer = (id: number, result: unknown) => `<{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`;

/** Replays to a gateway that the test plays. It answers each line with any number of lines. */
async function replay(entries: RecordedEntry[], respond: (line: string) => readonly string[], timeoutMs = 10_000) {
  const sent: string[] = [];
  const result = await replayClients({
    ...{ entries, timeoutMs, ignored: new Set(['requestTime']) },
    connect: (receive) => ({
      send: (text) => {
        sent.push(text);
        for (const line of respond(text)) setImmediate(() => receive(line.slice(1)));
      },
      close: () => sent.push('closed'),
    }),
  });
  return { ...result, sent };
}

describe('clients that are replayed', () => {
  it('send what they sent, each message after the answers before it, and find no difference', async () => {
    const entries = recorded(INITIALIZE, answer(0, {}), request(1, 'a'), answer(1, { n: 1 }));
    const { sent, compared, findings } = await replay(entries, (line) =>
      line.includes('initialize') ? [answer(0, {})] : [answer(1, { n: 1 })],
    );
    expect(sent).toEqual([INITIALIZE.slice(1), request(1, 'a').slice(1), 'closed']);
    expect({ compared, findings }).toEqual({ compared: 2, findings: [] });
  });

  it('find an answer that is another one', async () => {
    const entries = recorded(INITIALIZE, answer(0, {}), request(1, 'a'), answer(1, { content: [{ text: 'one' }] }));
    const result = await replay(entries, (line) =>
      line.includes('initialize') ? [answer(0, {})] : [answer(1, { content: [{ text: 'two' }], isError: true })],
    );
    expect(resultText(result)).toBe(
      [
        'tools/call a (line 5):',
        '  result.content[0].text: "one" is now "two"',
        '  result.isError: absent is now true',
        '2 answers compared, 1 different.',
      ].join('\n'),
    );
  });

  it('find an answer that does not come', async () => {
    const entries = recorded(INITIALIZE, answer(0, {}));
    const result = await replay(entries, () => [], 1);
    expect(resultText(result)).toBe('initialize (line 3): no answer\n1 answers compared, 1 different.');
  });

  it('do not compare what Trunkline says of itself', async () => {
    const entries = recorded(INITIALIZE, answer(0, {}), request(1, 'trunkline__status'), answer(1, { up: 1 }));
    const result = await replay(entries, (line) =>
      line.includes('initialize') ? [answer(0, {})] : [answer(1, { up: 2 })],
    );
    expect(resultText(result)).toBe(
      "1 answers compared, 0 different, 1 answers of Trunkline's own tools not compared.",
    );
  });

  it('answer server requests as they did', async () => {
    const entries = recorded(
      ...[INITIALIZE, answer(0, {}), request(1, 'a')],
      '<{"jsonrpc":"2.0","id":"then","method":"elicitation/create","params":{"message":"Sure?"}}',
      '>{"jsonrpc":"2.0","id":"then","result":{"action":"accept"}}',
      answer(1, {}),
    );
    const { sent, findings } = await replay(entries, (line) => {
      if (line.includes('initialize')) return [answer(0, {})];
      if (line.includes('tools/call'))
        return ['<{"jsonrpc":"2.0","id":"now","method":"elicitation/create","params":{"message":"Sure?"}}'];
      return line.includes('accept') ? [answer(1, {})] : [];
    });
    expect(sent[2]).toBe('{"jsonrpc":"2.0","id":"now","result":{"action":"accept"}}');
    expect(findings).toEqual([]);
  });

  it('have connections of their own, and shake hands if the recording began later', async () => {
    const entries = recorded(request(1, 'a'), answer(1, {}), `7${request(1, 'b')}`, `7${answer(1, {})}`);
    const { sent, compared } = await replay(entries, (line) => (line.includes('"id":1,') ? [answer(1, {})] : []));
    expect(sent.filter((line) => line.includes('"initialize"'))).toHaveLength(2);
    expect(sent.filter((line) => line === 'closed')).toHaveLength(2);
    expect(compared).toBe(2);
  });
});

describe('two answers', () => {
  it('are equal but for times, `_meta`, ignored members and removed secrets', () => {
    const before = { a: 'at 2026-01-02T03:04:05.678Z', _meta: 1, requestTime: 1, s: 'x [redacted]', t: '[redacted]' };
    const after = { a: 'at 2027-01-02T03:04:05Z', requestTime: 2, s: 'x secret', t: 5 };
    expect(differences(before, after, new Set(['requestTime']))).toEqual([]);
  });

  it('differ where long texts begin to differ', () => {
    const same = 'x'.repeat(500);
    const [difference] = differences({ text: `${same}1` }, { text: `${same}2` }, new Set());
    if (difference === undefined) throw new Error('They differ');
    expect(differenceText(difference)).toBe(`text: …${'x'.repeat(20)}1" is now …${'x'.repeat(20)}2"`);
  });
});
