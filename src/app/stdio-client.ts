import { openStdioTransport, type StdioTransport } from '../downstream/stdio/stdio-transport.js';
import type { Gateway } from '../gateway/gateway.js';
import type { PendingGateway } from '../gateway/pending-gateway.js';
import { readInto } from '../io/streams/read-into.js';
import type { EventSource } from '../observe/events/events.js';
import type { Logger } from '../observe/logger.js';
import type { Cancel, Clock } from '../timing/clock.js';
import { IDENTITY } from '../version.js';
import { createEraChooser, type Platform } from './platform.js';

/** A gateway must accept every message that a direct connection accepts. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** How long the start waits for the first message of a client that is already connected. */
export const FIRST_MESSAGE_MS = 30;

/** Principal for the stdio client: the operating-system user that started the gateway. */
export const LOCAL_USER = 'local';

/** The client at the other end of stdin and stdout. */
export interface StdioClient extends Omit<StdioTransport, 'whenAllWritten' | 'revision'> {
  /** Resolves when the client has closed stdin. It may still wait for answers. */
  readonly inputEnded: Promise<void>;
  /** Resolves when the client has closed stdin and has all answers, or when nobody reads stdout any more. */
  readonly left: Promise<void>;
  /** Resolves with the unwritten bytes when the session was closed because the client does not read. */
  readonly unread: Promise<number>;
  readonly isGone: () => boolean;
}

/** Opens a session over stdin and stdout, for a client of this view; resolves after the first message or after 30 ms. */
export async function openStdioClient(
  platform: Platform,
  gateway: PendingGateway,
  view?: string,
): Promise<StdioClient> {
  let isGone = false;
  const [firstMessage, onFirstMessage] = signal();
  const [inputEnded, onInputEnd] = signal();
  const [left, onLeft] = signal();
  const [unread, onUnread] = signal<number>();
  const transport = openStdioTransport({
    read: (reader) => readInto(process.stdin, reader),
    output: process.stdout,
    backpressure: platform.backpressure,
    maxLineBytes: MAX_LINE_BYTES,
    unfinishedLines: platform.unfinishedLines,
    bufferPool: platform.bufferPool,
    clock: platform.clock,
    messages: platform.messages,
    scan: platform.scan,
    chooseEra: createEraChooser(platform, gateway, IDENTITY),
    principal: LOCAL_USER,
    view,
    onInternalError: platform.internalErrors.onInternalError,
    onFirstMessage,
    onInputEnd,
    onEnd: () => {
      isGone = true;
      onLeft();
    },
    onUnread,
  });
  await inTime(firstMessage, FIRST_MESSAGE_MS);
  return {
    inputEnded,
    left,
    unread,
    isGone: () => isGone,
    get inFlight() {
      return transport.inFlight;
    },
    get profile() {
      return transport.profile;
    },
    probe: () => transport.probe(),
    close: () => transport.close(),
  };
}

/** A promise, and the function that resolves it. */
export function signal<T = void>(): [promise: Promise<T>, resolve: (value: T) => void] {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return [promise, resolve];
}

/** Resolves when the promise does, or after `ms` milliseconds. */
export async function inTime(awaited: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<void>((resolve) => {
    // Timers run before reads. On a busy machine, the message may be in the pipe already, so one read comes first.
    timer = setTimeout(() => setImmediate(resolve), ms);
  });
  await Promise.race([awaited, tooLong]);
  clearTimeout(timer);
}

/** How long a client that has closed stdin still gets answers. Its host may send SIGTERM after two seconds, too. */
const DRAIN_MS = 2_000;
/** The first check whether somebody still reads stdout. Each further check comes after twice the time. */
const FIRST_PROBE_MS = 100;

export interface DrainOptions {
  readonly clock: Clock;
  readonly events: EventSource;
  readonly gateway: Pick<Gateway, 'isReady' | 'pool'>;
  /** How long requests wait for servers that are starting. The drain begins that much later at most. */
  readonly startupWaitMs: number;
  readonly logger: Pick<Logger, 'warn'>;
  /** Aborted at a signal, which ends the drain. */
  readonly ending: AbortSignal;
}

/**
 * Resolves when the client has left. A client that closes stdin still gets the answers that come within the drain. The
 * drain begins when no server is starting any more. It ends at once when all requests are answered, when stdout has no
 * reader, or at a signal, because the signal also ends the servers.
 */
export async function drainClient(client: StdioClient, options: DrainOptions): Promise<void> {
  void client.inputEnded.then(() => {
    const close = () => client.close();
    if (options.ending.aborted) close();
    options.ending.addEventListener('abort', close);
    const cancel = [limitDrain(client, close, options), probeRepeatedly(client, options.clock, FIRST_PROBE_MS)];
    void client.left.then(() => {
      for (const each of cancel) each();
    });
  });
  await client.left;
}

/** Calls `close` when the drain is over. `end` says what ends then. */
export function limitDrain(
  client: Pick<StdioClient, 'inFlight'>,
  close: () => void,
  { clock, events, gateway, startupWaitMs, logger }: DrainOptions,
  end = 'Trunkline ends',
): Cancel {
  let cancelDrain: Cancel | undefined;
  let isWaitOver = false;
  const giveUp = () => {
    const unanswered = client.inFlight;
    const what = unanswered > 0 ? 'its last requests were not answered' : 'it did not read its last answers';
    logger.warn({ unanswered }, `the client closed stdin, and ${what} within ${DRAIN_MS / 1_000} s: ${end}`);
    close();
  };
  const update = () => {
    const isPostponed = !isWaitOver && isStarting(gateway);
    if (isPostponed) cancelDrain?.();
    cancelDrain = isPostponed ? undefined : (cancelDrain ?? clock.schedule(DRAIN_MS, giveUp));
  };
  const unsubscribe = events.subscribe('server.changed', update);
  const cancelWait = clock.schedule(startupWaitMs, () => {
    isWaitOver = true;
    update();
  });
  update();
  return () => {
    unsubscribe();
    cancelWait();
    cancelDrain?.();
  };
}

/** Whether a server starts for the first time, so that a list may wait for it, or starts for a call. */
function isStarting({ isReady, pool }: DrainOptions['gateway']): boolean {
  if (!isReady) return true;
  const backends = [...pool.keys].flatMap((key) => pool.of(key));
  return backends.some(
    ({ dispatcher }) => dispatcher.admission.isAwaited && dispatcher.availability.state === 'starting',
  );
}

function probeRepeatedly(client: StdioClient, clock: Clock, delayMs: number): Cancel {
  let cancelNext: Cancel = () => {};
  const cancel = clock.schedule(delayMs, () => {
    client.probe();
    cancelNext = probeRepeatedly(client, clock, delayMs * 2);
  });
  return () => {
    cancel();
    cancelNext();
  };
}
