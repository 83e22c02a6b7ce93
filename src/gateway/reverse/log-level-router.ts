import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { isString, readString, toBytes } from '../../json/json-text.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import { isAtLeast, isLogLevel, type LogLevel, mostTalkative } from '../../mcp/log-levels.js';
import { METHODS } from '../../mcp/methods.js';
import type { Backend } from '../registry/backend.js';

const EMPTY_RESULT = toBytes('{}');

/**
 * Filters servers' log messages by each client's level.
 *
 * Each client sets its own level, and a server gets the most verbose level of its clients. A client without a level gets
 * every message, as it would from the server directly.
 */
export class LogLevelRouter {
  readonly #levels = new Map<DownstreamClient, LogLevel>();
  /** The level that the present process of each backend got last. */
  readonly #sent = new WeakMap<Backend, LogLevel>();

  /** Serves `logging/setLevel`. */
  setLevel(exchange: Exchange, backends: Iterable<Backend>): void {
    const { bytes, tokens } = exchange.request;
    const level = tokens.level === undefined || !isString(bytes, tokens.level) ? '' : readString(bytes, tokens.level);
    if (!isLogLevel(level)) {
      exchange.fail(new RpcError(RPC_CODES.invalidParams, `${METHODS.setLevel} needs a level such as "info"`));
      return;
    }
    this.#levels.set(exchange.client, level);
    for (const backend of backends) this.adjust(backend);
    exchange.succeed(EMPTY_RESULT);
  }

  /** Sends the level to a new process, which does not know it. */
  restore(backend: Backend): void {
    this.#sent.delete(backend);
    this.adjust(backend);
  }

  /** Whether the message reaches the client's level. */
  isWanted(client: DownstreamClient, { bytes, tokens }: NotificationEnvelope): boolean {
    const least = this.#levels.get(client);
    if (least === undefined || tokens.level === undefined || !isString(bytes, tokens.level)) return true;
    return isAtLeast(readString(bytes, tokens.level), least);
  }

  /** The client has left. Call `adjust` for its servers, which may be less verbose now. */
  drop(client: DownstreamClient): void {
    this.#levels.delete(client);
  }

  /** Sends the level that the clients need to the process, if it differs from the last one. */
  adjust(backend: Backend): void {
    const { dispatcher, clients } = backend;
    const level = mostTalkative([...clients].flatMap((client) => this.#levels.get(client) ?? []));
    const { connection } = dispatcher;
    if (level === undefined || level === this.#sent.get(backend) || connection?.offers('logging') !== true) return;
    this.#sent.set(backend, level);
    void connection.request(METHODS.setLevel, { level }, dispatcher.listTimeouts);
  }
}
