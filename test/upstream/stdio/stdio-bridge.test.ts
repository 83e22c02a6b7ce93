import { describe, expect, it } from 'vitest';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import { createLineMemory } from '../../../src/wire/io/line-decoder.js';
import { RpcError } from '../../../src/wire/jsonrpc/message.js';
import { EnvelopeRequest } from '../../../src/wire/mcp/relayed-request.js';
import { bytesOf, type Message, notificationOf, requestOf } from '../../support/wire.js';
import { answerTo, bridging, CALL, Listener, progressOf, sendCall, TIMEOUTS } from './bridging.js';

describe('ids towards a child', () => {
  it('count up from 1, for calls and the gateway’s own requests alike, and are never used again', () => {
    const { bridge, output, clock, say } = bridging();
    sendCall(bridge);
    void bridge.request('tools/list', undefined, TIMEOUTS);
    say(answerTo(1), answerTo(2));
    sendCall(bridge);
    clock.advance(1_000);
    sendCall(bridge).sent?.cancel();
    sendCall(bridge);
    const ids = output.messages.filter(({ id }) => id !== undefined).map(({ id }) => id);
    expect(ids).toEqual([1, 2, 3, 4, 5]);
  });

  it('may come back written differently as long as the number is the same', () => {
    const { bridge, say } = bridging();
    const [a, b] = [sendCall(bridge), sendCall(bridge)];
    say('{"jsonrpc":"2.0","id":1.0,"result":{"n":1}}', '{"jsonrpc":"2.0","id":2e0,"result":{"n":2}}');
    expect([a.listener.told, b.listener.told]).toEqual([['{"n":1}'], ['{"n":2}']]);
  });
});

describe('a relayed request', () => {
  it('F28: keeps every byte but its id, its progress token and what routing edits', () => {
    const { bridge, output } = bridging();
    const line =
      '{ "params" : {"_meta":{"progressToken":"p\\u0031", "vendor":[1.0,-0,1e400]},"arguments":{"n":9007199254740993,"n":2},\t"na\\u006de" : "k__read"},"x":null,"method":"tools\\/call", "jsonrpc":"2.0" ,"id": "c-1" }';
    const request = requestOf(`  ${line} \r`);
    const { name } = request.tokens;
    if (name === undefined) throw new Error('No name');
    bridge.send(new EnvelopeRequest(request), [{ span: name, text: bytesOf('"re ad"') }], TIMEOUTS, new Listener());
    const expected = line.replace('"c-1"', '1').replace('"p\\u0031"', '1').replace('"k__read"', '"re ad"');
    expect(output.lines).toEqual([expected]);
  });
});

describe('the time that a request may take', () => {
  it('goes on when the child cancels its request', () => {
    const { bridge, clock, say } = bridging();
    const { listener } = sendCall(bridge);
    say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create' });
    say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } });
    clock.advance(1_000);
    expect(listener.told).toEqual(['timeout sent']);
  });
});

describe('a cancelled request', () => {
  it("is cancelled at the child in the client's own words", () => {
    const { bridge, output } = bridging();
    const notice =
      '{"jsonrpc":"2.0","params":{"_meta":{"vendor":1.0},"reason":"user \\u00e9","requestId":"c-1"},"method":"notifications/cancelled"}';
    sendCall(bridge).sent?.cancel(notificationOf(` ${notice} `));
    expect(output.lines[1]).toBe(notice.replace('"c-1"', '1'));
  });
});

describe('an answer that nobody waits for', () => {
  it('F29, F30 and F31: is dropped and counted by what it is', () => {
    const { bridge, junk, say } = bridging();
    const { listener } = sendCall(bridge);
    sendCall(bridge).sent?.cancel();
    say(answerTo('one'), answerTo(99), answerTo(0), answerTo(-1), answerTo(1.5));
    say('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}');
    expect(listener.told).toEqual([]);
    expect(junk.map(([, reason]) => reason)).toEqual(Array.from({ length: 6 }, () => 'unknown-id'));
    say(answerTo(1), answerTo(1), answerTo(2), answerTo(2, 'the second answer'), progressOf(1, 1));
    expect([listener.told, listener.reports]).toEqual([['{}'], []]);
    expect(bridge.counters).toEqual({
      late: 1,
      duplicate: 2,
      unknown: 6,
      junk: 0,
      repaired: 0,
      blank: 0,
      oversized: 0,
      evicted: 0,
      staleProgress: 1,
      unsentReplies: 0,
      forgottenSessions: 0,
    });
  });
});

describe('progress', () => {
  it.each([
    ['an unknown token', progressOf(2, 1)],
    ['a token that is no number', progressOf('one', 1)],
    ['no token', { jsonrpc: '2.0', method: 'notifications/progress', params: { progress: 1 } }],
    ['a value that is no number', progressOf(1, '5')],
    ['a value that is null', progressOf(1, null)],
    ['no value', { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1 } }],
    ['no params', { jsonrpc: '2.0', method: 'notifications/progress' }],
  ])('F35: with %s is dropped and counted', (_, message) => {
    const { bridge, notifications, say } = bridging();
    const { listener } = sendCall(bridge);
    say(message);
    expect(listener.reports).toEqual([]);
    expect(notifications).toEqual([]);
    expect(bridge.counters.staleProgress).toBe(1);
  });

  it('of the gateway’s own request reaches nobody but extends its timeout', async () => {
    const { bridge, clock, say } = bridging();
    const outcome = bridge.request('tools/list', undefined, TIMEOUTS);
    clock.advance(900);
    say(progressOf(1, 1));
    clock.advance(900);
    say(answerTo(1));
    expect((await outcome).kind).toBe('answered');
  });
});

describe('a line that is no message', () => {
  it('goes to the log of the child and nowhere else', () => {
    const { bridge, junk, output, requests, notifications, say } = bridging();
    const { listener } = sendCall(bridge);
    say('Server listening', '[]', '  ', '{"level":"info"}', '7', '\r');
    expect(junk.map(([, reason]) => reason)).toEqual(['not-json', 'batch', 'not-json-rpc', 'not-an-object']);
    expect(junk[0]?.[0]).toBe('Server listening');
    expect([listener.told, requests, notifications]).toEqual([[], [], []]);
    expect(output.lines).toHaveLength(1);
    expect(bridge.counters.junk).toBe(4);
  });

  it('F19: stands among messages in one chunk, which are all read, whatever their ends', () => {
    const { bridge, stdout, junk } = bridging();
    const calls = [sendCall(bridge), sendCall(bridge)];
    const [one, other] = [answerTo(1, 'one'), answerTo(2, 'other')].map((message) => JSON.stringify(message));
    copyInto(stdout, bytesOf(`Welcome!\n\n   \n{"half":\r\n${one}\r\ndebug: next\n${other}\n`));
    expect(calls.map(({ listener }) => listener.told)).toEqual([['{"text":"one"}'], ['{"text":"other"}']]);
    expect(junk.map(([line]) => line.trim())).toEqual(['Welcome!', '{"half":', 'debug: next']);
  });

  it.each([
    '{"jsonrpc":"2.0","id":1}',
    '{"id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[],"tools":[]}}',
    '{"jsonrpc":"2.0","id":1,"result":{bad}}',
    '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    `{"jsonrpc":"2.0","id":1,"result":{"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}}`,
  ])('F26: but was to be the answer %.60s fails the request that it belongs to', (line) => {
    const { bridge, clock, junk, say } = bridging({ maxFrameBytes: MIB_OF_TEXT });
    const [one, other] = [sendCall(bridge), sendCall(bridge)];
    say(line);
    expect([one.listener.told, other.listener.told]).toEqual([['response_malformed sent'], []]);
    expect(junk).toHaveLength(1);
    expect(bridge.inFlight).toBe(1);
    clock.advance(1_000);
    expect(one.listener.told).toEqual(['response_malformed sent']);
  });

  it.each(['null', '"done"', '[]', '[{"content":[]}]', 'true', '7'])(
    'F137: but an answer with the result %s fails its request, and is no violation',
    (result) => {
      const { bridge, health, junk, say } = bridging();
      const line = `{"jsonrpc":"2.0","id":1,"result":${result}}`;
      const { listener } = sendCall(bridge);
      say(line);
      expect(listener.told).toEqual(['result_malformed sent']);
      expect(junk).toEqual([[line, 'result-not-an-object']]);
      for (let id = 2; id <= 10; id += 1) {
        sendCall(bridge);
        say(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
      }
      expect([bridge.inFlight, bridge.counters.junk, health]).toEqual([0, 10, []]);
    },
  );

  it.each(['{"code":"x","message":"no"}', '{"code":-1,"message":{"a":1}}', '{"code":-1}', '{"message":"no"}'])(
    'but an answer with the error %s fails the request that it answers, because clients would drop it and wait',
    (error) => {
      const { bridge, health, junk, say } = bridging();
      const line = `{"jsonrpc":"2.0","id":1,"error":${error}}`;
      const { listener } = sendCall(bridge);
      say(line);
      expect(listener.told).toEqual(['result_malformed sent']);
      expect(junk).toEqual([[line, 'error-without-code-and-message']]);
      expect([bridge.inFlight, health]).toEqual([0, []]);
    },
  );

  it('but an answer with a wrong result shows that the server is alive', () => {
    const { bridge, clock, health, say } = bridging();
    for (let id = 1; id <= 8; id += 1) {
      sendCall(bridge);
      if (id % 2 === 0) say(`{"jsonrpc":"2.0","id":${id},"result":null}`);
      else clock.advance(1_000);
    }
    expect([bridge.isSilent, health]).toEqual([false, []]);
  });

  it.each([
    '{"jsonrpc":"2.0","id":1,"method":7}',
    '{"id":1,"method":"sampling/createMessage","params":{}}',
    '{"jsonrpc":"2.0","method":"roots/list","id":1,"params":{broken}}',
  ])("and was to be the child's own request %s fails none of ours", (line) => {
    const { bridge, say } = bridging();
    const { listener } = sendCall(bridge);
    say(line);
    expect(listener.told).toEqual([]);
    say(answerTo(1, 'done'));
    expect(listener.told).toEqual(['{"text":"done"}']);
  });
});

describe('bytes that are no UTF-8', () => {
  it('F21: become U+FFFD in their message, and no other message is altered', () => {
    const { bridge, stdout, say } = bridging();
    const calls = [sendCall(bridge), sendCall(bridge)];
    copyInto(stdout, Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"text":"a\xc3(\xffb"}}\n', 'latin1'));
    say(answerTo(2, 'é'));
    expect(calls.map(({ listener }) => listener.told)).toEqual([['{"text":"a\ufffd(\ufffdb"}'], ['{"text":"é"}']]);
    expect(bridge.counters).toMatchObject({ repaired: 1, junk: 0 });
  });
});

describe('a child that is given up', () => {
  it('F209: because of large messages is not heard any more, whatever comes with the end of the last', () => {
    const { bridge, stdout, health, say } = bridging({ giveUp: true });
    const { listener } = sendCall(bridge);
    const large = `{"a":"${'x'.repeat(65 * 1024)}`;
    say(large, large);
    copyInto(stdout, bytesOf(large));
    copyInto(stdout, bytesOf(`"}\n  ${JSON.stringify(answerTo(1))}\n`));
    expect([health.length, listener.told]).toEqual([1, ['exited sent']]);
  });
});

describe('a line that is too long', () => {
  it.each([
    ['begins', `{"jsonrpc":"2.0","id":1,"result":{"x":"${'x'.repeat(70_000)}"}}`],
    ['ends', `{"result":{"x":"${'x'.repeat(70_000)}"},"id":1,"jsonrpc":"2.0"}`],
  ])('F22: and %s with an id fails that request, and the next line is read', (_, line) => {
    const { bridge, junk, say } = bridging();
    const [one, other] = [sendCall(bridge), sendCall(bridge)];
    say(line, answerTo(2, 'next'));
    expect([one.listener.told, other.listener.told]).toEqual([['response_too_large sent'], ['{"text":"next"}']]);
    expect(bridge.counters).toMatchObject({ oversized: 1, junk: 0 });
    expect(junk).toEqual([[line.slice(0, 512), 'too-large']]);
  });

  it("and is the child's own request fails none of ours", () => {
    const { bridge, say } = bridging();
    const { listener } = sendCall(bridge);
    say({ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: { text: 'x'.repeat(70_000) } });
    expect(listener.told).toEqual([]);
    say(answerTo(1, 'done'));
    expect(listener.told).toEqual(['{"text":"done"}']);
  });
});

describe('a child that does not read', () => {
  const MAX = 1_000;
  /** A child that has 1,001 bytes before it, and reads as many of them as the test says. */
  function reading() {
    const bridged = bridging({ maxUnwrittenBytes: MAX });
    const { output, clock } = bridged;
    output.unwrittenBytes = MAX + 1;
    const read = (byteLength: number, ms = 20) => {
      output.unwrittenBytes -= byteLength;
      clock.advance(ms);
    };
    return { ...bridged, read };
  }

  it('gets requests, those of the gateway and replies later, in their order, and none is lost', async () => {
    const { bridge, output, requests, say, read } = reading();
    say({ jsonrpc: '2.0', id: 'q', method: 'ping' });
    const { listener } = sendCall(bridge);
    const outcome = bridge.request('tools/list', undefined, TIMEOUTS);
    requests[0]?.succeed(bytesOf('{}'));
    expect([output.lines, bridge.inFlight]).toEqual([[], 2]);
    read(1);
    expect(output.lines.map((line) => JSON.parse(line).method ?? 'reply')).toEqual([
      'tools/call',
      'tools/list',
      'reply',
    ]);
    say(answerTo(1), answerTo(2));
    expect([listener.told, (await outcome).kind, bridge.counters.unsentReplies]).toEqual([['{}'], 'answered', 0]);
  });

  it('F43: has requests fail as unsent after five seconds in which it takes nothing', async () => {
    const { bridge, output, clock, read } = reading();
    output.unwrittenBytes = 1_000_000;
    output.sentBytes = 1_000_000;
    const patient = { idleMs: 60_000, maxMs: 60_000 };
    const outcome = bridge.request('tools/list', undefined, patient);
    for (let second = 0; second < 8; second += 4) read(1, 4_000);
    clock.advance(1_000);
    expect(bridge.inFlight).toBe(1);
    clock.advance(40);
    expect(await outcome).toMatchObject({ reason: 'overloaded', sent: false });
    expect([output.lines, clock.pending]).toEqual([[], 0]);
  });

  it('has a request fail that has waited as long as it may wait for an answer', async () => {
    const { bridge, output, read } = reading();
    output.unwrittenBytes = 1_000_000;
    output.sentBytes = 1_000_000;
    const outcome = bridge.request('tools/list', undefined, TIMEOUTS);
    for (let ms = 0; ms <= TIMEOUTS.idleMs; ms += 100) read(1, 100);
    expect(await outcome).toMatchObject({ reason: 'overloaded', sent: false });
  });

  it('gets no request that was cancelled while it waited, and no notice of that', () => {
    const { bridge, output, read } = reading();
    const { sent, listener } = sendCall(bridge);
    sent?.cancel();
    read(1_001);
    expect([output.lines, listener.told]).toEqual([[], ['cancelled unsent']]);
  });

  it('has at most 1,000 messages wait, and the others fail or are counted at once', async () => {
    const { bridge, requests, say } = reading();
    say({ jsonrpc: '2.0', id: 'q', method: 'ping' });
    for (let count = 0; count < 1_001; count += 1) requests[0]?.succeed(bytesOf('{}'));
    expect(bridge.counters.unsentReplies).toBe(1);
    expect(await bridge.request('x', undefined, TIMEOUTS)).toMatchObject({ reason: 'overloaded', sent: false });
  });

  it('that ends has what waited fail as unsent', async () => {
    const { bridge, clock } = reading();
    const outcome = bridge.request('x', undefined, TIMEOUTS);
    bridge.close('exited');
    expect(await outcome).toMatchObject({ reason: 'exited', sent: false });
    expect(clock.pending).toBe(0);
  });
});

describe('the end of the process', () => {
  it('tells requests that cannot have reached the child from the others, and all why it was ended', () => {
    const { bridge, output } = bridging();
    const [first, second] = [sendCall(bridge), sendCall(bridge)];
    const before = output.sentBytes;
    const third = sendCall(bridge);
    // Of the second, the child may have read a part.
    output.lostBytes = output.sentBytes - before + 1;
    bridge.close('exited', 'it went mad');
    expect([first, second, third].map(({ listener }) => listener.outcomes)).toEqual(
      [true, true, false].map((sent) => [{ kind: 'failed', reason: 'exited', sent, because: 'it went mad' }]),
    );
  });

  it.each([
    ['no-newline', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['carriage-return-instead-of-newline', '{"jsonrpc":"2.0","id":1,"result":{}}\r'],
    ['no-newline', '{"jsonrpc":"2.0","id":9,"result":{}}\r\n{"jsonrpc"'],
  ])('F25: drops a line without a newline that the child left, and logs it as %s', (reason, text) => {
    const { bridge, stdout, junk } = bridging();
    const { listener } = sendCall(bridge);
    copyInto(stdout, bytesOf(text));
    bridge.close('exited');
    expect(listener.told).toEqual(['exited sent']);
    expect(junk.at(-1)?.[1]).toBe(reason);
    expect(text).toContain(junk.at(-1)?.[0].trim());
  });

  it('may be noticed by a handler that asks again, and is told at once', () => {
    const { bridge } = bridging();
    const second = new Listener();
    const first = { settle: () => void bridge.send(new EnvelopeRequest(requestOf(CALL)), [], TIMEOUTS, second) };
    bridge.send(new EnvelopeRequest(requestOf(CALL)), [], TIMEOUTS, first);
    bridge.close('exited');
    expect(second.told).toEqual(['exited unsent']);
    expect(bridge.inFlight).toBe(0);
  });
});

describe('a carriage return between two tokens', () => {
  it('reaches nobody, because some readers would take what follows as a message of another server', () => {
    const { notifications, say } = bridging();
    say('{"jsonrpc":"2.0",\r"method":"x","params":{"forged":\r{"jsonrpc":"2.0","id":1,"result":{}}\r}}');
    const [{ bytes, span } = { bytes: bytesOf(''), span: { start: 0, end: 0 } }] = notifications;
    const passedOn = Buffer.from(bytes.subarray(span.start, span.end)).toString();
    expect(passedOn).toBe('{"jsonrpc":"2.0", "method":"x","params":{"forged": {"jsonrpc":"2.0","id":1,"result":{}} }}');
  });
});

describe('the feed of messages of a bridge', () => {
  const CALLED = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read"}}';
  const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{ "n":1.0 }}';

  it('sees each message in both directions as it is on the pipe, while it is observed', () => {
    const { bridge, passed, requests, say } = bridging({ isObserved: true });
    bridge.send(new EnvelopeRequest(requestOf(CALLED)), [], TIMEOUTS, new Listener());
    say(ANSWER, '{"jsonrpc":"2.0","id":"s","method":"ping"}');
    requests[0]?.succeed(bytesOf('{}'));
    expect(passed).toEqual([
      ['g>s', CALLED.replace('7', '1')],
      ['s>g', ANSWER],
      ['s>g', '{"jsonrpc":"2.0","id":"s","method":"ping"}'],
      ['g>s', '{"jsonrpc":"2.0","id":"s","result":{}}'],
    ]);
  });
});

const MIB_OF_TEXT = 1024 * 1024;

describe('output', () => {
  const NOTIFICATION = '{"jsonrpc":"2.0","method":"a"}\n';

  it.each([
    ['blank lines', '\n\n\r\n'],
    ['a line that is no message', 'hello\n'],
    ['a notification', NOTIFICATION],
    ['a request', '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'],
    ['an answer that nobody waits for', '{"jsonrpc":"2.0","id":99,"result":{}}\n'],
    ['progress', '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n'],
    ['an unfinished line', `{"x":"${'y'.repeat(4_000)}`],
  ])('is not useful if it answers nothing: %s', (_, text) => {
    const { stdout } = bridging();
    copyInto(stdout, bytesOf(text));
    expect(stdout.wasUseful).toBe(false);
  });

  it('is useful if it has an answer, also a late one, but the same answer again is not', () => {
    const { bridge, stdout } = bridging();
    sendCall(bridge).sent?.cancel();
    const answer = bytesOf(`${NOTIFICATION}${JSON.stringify(answerTo(1))}\n${NOTIFICATION}`);
    copyInto(stdout, answer);
    expect(stdout.wasUseful).toBe(true);
    copyInto(stdout, answer);
    expect(stdout.wasUseful).toBe(false);
  });

  it('is useful in the middle of a line while a request waits, unless the line was dropped', () => {
    const { bridge, stdout, junk, health, say } = bridging({ maxFrameBytes: 8 * 1024 * 1024 });
    const { listener } = sendCall(bridge);
    copyInto(stdout, bytesOf('{"jsonrpc":"2.0",'));
    copyInto(stdout, bytesOf('"id":1,"result":{"text":"'));
    expect(stdout.wasUseful).toBe(true);
    say('"}}');
    expect(listener.outcomes.map(({ kind }) => kind)).toEqual(['answered']);
    sendCall(bridge);
    copyInto(stdout, Buffer.alloc(MIB_OF_TEXT, 'log '));
    expect(stdout.wasUseful).toBe(false);
    expect(junk.map(([line, reason]) => [line.slice(0, 8), reason])).toEqual([['log log ', 'not-json']]);
    expect(bridge.counters).toMatchObject({ junk: 1, oversized: 0, evicted: 0 });
    expect(health).toEqual([]);
    copyInto(stdout, Buffer.alloc(16 * MIB_OF_TEXT, 'log '));
    expect(health).toEqual(['it wrote more than 16 MiB that is no message to stdout within a minute']);
  });
});

describe('a line that is dropped before it is finished', () => {
  const beginning = (id: number, bytes: number) =>
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"text":"`.padEnd(bytes, 'x'));

  function crowded(isPaused = () => false) {
    const options = { unfinishedLines: createLineMemory(1_000_000), maxFrameBytes: 2_000_000 };
    return { hoarder: bridging({ ...options, isPaused }), neighbor: bridging(options) };
  }

  it('F60: because it held the most fails its request at once, as its own violation; the neighbor has none', () => {
    const { hoarder, neighbor } = crowded();
    const [hoarded, wanted] = [sendCall(hoarder.bridge), sendCall(neighbor.bridge)];
    copyInto(hoarder.stdout, beginning(1, 900_000));
    copyInto(neighbor.stdout, beginning(1, 300_000));
    expect(hoarded.listener.told).toEqual(['response_dropped sent']);
    expect(hoarder.junk.map(([, reason]) => reason)).toEqual(['memory-limit']);
    copyInto(neighbor.stdout, Buffer.from('"}}\n'));
    expect(wanted.listener.told).toHaveLength(1);
    expect(wanted.listener.outcomes[0]?.kind).toBe('answered');
    expect(hoarder.bridge.counters).toMatchObject({ evicted: 1, oversized: 0 });
    expect(neighbor.bridge.counters).toMatchObject({ evicted: 0, oversized: 0 });
    expect(neighbor.health).toEqual([]);
  });

  it('for the third time within a minute is one violation too many, and its end is none', () => {
    const { hoarder, neighbor } = crowded();
    for (let round = 1; round <= 3; round += 1) {
      expect(hoarder.health).toEqual([]);
      copyInto(hoarder.stdout, beginning(round, 900_000));
      copyInto(neighbor.stdout, beginning(round, 300_000));
      if (round < 3) hoarder.say('"}}');
      neighbor.say('"}}');
    }
    expect(hoarder.health).toEqual(['it sent 3 oversized or unfinished messages within a minute']);
    expect(neighbor.health).toEqual([]);
  });

  it('fails its request at its end, if only the end shows the id', () => {
    const { hoarder, neighbor } = crowded();
    const { listener } = sendCall(hoarder.bridge);
    copyInto(hoarder.stdout, Buffer.from('{"result":{"text":"'.padEnd(900_000, 'x')));
    copyInto(neighbor.stdout, beginning(1, 300_000));
    expect(listener.told).toEqual([]);
    hoarder.say('"},"jsonrpc":"2.0","id":1}');
    expect(listener.told).toEqual(['response_dropped sent']);
  });

  it('is no violation of a server that Trunkline does not read', () => {
    const { hoarder, neighbor } = crowded(() => true);
    for (let round = 1; round <= 3; round += 1) {
      copyInto(hoarder.stdout, beginning(round, 900_000));
      copyInto(neighbor.stdout, beginning(round, 300_000));
      hoarder.say('"}}');
      neighbor.say('"}}');
    }
    expect(hoarder.bridge.counters).toMatchObject({ evicted: 3 });
    expect(hoarder.health).toEqual([]);
  });
});

const batchOf = (...messages: (Message | string)[]) =>
  `[${messages.map((message) => (typeof message === 'string' ? message : JSON.stringify(message))).join(' , ')}]`;

const MESSAGE = { jsonrpc: '2.0', method: 'notifications/message', params: {} };

describe('a batch of a child', () => {
  it('is taken as if each of its messages had come alone, in their order', () => {
    const { bridge, junk, notifications, requests, say } = bridging();
    const [one, other] = [sendCall(bridge), sendCall(bridge)];
    say(
      batchOf(
        progressOf(1, 1),
        answerTo(2, 'second'),
        MESSAGE,
        { jsonrpc: '2.0', id: 7, method: 'roots/list' },
        '{"jsonrpc":"2.0", "id":1,"result":{"text":"f\\u0069rst"}}',
      ),
    );
    expect([one.listener.told, other.listener.told]).toEqual([['{"text":"f\\u0069rst"}'], ['{"text":"second"}']]);
    expect(one.listener.reports).toEqual([JSON.stringify(progressOf(1, 1))]);
    expect(notifications.map(({ method }) => method)).toEqual(['notifications/message']);
    expect(requests.map(({ request }) => request.method)).toEqual(['roots/list']);
    expect(bridge.inFlight).toBe(0);
    expect([junk, bridge.counters.junk]).toEqual([[], 0]);
  });

  it('may have requests in it, each of which is answered alone: no array is ever sent to a child', () => {
    const { output, requests, say } = bridging();
    const ask = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'roots/list' });
    say(batchOf(ask('a'), ask(1.5), ask('c')));
    const [first, second, third] = requests;
    if (first === undefined || second === undefined || third === undefined) throw new Error('Not three requests');
    second.succeed(bytesOf('{"roots":[]}'));
    third.fail(new RpcError(-32601, 'no'));
    first.succeed(bytesOf('{}'));
    expect(output.lines).toEqual([
      '{"jsonrpc":"2.0","id":1.5,"result":{"roots":[]}}',
      '{"jsonrpc":"2.0","id":"c","error":{"code":-32601,"message":"no"}}',
      '{"jsonrpc":"2.0","id":"a","result":{}}',
    ]);
  });

  it('loses what is no message in it to the log, and nothing else', () => {
    const { bridge, junk, say } = bridging();
    const { listener } = sendCall(bridge);
    say(batchOf('7', '{"level":"info"}', answerTo(1, 'done'), '[{"jsonrpc":"2.0","method":"n"}]'));
    expect(listener.told).toEqual(['{"text":"done"}']);
    expect(junk).toEqual([
      ['7', 'not-an-object'],
      ['{"level":"info"}', 'not-json-rpc'],
      ['[{"jsonrpc":"2.0","method":"n"}]', 'batch'],
    ]);
    expect(bridge.counters.junk).toBe(3);
  });

  it.each([
    ['[]', 'batch'],
    ['[1,2,"three"]', 'batch'],
    ['[[{}]]', 'batch'],
    ['[{"jsonrpc":"2.0","id":1,"result":{}},]', 'not-json'],
    [`[${Array(101).fill('{"jsonrpc":"2.0","method":"n"}').join(',')}]`, 'batch-too-long'],
  ])('is %.40s not, which is one line of output like any other', (line, reason) => {
    const { bridge, junk, notifications, say } = bridging();
    const { listener } = sendCall(bridge);
    say(line);
    expect(junk).toEqual([[`${line}`, reason]]);
    expect([listener.told, notifications, bridge.counters.junk]).toEqual([[], [], 1]);
  });
});
