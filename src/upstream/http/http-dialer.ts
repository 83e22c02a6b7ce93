import type { Agent } from 'node:http';
import type { OnInternalError } from '../../host/errors/internal-error.js';
import { type AgentOptions, createAgent } from '../../host/http/agents.js';
import type { HttpAnswer } from '../../host/http/decode.js';
import type { RemoteSpec } from '../../spec/server-spec.js';
import type { MessageFeed } from '../../wire/io/message-feed.js';
import type { Backpressure } from '../../wire/io/streams/backpressure.js';
import { FloodBound, type FloodQueue } from '../../wire/io/streams/turn-reader.js';
import { LIST_KINDS, LISTS } from '../../wire/mcp/methods.js';
import type { EndedBecause } from '../../wire/mcp/outcome.js';
import { ownNotification } from '../../wire/mcp/relayed-request.js';
import type { Cancel } from '../../wire/timing/clock.js';
import { Bridge } from '../channel/bridge.js';
import type { MessageReader, SharedReading } from '../channel/message-reader.js';
import { type Dialect, openConnection } from '../dialect.js';
import { LivenessProbe } from '../health/health-monitor.js';
import type { Dialed, DialOutcome, DialTarget, UpstreamConnection, UpstreamListener } from '../upstream-connection.js';
import type { OpenedAccess } from './access.js';
import { HttpOutput } from './http-output.js';
import type { ConnectionLoss, ToolHeaders } from './http-session.js';

export interface HttpDialerOptions extends HttpReading {
  /** Opens the access of one connection. The end of the connection waits for `release`. */
  readonly openAccess: (spec: RemoteSpec) => OpenedAccess;
  /** Makes the agent of a server, for connections to other gateways and for tests. */
  readonly createAgent?: (url: URL, options: AgentOptions) => Agent;
}

/** The parts that all connections share. */
export interface HttpReading extends SharedReading {
  /** Queue of the servers that send output without answering a request. One of them is read at a time. */
  readonly floods: FloodQueue;
  /** Opens a connection in the era that the server speaks. */
  readonly dialect: Dialect;
  readonly backpressure: Backpressure;
  readonly onInternalError: OnInternalError;
  readonly redact?: (text: string) => string;
  readonly messages: MessageFeed;
}

export interface RemoteTarget extends DialTarget<RemoteSpec>, ToolHeaders {}

/** Shortest time between two readings of the lists for changes that were missed, in milliseconds. */
const REREAD_MS = 10_000;
/** Notifications with which a server reports that its lists have changed. */
const CHANGES = new Set(LIST_KINDS.map((kind) => LISTS[kind].changed));
const UNRESPONSIVE = 'it answered neither three requests in a row nor a ping nor tools/list';
const ENDLESS = 'for a minute it sent more than Trunkline can read, without answering anything';
/** Longest time without a byte of an answer that has begun, in milliseconds. */
const GAP_MS = 300_000;

/** The fault to report for each way in which a connection is lost. */
const FAULT_OF_LOSS = { lapsed: 'server', unreachable: 'network', blocked: 'blocked' } as const satisfies Record<
  ConnectionLoss,
  string
>;

export class HttpDialer {
  readonly #options: HttpDialerOptions;

  constructor(options: HttpDialerOptions) {
    this.#options = options;
  }

  dial(target: RemoteTarget, listener: UpstreamListener): Dialed {
    const { clock, scan, messages, openAccess, onInternalError, unfinishedLines, bufferPool } = this.#options;
    const { redact = (text: string) => text } = this.#options;
    const { spec, generation, log, maxFrameBytes, maxUnwrittenBytes, paramsOf, rereadTools } = target;
    const url = new URL(spec.url);
    const { access, release } = openAccess(spec);
    const connection = { number: messages.nextConnection(), server: spec.key, generation };
    const flood = new FloodBound(this.#options.floods, () => giveUp(ENDLESS));
    let loss: { readonly loss: ConnectionLoss; readonly because: string } | undefined;
    let opened: UpstreamConnection | undefined;
    const giveUp = (because: EndedBecause) => {
      bridge.close('exited', because);
      listener.unfit(because);
    };
    const output = new HttpOutput({
      url,
      clock,
      scan,
      maxFrameBytes,
      paramsOf,
      rereadTools,
      transport: spec.transport,
      agent: (this.#options.createAgent ?? createAgent)(url, spec),
      access,
      incoming: {
        open: (request) => bridge.open(request),
        close: (reader) => bridge.end(reader),
        follow: (response, reader, push) => this.#follow(response, push, flood, reader, spec.key),
        isPending: (id) => bridge.isPending(id),
        passedHeaders: (id) => bridge.passedHeaders(id),
        fail: (id, reason, sent, because) => bridge.fail(id, reason, sent, because && redact(because)),
        lost: (reason, because) => {
          loss = { loss: reason, because };
          bridge.close('exited', because);
          // While the connection is being opened, the outcome of the dial reports the loss.
          if (opened !== undefined) listener.lost(FAULT_OF_LOSS[reason], because);
        },
        note: (text) => log.add(text),
        renewed: () => {
          bridge.counters.forgottenSessions += 1;
          missedChanges();
        },
        missedChanges: () => missedChanges(),
      },
    });
    let rereadAt = Number.NEGATIVE_INFINITY;
    let cancelReread: Cancel | undefined;
    const missedChanges = () => {
      const waitMs = rereadAt + REREAD_MS - clock.now();
      if (waitMs > 0) {
        cancelReread ??= clock.schedule(waitMs, missedChanges);
        return;
      }
      cancelReread = undefined;
      rereadAt = clock.now();
      for (const changed of CHANGES) {
        const notification = ownNotification(changed);
        if (notification !== undefined) listener.notification(notification);
      }
    };
    const bridge = new Bridge({
      clock,
      scan,
      output,
      maxFrameBytes,
      maxUnwrittenBytes,
      unfinishedLines,
      bufferPool,
      flood,
      feed: { messages, connection },
      holdsBack: (error, request) => output.doubts(error, request),
      events: {
        silent: () => livenessProbe.start(),
        violated: giveUp,
        fault: onInternalError,
        request: (request) => listener.request(request),
        notification: (notification) => listener.notification(notification),
        junk: (line, reason) => log.addJunk(line, reason),
      },
    });
    const livenessProbe = new LivenessProbe({
      clock,
      connection: bridge,
      request: (...request) => (opened ?? bridge).request(...request),
      suspected: () => listener.suspected(),
      cleared: () => listener.cleared(),
      unresponsive: () => giveUp(UNRESPONSIVE),
    });
    // Servers with this transport speak revision 2024-11-05.
    if (spec.transport === 'sse') target.era.fixByTransport('legacy');
    return {
      pid: undefined,
      connection: openConnection(this.#options.dialect, bridge, target, listener).then((outcome): DialOutcome => {
        if (outcome.kind === 'open') {
          opened = outcome.connection;
          return outcome;
        }
        const failed = { ...outcome, retryAfterMs: output.pauseMs };
        return loss === undefined ? failed : { ...failed, reason: loss.because, fault: FAULT_OF_LOSS[loss.loss] };
      }),
      end: async () => {
        cancelReread?.();
        bridge.close('stopped');
        await Promise.all([output.end(), release()]);
      },
    };
  }

  /** Reads an answer, at the pace that the clients and the other servers allow. Resolves with whether it is complete. */
  #follow(
    response: HttpAnswer,
    push: (chunk: Uint8Array) => void,
    flood: FloodBound,
    reader: MessageReader,
    key: string,
  ): Promise<boolean> {
    const { clock, backpressure } = this.#options;
    const pace = flood.pace(reader);
    const hold = backpressure.add(response, key);
    let cancelGap = () => {};
    const awaitMore = () => {
      cancelGap();
      cancelGap = clock.schedule(GAP_MS, () => response.destroy());
    };
    awaitMore();
    response.on('data', (chunk: Uint8Array) => {
      const startedAt = clock.now();
      push(chunk);
      awaitMore();
      if (pace({ startedAt, endedAt: clock.now(), byteLength: chunk.length }, () => hold.resume())) hold.pause();
    });
    return new Promise((resolve) => {
      response.once('close', () => {
        cancelGap();
        resolve(response.complete);
      });
    });
  }
}
