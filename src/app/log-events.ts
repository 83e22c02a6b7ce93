import { CODES } from '../host/errors/codes.js';
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

const CHANGES = {
  joined: 'another gateway has joined the cluster',
  left: 'another gateway has left the cluster, and its users are served elsewhere',
  unreachable: 'another gateway does not answer at its peer port, and its users are served elsewhere until it does',
  reachable: 'another gateway answers at its peer port again',
};

/** Logs what happens to the cluster, and has the status tell of a store that is away. */
export function logClusterEvents(events: EventSource, logger: Logger, notices: Map<string, string>): void {
  events.subscribe('cluster.member', ({ change, kind: _, ...member }) =>
    logger[change === 'unreachable' ? 'warn' : 'info'](member, CHANGES[change]),
  );
  events.subscribe('cluster.stranger', () =>
    logger.warn('the store has a gateway with another key; give all gateways of the cluster the same `sealKeyFile`'),
  );
  events.subscribe('cluster.store', ({ isUp, reason }) => {
    // The reason is for the operator, because it may have an address.
    if (isUp) notices.delete('cluster');
    else notices.set('cluster', CODES['TL-CLUSTER-STORE-AWAY'].means);
    if (isUp) logger.info('the store of the cluster answers');
    else logger.warn({ reason }, 'the store of the cluster is away; the gateways go on with what they know');
  });
  events.subscribe('cluster.fenced', ({ clients }) =>
    logger.warn({ clients }, 'clients were ended here, because another gateway serves their users or sessions now'),
  );
  events.subscribe('cluster.unsent', ({ instance, reason }) =>
    logger.info({ instance, reason }, 'a request could not be passed to its gateway, and is served elsewhere'),
  );
}

/** Logs the events of the HTTP transport. */
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
