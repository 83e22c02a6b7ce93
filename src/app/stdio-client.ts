import { openStdioTransport, type StdioTransport } from '../downstream/stdio/stdio-transport.js';
import type { PendingGateway } from '../gateway/pending-gateway.js';
import { readInto } from '../io/streams/read-into.js';
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
