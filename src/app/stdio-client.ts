import { openStdioTransport } from '../downstream/stdio/stdio-transport.js';
import type { PendingGateway } from '../gateway/pending-gateway.js';
import { IDENTITY } from '../version.js';
import { createEraChooser } from './choose-era.js';
import type { Platform } from './platform.js';

/** A gateway must accept every message that a direct connection accepts. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** How long the start waits for the first message of a client that is already connected. */
const FIRST_MESSAGE_MS = 30;

/** Principal for the stdio client: the operating-system user that started the gateway. */
const LOCAL_USER = 'local';

/** The client at the other end of stdin and stdout. */
export interface StdioClient {
  /** Resolves when the client closes stdin. */
  readonly left: Promise<void>;
  /** Resolves with the unwritten bytes when the session was closed because the client does not read. */
  readonly unread: Promise<number>;
  readonly isGone: () => boolean;
}

/** Opens a session over stdin and stdout; resolves after the first message or after 30 ms. */
export async function openStdioClient(platform: Platform, gateway: PendingGateway): Promise<StdioClient> {
  let isGone = false;
  let onFirstMessage = () => {};
  const firstMessage = new Promise<void>((resolve) => {
    onFirstMessage = resolve;
  });
  let onUnread: (unwrittenBytes: number) => void = () => {};
  const unread = new Promise<number>((resolve) => {
    onUnread = resolve;
  });
  const left = new Promise<void>((resolve) => {
    openStdioTransport({
      input: process.stdin,
      output: process.stdout,
      backpressure: platform.backpressure,
      maxLineBytes: MAX_LINE_BYTES,
      partialFrames: platform.partialFrames,
      bufferPool: platform.bufferPool,
      scan: platform.scan,
      chooseEra: createEraChooser(platform, gateway, IDENTITY),
      principal: LOCAL_USER,
      onInternalError: platform.internalErrors.onInternalError,
      onFirstMessage,
      onEnd: () => {
        isGone = true;
        resolve();
      },
      onUnread,
    });
  });
  await inTime(firstMessage, FIRST_MESSAGE_MS);
  return { left, unread, isGone: () => isGone };
}

/** Resolves when the promise does, or after `ms` milliseconds. */
async function inTime(awaited: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([awaited, tooLong]);
  clearTimeout(timer);
}
