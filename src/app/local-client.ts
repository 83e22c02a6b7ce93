import { ClientPipe } from '../downstream/stdio/client-pipe.js';
import { readText, toBytes } from '../json/json-text.js';
import { type SplicedMessage, splice } from '../json/splice.js';
import type { MessageSink } from '../jsonrpc/message.js';
import { RpcError } from '../jsonrpc/rpc-error.js';
import type { NotificationEnvelope, ResponseEnvelope, ScanEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { LATEST_LEGACY_REVISION } from '../mcp/revisions.js';
import { VERSION } from '../version.js';
import { createEraChooser } from './choose-era.js';
import type { Composition } from './compose.js';

/** Progress as the server reported it, not validated. */
export interface Progress {
  readonly progress?: unknown;
  readonly total?: unknown;
  readonly message?: unknown;
}

interface Pending {
  resolve(result: Uint8Array): void;
  reject(error: Error): void;
  progress(progress: Progress): void;
}

/**
 * A client in the same process. It uses a session as every other client does, but without a pipe, so that a command shows
 * exactly what a client would get.
 */
export class LocalClient {
  readonly #scan: ScanEnvelope;
  readonly #session: ClientPipe;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  private constructor({ platform, gateway }: Composition) {
    const { scan, internalErrors } = platform;
    this.#scan = scan;
    const sink: MessageSink = { send: (message) => this.#receive(message), unwrittenBytes: 0 };
    this.#session = new ClientPipe({
      scan,
      chooseEra: createEraChooser(platform, gateway, IDENTITY),
      sink,
      onInternalError: internalErrors.onInternalError,
      principal: 'local',
    });
  }

  static async open(composition: Composition): Promise<LocalClient> {
    const client = new LocalClient(composition);
    const params = { protocolVersion: LATEST_LEGACY_REVISION, capabilities: {}, clientInfo: IDENTITY };
    await client.request(METHODS.initialize, JSON.stringify(params));
    client.#session.receive(toBytes(`{"jsonrpc":"2.0","method":"${METHODS.initialized}"}`));
    return client;
  }

  /**
   * Resolves with the bytes of the result as the server wrote them, rejects with an `RpcError`. `params` is JSON without
   * line breaks. Progress is reported when `params` has the id of the request, `nextId`, as its progress token.
   */
  request(method: string, params: string, progress: Pending['progress'] = () => {}): Promise<Uint8Array> {
    const id = this.nextId;
    this.#lastId = id;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, progress });
      this.#session.receive(toBytes(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`));
    });
  }

  get nextId(): number {
    return this.#lastId + 1;
  }

  /** Cancels all pending requests. */
  close(): void {
    this.#session.close();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(new Error('The client was closed'));
  }

  #receive(spliced: SplicedMessage): void {
    const message = this.#scan(splice(spliced));
    if (message.kind === 'response') this.#answered(message);
    else if (message.kind === 'notification' && message.method === METHODS.progress) this.#progressed(message);
  }

  #answered({ bytes, id, result, error }: ResponseEnvelope): void {
    const token = readText(bytes, id);
    // The session could not parse the request, so it does not know the id either.
    const ids = token === 'null' ? [...this.#pending.keys()] : [Number(token)];
    for (const each of ids) {
      const pending = this.#pending.get(each);
      this.#pending.delete(each);
      if (result !== undefined) pending?.resolve(bytes.slice(result.start, result.end));
      else if (error !== undefined) pending?.reject(toRpcError(readText(bytes, error)));
    }
  }

  #progressed({ bytes, params, tokens }: NotificationEnvelope): void {
    if (params === undefined || tokens.progressToken === undefined) return;
    const token = readText(bytes, tokens.progressToken);
    this.#pending.get(Number(token))?.progress(JSON.parse(readText(bytes, params)));
  }
}

const IDENTITY = { name: 'trunkline-cli', version: VERSION };

function toRpcError(json: string): RpcError {
  const { code, message, data } = JSON.parse(json);
  return new RpcError(Number(code), String(message), data);
}
