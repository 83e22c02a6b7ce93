import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { Backend } from '../registry/backend.js';

/** Takes the messages of one task to its client, where the calls of the client in general do not. */
export interface TaskCarrier extends Pick<Exchange, 'client' | 'isSettled' | 'logLevel' | 'requireInput' | 'send'> {
  /** The task is done. */
  end?(): void;
}

/** Limits of known tasks of one server: the oldest is forgotten first, and one with a longer id at once. */
const MAX_KNOWN = 1_024;
const MAX_ID_LENGTH = 1_024;

/** The owner of a server's task, as far as it is known. */
export interface KnownTask {
  /** The principal of the owner, which stays known when the client has left. */
  readonly principal: string;
  readonly client: DownstreamClient | undefined;
  /** The client that created the task and gets its progress, until `end` is called. */
  readonly progress: { readonly client: DownstreamClient; readonly end: () => void } | undefined;
  /** Until the task is done. */
  readonly carrier?: TaskCarrier | undefined;
}

/**
 * The owners of servers' tasks, used to deliver what servers send about tasks on their own. It is not needed for requests
 * of clients: the task ids that clients get name their owners themselves.
 */
export class TaskRegistry {
  readonly #byBackend = new WeakMap<Backend, Map<string, KnownTask>>();

  find(backend: Backend, original: string): KnownTask | undefined {
    return this.#byBackend.get(backend)?.get(original);
  }

  /** Whether the process has created tasks that are known. */
  has(backend: Backend): boolean {
    return (this.#byBackend.get(backend)?.size ?? 0) > 0;
  }

  /** The client's request became this task. `end` ends its progress reports. */
  created(
    backend: Backend,
    original: string,
    client: DownstreamClient,
    end: () => void,
    carrier: TaskCarrier | undefined,
  ): void {
    this.finish(backend, original);
    this.#set(backend, original, { principal: client.principal, client, progress: { client, end }, carrier });
  }

  /**
   * The client has sent a request about the task. The client becomes the owner if it waits for the result, because the
   * server requests of a task go to the client that waits, or if the task has no other owner.
   */
  requested(backend: Backend, original: string, client: DownstreamClient, isWaiting: boolean): void {
    const known = this.find(backend, original);
    if (known?.client !== undefined && !isWaiting) return;
    const { progress, carrier } = known ?? {};
    this.#set(backend, original, { principal: client.principal, client, progress, carrier });
  }

  /** The task is done. Its owner stays known, because the result may still be requested. */
  finish(backend: Backend, original: string): void {
    const known = this.find(backend, original);
    known?.progress?.end();
    if (known?.carrier === undefined) return;
    this.#set(backend, original, { ...known, carrier: undefined });
    known.carrier.end?.();
  }

  carry(backend: Backend, original: string, client: DownstreamClient, carrier: TaskCarrier): void {
    const { progress } = this.find(backend, original) ?? {};
    this.#set(backend, original, { principal: client.principal, client, progress, carrier });
  }

  /** The client has left. Another client of the same principal may ask for its tasks later. */
  left(backend: Backend, client: DownstreamClient): void {
    const tasks = this.#byBackend.get(backend);
    for (const [original, { principal, client: owner, progress, carrier }] of tasks ?? []) {
      const getsProgress = progress?.client === client;
      if (getsProgress) progress.end();
      if (!getsProgress && owner !== client) continue;
      const left = owner === client ? undefined : owner;
      tasks?.set(original, { principal, client: left, progress: getsProgress ? undefined : progress, carrier });
    }
  }

  /** The process has exited, and its tasks ended with it. */
  drop(backend: Backend): void {
    for (const { progress } of this.#byBackend.get(backend)?.values() ?? []) progress?.end();
    this.#byBackend.delete(backend);
  }

  #set(backend: Backend, original: string, task: KnownTask): void {
    const tasks = this.#byBackend.get(backend) ?? new Map<string, KnownTask>();
    this.#byBackend.set(backend, tasks);
    if (original.length <= MAX_ID_LENGTH) tasks.set(original, task);
    else endNews(task);
    for (const [oldest, each] of tasks) {
      if (tasks.size <= MAX_KNOWN) break;
      tasks.delete(oldest);
      endNews(each);
    }
  }
}

/** Nobody would be told any more of what the task asks or reports. */
function endNews({ progress, carrier }: KnownTask): void {
  for (const each of [progress, carrier]) each?.end?.();
}
