import type { EventSource, HttpEvent } from '../host/observe/events/events.js';
import type { Logger } from '../host/observe/logger.js';
import { createToolCountWarning } from '../status/status-advice.js';

/** Logs the events of the gateway. `StateLog` logs the states of servers, because their output belongs in the record. */
export function logEvents(events: EventSource, logger: Logger): void {
  events.subscribe('internal.error', ({ error }) => {
    logger.error({ err: error }, 'internal error: one request failed; please report this bug');
  });
  const warnOfToolCount = createToolCountWarning((advice) => logger.warn(advice));
  events.subscribe('lists.merged', ({ tools, only }) => {
    if (only === undefined) warnOfToolCount(tools);
  });
  events.subscribe('loop.held', ({ ms }) => logger.warn({ ms }, 'one piece of work held up all servers and clients'));
  events.subscribe('client.connected', ({ kind, fault, ...client }) => {
    logger.info(client, 'client connected');
    if (fault !== undefined) logger.error({ name: client.name }, fault);
  });
  events.subscribe('client.left', ({ kind, fault, ...client }) => logger.info(client, 'client left'));
}

export function logHttpEvents(events: EventSource, logger: Logger): void {
  for (const kind of HTTP_EVENTS) {
    events.subscribe(kind, (event) => logger.info({ ...event }, kind.replace('.', ' ')));
  }
}

const HTTP_EVENTS = [
  'http.listening',
  'http.draining',
  'http.refused',
  'http.session-opened',
  'http.session-resumed',
  'http.session-ended',
  'http.stream-cut',
  'http.connection-refused',
  'http.connection-evicted',
  'http.connection-failed',
] as const satisfies readonly HttpEvent['kind'][];
