import type { Exchange } from '../../downstream/port.js';
import { toBytes } from '../../json/json-text.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import type { Dispatcher } from './dispatcher.js';
import { FAILURE_REASONS } from './send-failures.js';

/** The server that a `ping` is for. */
interface PingedServer {
  readonly dispatcher: Dispatcher;
  /** The connection, also before its lists are read. */
  readonly openConnection: UpstreamConnection | undefined;
}

const EMPTY_RESULT = toBytes('{}');

/**
 * Relays the `ping` of a client that sees one server unchanged. The server gets it at once, whatever calls wait: it takes
 * no slot and does not count as use of the server or for its circuit breaker.
 *
 * A client pings its session, which outlives processes. So the gateway answers while no process can, or if the process
 * ends before it answers.
 */
export function relayPing(exchange: Exchange, server: PingedServer | undefined): void {
  const { openConnection: connection, dispatcher } = server ?? {};
  if (connection === undefined || dispatcher === undefined) {
    exchange.succeed(EMPTY_RESULT);
    return;
  }
  const sent = connection.send(exchange.request, [], dispatcher.listTimeouts, {
    settle: (outcome) => {
      if (outcome.kind === 'answered') exchange.answer(outcome.response);
      else if (outcome.reason === 'exited' || outcome.reason === 'stopped') exchange.succeed(EMPTY_RESULT);
      else if (outcome.reason !== 'cancelled')
        exchange.fail(dispatcher.failureOf(FAILURE_REASONS[outcome.reason], outcome.sent, outcome));
    },
  });
  if (sent !== undefined) exchange.onCancel((notification) => sent.cancel(notification));
}
