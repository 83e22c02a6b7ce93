import type { DownstreamClient } from '../../downstream/port.js';
import type { Backend } from '../registry/backend.js';

/** Limit of known tasks of one server. The oldest is forgotten first. */
const MAX_KNOWN = 1_024;

/** The owner of a server's task, as far as it is known. */
export interface KnownTask {
  /** The principal of the owner, which stays known when the client has left. */
  readonly principal: string;
  readonly client: DownstreamClient | undefined;
  /** The client that created the task and gets its progress, until `end` is called. */
  readonly progress: { readonly client: DownstreamClient; readonly end: () => void } | undefined;
}

/**
 * The owners of servers' tasks, used to deliver what servers send about tasks on their own.
 *
 * The registry is not needed for a client's requests: the task ids that clients get name their owners themselves.
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
  created(backend: Backend, original: string, client: DownstreamClient, end: () => void): void {
    this.finish(backend, original);
    this.#set(backend, original, { principal: client.principal, client, progress: { client, end } });
  }

  /**
   * The client has sent a request about the task. The client becomes the owner if it waits for the result, because the
   * server requests of a task go to the client that waits, or if the task has no other owner.
   */
  requested(backend: Backend, original: string, client: DownstreamClient, isWaiting: boolean): void {
    const known = this.find(backend, original);
    if (known?.client !== undefined && !isWaiting) return;
    this.#set(backend, original, { principal: client.principal, client, progress: known?.progress });
  }

  /** The task is done. Its owner stays known, because the result may still be requested. */
  finish(backend: Backend, original: string): void {
    this.find(backend, original)?.progress?.end();
  }

  /** The client has left. Another client of the same principal may ask for its tasks later. */
  left(backend: Backend, client: DownstreamClient): void {
    const tasks = this.#byBackend.get(backend);
    for (const [original, { principal, client: owner, progress }] of tasks ?? []) {
      const getsProgress = progress?.client === client;
      if (getsProgress) progress.end();
      if (!getsProgress && owner !== client) continue;
      const left = owner === client ? undefined : owner;
      tasks?.set(original, { principal, client: left, progress: getsProgress ? undefined : progress });
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
    tasks.set(original, task);
    for (const [oldest, { progress }] of tasks) {
      if (tasks.size <= MAX_KNOWN) break;
      progress?.end();
      tasks.delete(oldest);
    }
  }
}
