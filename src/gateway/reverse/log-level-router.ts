import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { isString, readString, toBytes } from '../../json/json-text.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { NotificationEnvelope } from '../../mcp/envelope.js';
import { isAtLeast, isLogLevel, type LogLevel, mostTalkative } from '../../mcp/log-levels.js';
import { METHODS } from '../../mcp/methods.js';
import type { Backend } from '../registry/backend.js';

const EMPTY_RESULT = toBytes('{}');

/**
 * Which client gets which log messages of the servers.
 *
 * Each client sets a level of its own; servers are asked for the most talkative of them. A client that set none gets
 * whatever comes, as it would from a server directly.
 */
export class LogLevelRouter {
  readonly #levels = new Map<DownstreamClient, LogLevel>();
  /** What the present process of each backend was told last. */
  readonly #told = new WeakMap<Backend, LogLevel>();

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

  /** Tells a server the level that clients want, if any said so; a new process knows nothing of it. */
  restore(backend: Backend): void {
    this.#told.delete(backend);
    this.adjust(backend);
  }

  /** Whether the client wants to see this message. */
  isWanted(client: DownstreamClient, { bytes, tokens }: NotificationEnvelope): boolean {
    const least = this.#levels.get(client);
    if (least === undefined || tokens.level === undefined || !isString(bytes, tokens.level)) return true;
    return isAtLeast(readString(bytes, tokens.level), least);
  }

  /** The client is gone. The servers that it used may be less talkative now, see `adjust`. */
  drop(client: DownstreamClient): void {
    this.#levels.delete(client);
  }

  /** Tells the process what its clients want, if that is something else than it was told last. */
  adjust(backend: Backend): void {
    const { dispatcher, clients } = backend;
    const level = mostTalkative([...clients].flatMap((client) => this.#levels.get(client) ?? []));
    const { connection } = dispatcher;
    if (level === undefined || level === this.#told.get(backend) || connection?.offers('logging') !== true) return;
    this.#told.set(backend, level);
    void connection.ask(METHODS.setLevel, { level }, dispatcher.listTimeouts);
  }
}
