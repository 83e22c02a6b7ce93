import type { GatewayProcess } from '../app/gateway-process.js';
import type { ClientConnection } from '../app/open-pipe.js';
import { VERSION } from '../version.js';
import { readText, toBytes } from '../wire/json/json-text.js';
import { RPC_CODES, RpcError } from '../wire/jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope, ScanEnvelope } from '../wire/mcp/envelope.js';
import { METHODS } from '../wire/mcp/methods.js';
import { LATEST_LEGACY_REVISION } from '../wire/mcp/revisions.js';

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

/** Identity and capabilities that a client sends in its handshake. */
export interface ToldProfile {
  readonly protocolVersion?: string | undefined;
  readonly capabilities: object;
  readonly clientInfo: object;
}

/** A client for one command. It uses a session as every other client does, so that a command shows exactly what a client would get. */
export class LocalClient {
  readonly #scan: ScanEnvelope;
  readonly #connection: ClientConnection;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  private constructor(scan: ScanEnvelope, connect: Connect) {
    this.#scan = scan;
    this.#connection = connect(
      (message) => this.#receive(message),
      (error) => this.#fail(error),
    );
  }

  /**
   * A client of a gateway in this process, without a pipe. It has the view of this name, or sees everything; with `server`,
   * it sees this one server unchanged.
   */
  static async open(composition: GatewayProcess, view = '', server?: string): Promise<LocalClient> {
    const { scan } = composition.platform;
    const { openPipe } = await import('../app/open-pipe.js');
    return await LocalClient.connect(scan, (receive) => openPipe(composition, receive, view, server));
  }

  /** Shakes hands over the connection that `connect` opens. */
  static async connect(scan: ScanEnvelope, connect: Connect, profile: ToldProfile = OWN_PROFILE): Promise<LocalClient> {
    const client = new LocalClient(scan, connect);
    const { protocolVersion = LATEST_LEGACY_REVISION, capabilities, clientInfo } = profile;
    await client.request(METHODS.initialize, JSON.stringify({ protocolVersion, capabilities, clientInfo }));
    client.#send(`{"jsonrpc":"2.0","method":"${METHODS.initialized}"}`);
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
      this.#send(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`);
    });
  }

  get nextId(): number {
    return this.#lastId + 1;
  }

  /** Closes the connection, and rejects all pending requests. */
  close(): void {
    this.#connection.close();
    this.#fail(new Error('The client was closed'));
  }

  #fail(error: Error): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(error);
  }

  #send(message: string): void {
    this.#connection.send(toBytes(message));
  }

  #receive(bytes: Uint8Array): void {
    const message = this.#scan(bytes);
    if (message.kind === 'response') this.#answered(message);
    else if (message.kind === 'request') this.#asked(message);
    else if (message.kind === 'notification' && message.method === METHODS.progress) this.#progressed(message);
  }

  /** Refuses requests of servers, because a command has no user or model to answer them. Only `ping` gets a result. */
  #asked({ bytes, id, method }: RequestEnvelope): void {
    const error = { code: RPC_CODES.methodNotFound, message: 'A command line cannot answer requests of servers' };
    const outcome = method === METHODS.ping ? '"result":{}' : `"error":${JSON.stringify(error)}`;
    this.#send(`{"jsonrpc":"2.0","id":${readText(bytes, id)},${outcome}}`);
  }

  #answered({ bytes, id, result, error }: ResponseEnvelope): void {
    const token = readText(bytes, id);
    // An error with `id: null` answers an unreadable request, so all pending requests fail.
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

/** `receive` takes a message for the client; `fail` takes the reason when no more answers can come. */
type Connect = (receive: (message: Uint8Array) => void, fail: (error: Error) => void) => ClientConnection;

const CLIENT_INFO = { name: 'trunkline-cli', version: VERSION };
const OWN_PROFILE: ToldProfile = { capabilities: {}, clientInfo: CLIENT_INFO };

function toRpcError(json: string): RpcError {
  const { code, message, data } = JSON.parse(json);
  return new RpcError(Number(code), String(message), data);
}
