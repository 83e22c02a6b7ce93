import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { Bridge } from '../../src/upstream/channel/bridge.js';
import type { Channel } from '../../src/upstream/dialect.js';
import { legacyDialect } from '../../src/upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../../src/upstream/modern/era-dialect.js';
import { ServerEra } from '../../src/upstream/server-era.js';
import type {
  DialOutcome,
  ServerRequest,
  UpstreamConnection,
  UpstreamListener,
} from '../../src/upstream/upstream-connection.js';
import { LineWriter } from '../../src/wire/io/streams/line-writer.js';
import { readInto } from '../../src/wire/io/streams/read-into.js';
import { RpcError, unedited } from '../../src/wire/jsonrpc/message.js';
import type { NotificationEnvelope } from '../../src/wire/mcp/envelope.js';
import { EnvelopeRequest } from '../../src/wire/mcp/relayed-request.js';
import { FakeClock } from '../support/fake-clock.js';
import { HttpPeer, type HttpPeerOptions } from '../support/http-peer.js';
import { InMemoryUpstream, SILENT_LISTENER } from '../support/in-memory-upstream.js';
import { type PeerScript, ScriptedPeer } from '../support/scripted-peer.js';
import { bytesOf, flush, lineOf, type Message, notificationOf, requestOf, responseOf, scan } from '../support/wire.js';
import { answerTo, CALL, Listener, progressOf, TIMEOUTS } from './stdio/bridging.js';

const MIB = 1024 * 1024;
const HELLO = { protocolVersion: '2025-06-18', capabilities: { tools: {}, resources: { subscribe: true } } };

/** A scripted server behind a bridge and two streams, as a process is. */
class StreamedPeer extends ScriptedPeer {
  readonly #clock: FakeClock;
  readonly #stdout = new PassThrough();
  #connection: UpstreamConnection | undefined;

  constructor({ clock, ...script }: PeerScript & { readonly clock: FakeClock }) {
    super(script);
    this.#clock = clock;
  }

  override async connect(generation = 1, events: Partial<UpstreamListener> = {}): Promise<UpstreamConnection> {
    const listener = { ...SILENT_LISTENER, ...events };
    const stdin = new PassThrough();
    stdin.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString().split('\n').filter(Boolean)) this.received.send(unedited(bytesOf(line)));
    });
    const { received } = this;
    const writer = new LineWriter(stdin);
    const output = {
      send: writer.send.bind(writer),
      close: () => writer.close(),
      get sentBytes() {
        return writer.sentBytes;
      },
      get unwrittenBytes() {
        return writer.unwrittenBytes + received.unwrittenBytes;
      },
    };
    const bridge = new Bridge({
      clock: this.#clock,
      scan,
      output,
      maxFrameBytes: MIB,
      maxUnwrittenBytes: MIB,
      events: {
        request: (request) => listener.request(request),
        notification: (notification) => listener.notification(notification),
        junk: () => {},
        silent: () => {},
        violated: () => {},
      },
    });
    readInto(this.#stdout, bridge.open());
    const outcome = await this.open(bridge, listener, generation);
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    this.#connection = outcome.connection;
    return outcome.connection;
  }

  protected open(channel: Channel, _: UpstreamListener, generation: number): Promise<DialOutcome> {
    return legacyDialect.open(channel, { generation, profile: PROFILE, timeoutMs: 60_000 });
  }

  override get connection(): UpstreamConnection {
    if (this.#connection === undefined) throw new Error('Nobody has connected');
    return this.#connection;
  }

  override say(...messages: (Message | string)[]): void {
    for (const message of messages) this.#stdout.write(lineOf(message));
  }
}

/** The same without a handshake: the server answers `server/discover`, and every request says who the client is. */
class ModernPeer extends StreamedPeer {
  readonly #clock: FakeClock;

  constructor({ clock, hello = {}, ...script }: PeerScript & { readonly clock: FakeClock }) {
    super({ ...script, clock, hello });
    this.#clock = clock;
    const { capabilities, instructions } = hello;
    const { received } = this;
    const before = received.onLine;
    received.onLine = (line) => {
      const { id, method } = JSON.parse(line);
      const result = { supportedVersions: ['2026-07-28'], capabilities, instructions };
      if (method === 'server/discover') this.say({ jsonrpc: '2.0', id, result });
      else before(line);
    };
  }

  protected override open(channel: Channel, listener: UpstreamListener, generation: number): Promise<DialOutcome> {
    const dialect = new EraDialect({ legacy: legacyDialect, clock: this.#clock, mintId: () => 'minted' });
    const era = new ServerEra('modern');
    return dialect.open(channel, { generation, profile: PROFILE, timeoutMs: 60_000, era, listener });
  }
}

/** The same behind a URL. */
class ModernHttpPeer extends HttpPeer {
  constructor(options: HttpPeerOptions) {
    super({ ...options, isModern: true });
  }
}

const PROFILE = { clientInfo: {}, capabilities: {} };
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
};
/** What the handshake says, and what a request has besides. */
const LEGACY = { revision: '2025-06-18', requestedRevision: '2025-11-25', meta: {}, hasNotices: true };
const MODERN = { revision: '2026-07-28', requestedRevision: '2026-07-28', meta: META, hasNotices: true };
/** The end of the answer is the notice of a cancellation, so it says nothing else. */
const MODERN_HTTP = { ...MODERN, hasNotices: false };

const WITH_HANDSHAKE = [
  ['a server behind a stdio bridge and two streams', StreamedPeer, LEGACY],
  ['a server behind a URL', HttpPeer, LEGACY],
  ['a server in memory', InMemoryUpstream, LEGACY],
] as const;
const ALL = [
  ...WITH_HANDSHAKE,
  ['a server without a handshake', ModernPeer, MODERN],
  ['a server without a handshake, behind a URL', ModernHttpPeer, MODERN_HTTP],
] as const;

let last: UpstreamConnection | undefined;
afterEach(() => last?.close('stopped'));

/** What was written to streams has been read. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await flush();
}

/** Opens connections to a peer, with what the server sent by itself. The handshake is forgotten. */
function opener(Peer: (typeof ALL)[number][1]) {
  return async () => {
    const clock = new FakeClock();
    const requests: ServerRequest[] = [];
    const notifications: NotificationEnvelope[] = [];
    const peer = new Peer({ clock, hello: { ...HELLO, instructions: 'Read.\nThen call.' } });
    const connection = await peer.connect(7, {
      request: (request) => requests.push(request),
      notification: (notification) => notifications.push(notification),
    });
    await settled();
    peer.received.take();
    last = connection;
    const send = (call: string | Message = CALL, timeouts: typeof TIMEOUTS & { firstMs?: number } = TIMEOUTS) => {
      const listener = new Listener();
      return { listener, sent: connection.send(new EnvelopeRequest(requestOf(call)), [], timeouts, listener) };
    };
    /** The server says something, and it has been read. */
    const say = async (...messages: (Message | string)[]) => {
      peer.say(...messages);
      await settled();
    };
    /** The lines that the server has read since the last call. */
    const read = async (): Promise<Message[]> => {
      await settled();
      return peer.received.take();
    };
    const advance = async (ms: number) => {
      clock.advance(ms);
      await settled();
    };
    return { clock, connection, peer, requests, notifications, send, say, read, advance };
  };
}

describe.each(ALL)('%s', (_, Peer, { revision, requestedRevision, meta, hasNotices }) => {
  const open = opener(Peer);
  /** What the server gets behind the members of an object. */
  const more = Object.entries(meta)
    .map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join('');

  it('tells what the server said in its handshake', async () => {
    const { connection } = await open();
    expect(connection).toMatchObject({
      generation: 7,
      revision,
      requestedRevision,
      capabilities: HELLO.capabilities,
      instructions: 'Read.\nThen call.',
      inFlight: 0,
      isClosed: false,
    });
    expect(JSON.parse(Buffer.from(connection.initializeResult).toString())).toMatchObject({
      ...HELLO,
      protocolVersion: revision,
    });
    expect(['tools', 'resources.subscribe', 'prompts'].map((one) => connection.offers(one))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('sends a request with the edits, under another id, which is its progress token as well', async () => {
    const { connection, peer } = await open();
    const text =
      '{ "method":"tools/call","params":{"n":1.0,"name":"k__read","_meta":{"progressToken":"mine"}},"id":"c-1","jsonrpc":"2.0"}';
    const request = requestOf(text);
    const span = request.tokens.name ?? { start: 0, end: 0 };
    connection.send(new EnvelopeRequest(request), [{ span, text: bytesOf('"read"') }], TIMEOUTS, new Listener());
    await settled();
    const line = peer.received.lines[0] ?? '';
    const { id } = JSON.parse(line);
    expect(id).toBeTypeOf('number');
    expect(line).toBe(
      `{ "method":"tools/call","params":{"n":1.0,"name":"read","_meta":{"progressToken":${id}${more}}},"id":${id},"jsonrpc":"2.0"}`,
    );
  });

  it('settles each request once with its own answer, in whatever order the answers come', async () => {
    const { connection, send, say, read } = await open();
    const calls = [send(), send(), send()];
    expect(connection.inFlight).toBe(3);
    const [a, b, c] = await read();
    await say(answerTo(c?.id, 'c'), answerTo(a?.id, 'a'), {
      jsonrpc: '2.0',
      id: b?.id,
      error: { code: 1, message: 'b' },
    });
    await say(answerTo(a?.id, 'again'));
    expect(calls.map(({ listener }) => listener.told)).toEqual([
      ['{"text":"a"}'],
      ['{"code":1,"message":"b"}'],
      ['{"text":"c"}'],
    ]);
    expect(connection.inFlight).toBe(0);
    expect(connection.counters).toMatchObject({ duplicate: 1, late: 0, unknown: 0 });
  });

  it('says when an answer was read', async () => {
    const { clock, send, say, read } = await open();
    const { listener, sent } = send();
    const [call] = await read();
    clock.advance(40);
    await say(answerTo(call?.id));
    const [outcome] = listener.outcomes;
    expect(outcome?.kind === 'answered' ? outcome.at - (sent?.sentAt ?? 0) : undefined).toBe(40);
  });

  it('drops answers to requests that it never sent', async () => {
    const { connection, say } = await open();
    await say(answerTo(1_000), answerTo('one'), answerTo(0));
    expect(connection.counters.unknown).toBe(3);
  });

  it("sends requests of the gateway's own", async () => {
    const { connection, say, read } = await open();
    const outcome = connection.request('tools/x', { cursor: 'c' }, TIMEOUTS);
    const [asked] = await read();
    expect(asked).toEqual({
      jsonrpc: '2.0',
      id: asked?.id,
      method: 'tools/x',
      params: { cursor: 'c', ...hasMeta(meta) },
    });
    await say(answerTo(asked?.id, { x: 1 }));
    expect(await outcome).toMatchObject({ kind: 'answered' });
  });

  it('sends notifications with the edits', async () => {
    const { connection, peer } = await open();
    const notice = notificationOf(
      '{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1.0,"progressToken":"a"}}',
    );
    const span = notice.tokens.progressToken ?? { start: 0, end: 0 };
    connection.notify(notice);
    connection.notify(notice, [{ span, text: bytesOf('7') }]);
    await settled();
    expect(peer.received.lines).toEqual([
      '{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1.0,"progressToken":"a"}}',
      '{"jsonrpc":"2.0","method":"notifications/x","params":{"n":1.0,"progressToken":7}}',
    ]);
  });

  it('reports progress that moves forward, and counts the rest', async () => {
    const { connection, notifications, send, say, read } = await open();
    const { listener } = send();
    const [call] = await read();
    await say(progressOf(call?.id, 1), progressOf(call?.id, 0.5), progressOf(call?.id, 2), progressOf(1_000, 1));
    expect(listener.reports.map((report) => JSON.parse(report).params.progress)).toEqual([1, 2]);
    expect(connection.counters.staleProgress).toBe(2);
    expect(notifications).toEqual([]);
    await say(answerTo(call?.id), progressOf(call?.id, 3));
    expect(connection.counters.staleProgress).toBe(3);
  });

  it('begins with the progress that was reported already', async () => {
    const { connection, say, read } = await open();
    const reports: number[] = [];
    connection.send(new EnvelopeRequest(requestOf(CALL)), [], TIMEOUTS, {
      progressed: 5,
      settle: () => {},
      progress: (_, value) => reports.push(value),
    });
    const [call] = await read();
    await say(progressOf(call?.id, 4), progressOf(call?.id, 6));
    expect(reports).toEqual([6]);
  });

  it('keeps reporting progress of a task until it is told to stop', async () => {
    const { connection, send, say, read } = await open();
    const { listener, sent } = send();
    const [call] = await read();
    await say(answerTo(call?.id, { task: {} }));
    const stop = sent?.keepProgress();
    await say(progressOf(call?.id, 1));
    stop?.();
    await say(progressOf(call?.id, 2));
    expect(listener.reports).toHaveLength(1);
    expect(connection.counters.staleProgress).toBe(1);
  });

  describe('timeouts', () => {
    it('end a request without an answer, notify the server, and make the answer late', async () => {
      const { connection, send, say, read, advance } = await open();
      const { listener } = send();
      const [call] = await read();
      await advance(999);
      expect(listener.told).toEqual([]);
      await advance(1);
      expect(listener.told).toEqual(['timeout sent']);
      expect(await read()).toEqual([
        {
          jsonrpc: '2.0',
          method: 'notifications/cancelled',
          params: { requestId: call?.id, ...(hasNotices && { reason: 'timed out' }) },
        },
      ]);
      await say(answerTo(call?.id));
      expect(connection.counters.late).toBe(1);
      expect(listener.told).toHaveLength(1);
    });

    it('F46: start again with progress, up to the maximum', async () => {
      const { send, say, read, advance } = await open();
      const { listener } = send(CALL, { idleMs: 1_000, maxMs: 2_500 });
      const [call] = await read();
      await advance(900);
      await say(progressOf(call?.id, 1));
      await advance(900);
      await say(progressOf(call?.id, 2));
      await advance(699);
      expect(listener.told).toEqual([]);
      await advance(1);
      expect(listener.told).toEqual(['timeout sent']);
    });

    it('can be shorter until the first sign', async () => {
      const { send, advance } = await open();
      const { listener } = send(CALL, { firstMs: 300, idleMs: 1_000, maxMs: 5_000 });
      await advance(300);
      expect(listener.told).toEqual(['timeout sent']);
    });
  });

  describe('a cancellation', () => {
    it('settles the request, and the server gets the notification of the client', async () => {
      const { send, say, read, connection } = await open();
      const { listener, sent } = send();
      const [call] = await read();
      const words = { reason: 'enough', _meta: { x: 1 } };
      const params = { requestId: 'c-1', ...words };
      sent?.cancel(notificationOf({ jsonrpc: '2.0', method: 'notifications/cancelled', params }));
      sent?.cancel();
      expect(listener.told).toEqual(['cancelled sent']);
      expect((await read()).map((message) => message.params)).toEqual([
        { requestId: call?.id, ...(hasNotices && words) },
      ]);
      await say(answerTo(call?.id));
      expect(connection.counters.late).toBe(1);
      expect(listener.told).toHaveLength(1);
    });

    it('needs no notification of the client', async () => {
      const { send, read } = await open();
      const { sent } = send();
      const [call] = await read();
      sent?.cancel();
      expect((await read()).map(({ params }) => params)).toEqual([{ requestId: call?.id }]);
    });

    it('does nothing once the request is answered', async () => {
      const { send, say, read } = await open();
      const { listener, sent } = send();
      const [call] = await read();
      await say(answerTo(call?.id, { n: 1 }));
      sent?.cancel();
      expect(listener.told).toEqual(['{"n":1}']);
      expect(await read()).toEqual([]);
    });
  });

  it('fails requests as unsent if the server does not read', async () => {
    const { connection, clock, peer, send, read } = await open();
    peer.setReading(false);
    const { listener } = send();
    const outcome = connection.request('x', undefined, TIMEOUTS);
    clock.advance(5_100);
    expect(listener.told).toEqual(['overloaded unsent']);
    expect(await outcome).toMatchObject({ reason: 'overloaded', sent: false });
    expect(await read()).toEqual([]);
    peer.setReading(true);
    await settled();
    expect(connection.inFlight).toBe(0);
    send();
    expect(await read()).toHaveLength(1);
  });

  it.each(['exited', 'stopped'] as const)('settles everything when it is closed: %s', async (reason) => {
    const { clock, connection, requests, notifications, send, say, read } = await open();
    const { listener, sent } = send();
    const own = connection.request('x', undefined, TIMEOUTS);
    await read();
    connection.close(reason);
    connection.close('exited');
    expect(connection).toMatchObject({ isClosed: true, inFlight: 0 });
    expect(listener.told).toEqual([`${reason} sent`]);
    expect(await own).toEqual({ kind: 'failed', reason, sent: true });

    const late = send();
    expect([late.sent, late.listener.told]).toEqual([undefined, [`${reason} unsent`]]);
    expect(await connection.request('x', undefined, TIMEOUTS)).toEqual({ kind: 'failed', reason, sent: false });
    connection.notify(notificationOf({ jsonrpc: '2.0', method: 'notifications/x' }));
    sent?.cancel();
    await say({ jsonrpc: '2.0', method: 'notifications/x' }, { jsonrpc: '2.0', id: 'q', method: 'roots/list' });
    expect([await read(), notifications, requests]).toEqual([[], [], []]);
    expect(clock.pending).toBe(0);
  });
});

function hasMeta(meta: object): object {
  return Object.keys(meta).length === 0 ? {} : { _meta: meta };
}

describe.each(WITH_HANDSHAKE)('%s, which sends requests itself', (_, Peer) => {
  const open = opener(Peer);

  it('has the timeouts of its requests wait while it waits for an answer itself, up to the maximum', async () => {
    const { requests, send, say, advance } = await open();
    const [answered, unanswered] = [send(), send(CALL, { idleMs: 1_000, maxMs: 2_000 })];
    await say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create' });
    await advance(2_000);
    expect(answered.listener.told).toEqual([]);
    expect(unanswered.listener.told).toEqual(['timeout sent']);
    requests[0]?.succeed(bytesOf('{}'));
    await advance(1_000);
    expect(answered.listener.told).toEqual(['timeout sent']);
  });

  describe('the server', () => {
    it('reaches the listener with its notifications and requests, and is answered under its own id', async () => {
      const { requests, notifications, say, peer } = await open();
      const ask = (id: number) => ({ jsonrpc: '2.0', id, method: 'roots/list' });
      await say(ask(1), { jsonrpc: '2.0', method: 'notifications/message', params: {} }, ask(2), ask(3));
      expect(notifications.map(({ method }) => method)).toEqual(['notifications/message']);
      expect(requests.map(({ request }) => request.method)).toEqual(['roots/list', 'roots/list', 'roots/list']);
      const [first, second, third] = requests;
      const answer = responseOf('{"result":{"n":1.0,"x":"y"},"id":"client","jsonrpc":"2.0"}');
      const span = { start: 10, end: 27 };
      first?.answer(answer, [{ span, text: bytesOf('{"n":2.0}') }]);
      second?.succeed(bytesOf('{"n":1.0}'));
      third?.fail(new RpcError(-32601, 'no'));
      await settled();
      expect(peer.received.lines).toEqual([
        '{"result":{"n":2.0},"id":1,"jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","id":2,"result":{"n":1.0}}',
        '{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}',
      ]);
    });

    it("gets a client's progress under its own token, if it wants any", async () => {
      const { requests, say, read } = await open();
      const _meta = { progressToken: 'its own' };
      await say({ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: { _meta } });
      await say({ jsonrpc: '2.0', id: 2, method: 'sampling/createMessage', params: {} });
      for (const request of requests) request.progress(notificationOf(progressOf(12, 1)), []);
      expect((await read()).map(({ params }) => params)).toEqual([{ progressToken: 'its own', progress: 1 }]);
    });
  });

  it('gets no answer once it is closed', async () => {
    const { connection, requests, say, read } = await open();
    await say({ jsonrpc: '2.0', id: 1, method: 'roots/list' });
    connection.close('stopped');
    requests[0]?.succeed(bytesOf('{}'));
    expect([await read(), connection.counters.unsentReplies]).toEqual([[], 1]);
  });
});
