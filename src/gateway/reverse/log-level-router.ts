import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { stringAt, toBytes } from '../../wire/json/json-text.js';
import { EMPTY_RESULT, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { NotificationEnvelope } from '../../wire/mcp/envelope.js';
import { isAtLeast, isLogLevel, type LogLevel, METHODS, MOST_VERBOSE, mostTalkative } from '../../wire/mcp/methods.js';
import type { RelayedRequest } from '../../wire/mcp/relayed-request.js';
import type { Handling } from '../dispatch/call.js';
import type { Backend } from '../registry/backend.js';

/**
 * Filters servers' log messages by each client's level. A server gets the most verbose level of its clients.
 *
 * A client without a level gets every message of the server. No level of another client may hide messages from it, so
 * the server then gets the most verbose level of all.
 */
export class LogLevelRouter {
  readonly #levels = new Map<DownstreamClient, LogLevel>();
  /** The level that the present process of each backend got last. */
  readonly #sent = new WeakMap<Backend, LogLevel>();
  readonly #backendsOf: (client: DownstreamClient) => Iterable<Backend>;

  /** `backendsOf` returns the backends that a client uses now; none if it has left. */
  constructor(backendsOf: (client: DownstreamClient) => Iterable<Backend>) {
    this.#backendsOf = backendsOf;
  }

  /** Serves `logging/setLevel` of a client that sees all servers. */
  setLevel(exchange: Exchange, backends: Iterable<Backend>): void {
    const level = requestedLevel(exchange.request);
    if (level === undefined) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, `${METHODS.setLevel} needs a level such as "info"`));
      return;
    }
    this.#levels.set(exchange.client, level);
    for (const backend of backends) this.adjust(backend);
    exchange.succeed(EMPTY_RESULT);
  }

  /** Handling of `logging/setLevel` of a client of this server alone. Another client may need a more verbose level. */
  relay({ client, request }: Exchange, backend: Backend): Handling {
    const level = requestedLevel(request);
    const span = request.tokens.level;
    if (level === undefined || span === undefined) return { edits: [] };
    const needed = this.#needed(backend, (each) => (each === client ? level : this.#levels.get(each))) ?? level;
    return {
      edits: needed === level ? [] : [{ span, text: toBytes(JSON.stringify(needed)) }],
      onAnswered: ({ error }) => {
        // A change of the configuration may have replaced the server meanwhile.
        const backends = [...this.#backendsOf(client)];
        if (error !== undefined || backends.length === 0) return;
        this.#sent.set(backend, needed);
        this.#levels.set(client, level);
        for (const each of backends) this.adjust(each);
      },
    };
  }

  /** Sends the level to a new process, which does not know it. */
  restore(backend: Backend): void {
    this.#sent.delete(backend);
    this.adjust(backend);
  }

  isWanted(client: DownstreamClient, notification: NotificationEnvelope): boolean {
    return reachesLevel(notification, this.#levels.get(client));
  }

  /** Raises the level of a server for a request that wants log messages. The most verbose level of all requests stays. */
  raise(client: DownstreamClient, logLevel: LogLevel, backend: Backend): void {
    const before = this.#levels.get(client);
    const level = before === undefined ? logLevel : (mostTalkative([before, logLevel]) ?? logLevel);
    this.#levels.set(client, level);
    // The earlier request may have gone to another server, so this server may not know the level yet.
    this.adjust(backend);
  }

  /** Forgets a client that has left. Call `adjust` for its servers after that, because they may become less verbose. */
  drop(client: DownstreamClient): void {
    this.#levels.delete(client);
  }

  /** Sends the level that the clients need to the process, if it differs from the last one. */
  adjust(backend: Backend): void {
    const { dispatcher } = backend;
    const { connection } = dispatcher;
    const level = this.#needed(backend, (client) => this.#levels.get(client));
    if (level === undefined || level === this.#sent.get(backend) || connection?.offers('logging') !== true) return;
    this.#sent.set(backend, level);
    void connection.request(METHODS.setLevel, { level }, dispatcher.listTimeouts);
  }

  /** The level that serves all clients; `undefined` if the process may choose its level or has no client. */
  #needed(backend: Backend, levelOf: (client: DownstreamClient) => LogLevel | undefined): LogLevel | undefined {
    const levels = [...backend.clients].map((client) =>
      client.hasSession ? levelOf(client) : (levelOf(client) ?? 'off'),
    );
    const known = levels.filter((level) => level !== undefined && level !== 'off');
    if (!levels.includes(undefined)) return mostTalkative(known);
    return known.length > 0 || this.#sent.has(backend) ? MOST_VERBOSE : undefined;
  }
}

/** Whether a log message is at least as severe as `least`. True if either level is absent. */
export function reachesLevel({ bytes, tokens }: NotificationEnvelope, least: Exchange['logLevel']): boolean {
  if (least === 'off') return false;
  const level = stringAt(bytes, tokens.level);
  return least === undefined || level === undefined || isAtLeast(level, least);
}

function requestedLevel({ bytes, tokens: { level } }: RelayedRequest): LogLevel | undefined {
  const text = stringAt(bytes, level) ?? '';
  return isLogLevel(text) ? text : undefined;
}
