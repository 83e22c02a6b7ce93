import { createToolCountWarning } from '../gateway/status/status.js';
import type { EventSource } from '../observe/events/event-bus.js';
import type { HttpEvent } from '../observe/events/events.js';
import type { Logger } from '../observe/logger.js';

/** Writes what happens in the gateway to the log. Records about servers need their log and are written elsewhere. */
export function logEvents(events: EventSource, logger: Logger): void {
  events.subscribe('internal.error', ({ error }) => {
    logger.error({ err: error }, 'internal error: one request failed; please report this bug');
  });
  const warnOfToolCount = createToolCountWarning((advice) => logger.warn(advice));
  events.subscribe('lists.merged', ({ tools, only }) => {
    if (only === undefined) warnOfToolCount(tools);
  });
  events.subscribe('loop.held', ({ work, ms, skipped }) => {
    logger.warn({ work, ms, ...(skipped > 0 && { skipped }) }, 'one piece of work held up all servers and clients');
  });
  events.subscribe('client.connected', ({ kind, fault, ...client }) => {
    logger.info(client, 'client connected');
    if (fault !== undefined) logger.error({ name: client.name }, fault);
  });
  events.subscribe('client.left', ({ kind, fault, ...client }) => logger.info(client, 'client left'));
}

/** Writes what happens at the HTTP transport to the log. */
export function logHttpEvents(events: EventSource, logger: Logger): void {
  for (const kind of HTTP_EVENTS) {
    events.subscribe(kind, (event) => logger.info({ ...event }, kind.replace('.', ' ')));
  }
}

const HTTP_EVENTS = [
  'http.listening',
  'http.refused',
  'http.session-opened',
  'http.session-ended',
  'http.stream-cut',
  'http.connection-refused',
  'http.connection-evicted',
  'http.connection-failed',
] as const satisfies readonly HttpEvent['kind'][];
