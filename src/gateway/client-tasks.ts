import { valuesAt } from '../jsonrpc/json-path.js';
import { isString, readString, type Span, toBytes, visitElements } from '../jsonrpc/json-text.js';
import { join } from '../jsonrpc/message.js';
import { type Edit, splice } from '../jsonrpc/splice.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../mcp/envelope.js';
import type { Hmac } from '../mcp/exposed-name.js';
import { METHODS } from '../mcp/methods.js';
import { unwrapTaskId, wrapTaskId } from '../mcp/task-id.js';
import type { Backend } from './backend.js';
import type { GatewayClient } from './gateway-port.js';

/** Of one client that are remembered; the oldest is forgotten first. */
const MAX_KNOWN = 1_024;

/**
 * The tasks that clients make for servers (revision 2025-11-25): a server that several clients share knows them under
 * ids that tell whose they are.
 */
export class ClientTasks {
  readonly #seal: Hmac;
  /** For each client, which backend each of its tasks was made for. */
  readonly #known = new Map<GatewayClient, { readonly maker: string; readonly tasks: Map<string, Backend> }>();
  readonly #byMaker = new Map<string, GatewayClient>();
  #count = 0;

  constructor(seal: Hmac) {
    this.#seal = seal;
  }

  /** The client that made the task which a server asks about, and how that knows it. */
  target({ bytes, tokens }: RequestEnvelope, backend: Backend): { client: GatewayClient; edits: Edit[] } | undefined {
    const { taskId } = tokens;
    if (taskId === undefined || !isString(bytes, taskId)) return undefined;
    const origin = unwrapTaskId(readString(bytes, taskId), backend.id, this.#seal);
    const client = origin && this.#byMaker.get(origin.maker);
    if (origin === undefined || client === undefined) return undefined;
    return { client, edits: [{ span: taskId, text: toBytes(JSON.stringify(origin.original)) }] };
  }

  /** What has to be replaced in a client's answer before the server gets it. */
  editsForAnswer(
    request: RequestEnvelope,
    response: ResponseEnvelope,
    client: GatewayClient,
    backend: Backend,
  ): Edit[] {
    const { bytes, tokens } = response;
    if (request.method === METHODS.listTasks) return this.#ownEntries(bytes, tokens.resultTasks, client, backend);
    const made = request.tokens.task === undefined ? undefined : tokens.createdTask;
    if (made !== undefined && isString(bytes, made)) this.#note(client, readString(bytes, made), backend);
    const asked = request.tokens.taskId === undefined ? undefined : tokens.resultTaskId;
    return [made, asked].flatMap((span) => this.#wrapped(bytes, span, client, backend));
  }

  /** Where a client's news of one of its tasks goes; `undefined` when no server waits for it. */
  holderOf(client: GatewayClient, { bytes, tokens: { taskId } }: NotificationEnvelope): Holder | undefined {
    if (taskId === undefined || !isString(bytes, taskId)) return undefined;
    const backend = this.#known.get(client)?.tasks.get(readString(bytes, taskId));
    return backend && { backend, edits: this.#wrapped(bytes, taskId, client, backend) };
  }

  /** The client is gone, and its tasks with it. */
  drop(client: GatewayClient): void {
    const known = this.#known.get(client);
    this.#known.delete(client);
    if (known !== undefined) this.#byMaker.delete(known.maker);
  }

  #note(client: GatewayClient, original: string, backend: Backend): void {
    const { tasks } = this.#of(client);
    tasks.set(original, backend);
    if (tasks.size <= MAX_KNOWN) return;
    for (const oldest of tasks.keys()) {
      tasks.delete(oldest);
      break;
    }
  }

  #of(client: GatewayClient) {
    const known = this.#known.get(client);
    if (known !== undefined) return known;
    this.#count += 1;
    // No server's key has this character.
    const made = { maker: `~${this.#count}`, tasks: new Map<string, Backend>() };
    this.#known.set(client, made);
    this.#byMaker.set(made.maker, client);
    return made;
  }

  /** A server is told of the tasks that were made for it, and of no other's. */
  #ownEntries(bytes: Uint8Array, list: Span | undefined, client: GatewayClient, backend: Backend): Edit[] {
    if (list === undefined) return [];
    const parts: Uint8Array[] = [];
    visitElements(bytes, list.start, Number.POSITIVE_INFINITY, (span) => {
      const ids = valuesAt(bytes, span, ['taskId']).filter((id) => isString(bytes, id));
      const isOwn = ids.some((id) => this.#known.get(client)?.tasks.get(readString(bytes, id)) === backend);
      if (!isOwn) return;
      const edits = ids.flatMap((id) => this.#wrapped(bytes, id, client, backend));
      parts.push(...(parts.length === 0 ? [] : [COMMA]), splice({ bytes, span, edits }));
    });
    return [{ span: list, text: join([OPEN, ...parts, CLOSE]) }];
  }

  #wrapped(bytes: Uint8Array, span: Span | undefined, client: GatewayClient, { id: holder }: Backend): Edit[] {
    if (span === undefined || !isString(bytes, span)) return [];
    const { maker } = this.#of(client);
    const id = wrapTaskId({ maker, original: readString(bytes, span) }, holder, this.#seal);
    return [{ span, text: toBytes(JSON.stringify(id)) }];
  }
}

interface Holder {
  readonly backend: Backend;
  readonly edits: readonly Edit[];
}

const OPEN = toBytes('[');
const CLOSE = toBytes(']');
const COMMA = toBytes(',');
