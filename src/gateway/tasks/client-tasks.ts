import type { DownstreamClient } from '../../downstream/port.js';
import { valuesAt } from '../../json/json-path.js';
import { isString, readString, type Span, toBytes, visitElements } from '../../json/json-text.js';
import { type Edit, splice } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import type { NotificationEnvelope, RequestEnvelope, ResponseEnvelope } from '../../mcp/envelope.js';
import type { Hmac } from '../../mcp/exposed-name.js';
import { METHODS } from '../../mcp/methods.js';
import { unwrapTaskId, wrapTaskId } from '../../mcp/task-id.js';
import type { Backend } from '../registry/backend.js';
import { idAt, isTerminal, replaceId } from './task-id-edits.js';

/** Of one client that are remembered; the oldest is forgotten first. */
const MAX_KNOWN = 1_024;

/** What is known of one client's tasks. */
interface Made {
  /** The client, in the names of its tasks. */
  readonly maker: string;
  /** By the ids that the client gave them. */
  readonly tasks: Map<string, MadeTask>;
}

interface MadeTask {
  /** For whose process it was made. */
  readonly backend: Backend;
  /** Ends the reports of its progress. */
  readonly end: () => void;
}

/**
 * The tasks that clients make for servers (revision 2025-11-25): a server that several clients share knows them under
 * ids that tell whose they are.
 */
export class ClientTasks {
  readonly #seal: Hmac;
  readonly #made = new Map<DownstreamClient, Made>();
  readonly #byMaker = new Map<string, DownstreamClient>();
  #count = 0;

  constructor(seal: Hmac) {
    this.#seal = seal;
  }

  /** The name under which this server knows a task of the client's; `undefined` if it was not made for it. */
  nameFor(client: DownstreamClient, backend: Backend, original: string): string | undefined {
    const made = this.#made.get(client);
    if (made === undefined || made.tasks.get(original)?.backend !== backend) return undefined;
    return wrapTaskId({ maker: made.maker, original }, backend.id, this.#seal);
  }

  /** The client whose task a server calls so, and how that knows it. */
  find(backend: Backend, name: string): FoundTask | undefined {
    const origin = unwrapTaskId(name, backend.id, this.#seal);
    const client = origin && this.#byMaker.get(origin.maker);
    // Names outlive us, and makers are counted anew: what we do not know of may be another client's of that time.
    const isKnown = origin && client && this.nameFor(client, backend, origin.original) === name;
    return isKnown ? { client, original: origin.original } : undefined;
  }

  /** Where a server's request about one task goes. */
  target(
    { bytes, tokens }: RequestEnvelope,
    backend: Backend,
  ): { client: DownstreamClient; edits: Edit[] } | undefined {
    const name = idAt(bytes, tokens.taskId);
    const found = name === undefined ? undefined : this.find(backend, name);
    return found && { client: found.client, edits: replaceId(tokens.taskId, found.original) };
  }

  /**
   * What has to be replaced in a client's answer before the server gets it. Calling `outlive` makes the client's
   * progress go on after the answer, until the function it returns is called.
   */
  answered(
    request: RequestEnvelope,
    { bytes, tokens, result }: ResponseEnvelope,
    client: DownstreamClient,
    backend: Backend,
    keepProgress: () => () => void,
  ): Edit[] {
    const edit = (span: Span | undefined) => {
      const id = idAt(bytes, span);
      return replaceId(span, id === undefined ? undefined : this.nameFor(client, backend, id));
    };
    switch (request.method) {
      case METHODS.listTasks:
        return this.#ownEntries(bytes, tokens.resultTasks, client, backend);
      case METHODS.taskResult:
        if (result !== undefined) this.#finish(client, this.#askedFor(request, backend));
        return [];
      case METHODS.getTask:
      case METHODS.cancelTask:
        if (isTerminal(bytes, tokens.resultStatus)) this.#finish(client, this.#askedFor(request, backend));
        return edit(tokens.resultTaskId);
      default: {
        const made = request.tokens.task === undefined ? undefined : idAt(bytes, tokens.createdTask);
        if (made === undefined) return [];
        this.#note(client, made, { backend, end: keepProgress() });
        return edit(tokens.createdTask);
      }
    }
  }

  /** Where a client's news of one of its tasks goes; `undefined` when no server waits for it. */
  holderOf(client: DownstreamClient, { bytes, tokens }: NotificationEnvelope): Holder | undefined {
    const id = idAt(bytes, tokens.taskId);
    const task = id === undefined ? undefined : this.#made.get(client)?.tasks.get(id);
    if (id === undefined || task === undefined) return undefined;
    if (isTerminal(bytes, tokens.status)) task.end();
    return { backend: task.backend, edits: replaceId(tokens.taskId, this.nameFor(client, task.backend, id)) };
  }

  /** The client is gone, and its tasks with it. */
  left(client: DownstreamClient): void {
    const made = this.#made.get(client);
    if (made === undefined) return;
    this.#made.delete(client);
    this.#byMaker.delete(made.maker);
  }

  /** The process is gone: no other one knows of the tasks that were made for it. */
  drop(backend: Backend): void {
    for (const { tasks } of this.#made.values()) {
      for (const [id, task] of tasks) {
        if (task.backend !== backend) continue;
        task.end();
        tasks.delete(id);
      }
    }
  }

  #askedFor(request: RequestEnvelope, backend: Backend): string | undefined {
    const name = idAt(request.bytes, request.tokens.taskId);
    return name === undefined ? undefined : this.find(backend, name)?.original;
  }

  #finish(client: DownstreamClient, original: string | undefined): void {
    if (original !== undefined) this.#made.get(client)?.tasks.get(original)?.end();
  }

  #note(client: DownstreamClient, original: string, task: MadeTask): void {
    const { tasks } = this.#of(client);
    tasks.get(original)?.end();
    tasks.set(original, task);
    for (const [oldest, { end }] of tasks) {
      if (tasks.size <= MAX_KNOWN) break;
      end();
      tasks.delete(oldest);
    }
  }

  #of(client: DownstreamClient): Made {
    const known = this.#made.get(client);
    if (known !== undefined) return known;
    this.#count += 1;
    // No server's key has this character.
    const made = { maker: `~${this.#count}`, tasks: new Map<string, MadeTask>() };
    this.#made.set(client, made);
    this.#byMaker.set(made.maker, client);
    return made;
  }

  /** A server is told of the tasks that were made for it, and of no other's. */
  #ownEntries(bytes: Uint8Array, list: Span | undefined, client: DownstreamClient, backend: Backend): Edit[] {
    if (list === undefined) return [];
    const parts: Uint8Array[] = [];
    visitElements(bytes, list.start, Number.POSITIVE_INFINITY, (span) => {
      const ids = valuesAt(bytes, span, ['taskId']).filter((id) => isString(bytes, id));
      const edits = ids.flatMap((id) => replaceId(id, this.nameFor(client, backend, readString(bytes, id))));
      const isOwn = ids.length > 0 && edits.length === ids.length;
      if (isOwn) parts.push(...(parts.length === 0 ? [] : [COMMA]), splice({ bytes, span, edits }));
    });
    return [{ span: list, text: join([OPEN, ...parts, CLOSE]) }];
  }
}

interface FoundTask {
  readonly client: DownstreamClient;
  /** How the client knows the task. */
  readonly original: string;
}

interface Holder {
  readonly backend: Backend;
  readonly edits: readonly Edit[];
}

const OPEN = toBytes('[');
const CLOSE = toBytes(']');
const COMMA = toBytes(',');
