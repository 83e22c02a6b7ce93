import type { DownstreamClient } from '../../downstream/port.js';
import type { Backend } from '../registry/backend.js';

/** Tasks that nobody hears of any more must not fill the memory; the oldest is forgotten first. */
const MAX_KNOWN = 1_024;

/** Who waits for a task of a server, as far as it is known. */
export interface KnownTask {
  /** Who is behind the client, also when that has left. */
  readonly principal: string;
  readonly client: DownstreamClient | undefined;
  /** Who made the task and hears of its progress, until `end` is called. */
  readonly progress: { readonly client: DownstreamClient; readonly end: () => void } | undefined;
}

/**
 * Which client each server's tasks belong to, for what the server says of them unasked.
 *
 * It is a help, not a record: an id that a client kept is good without it.
 */
export class TaskRegistry {
  readonly #byBackend = new WeakMap<Backend, Map<string, KnownTask>>();

  find(backend: Backend, original: string): KnownTask | undefined {
    return this.#byBackend.get(backend)?.get(original);
  }

  /** Whether the process has made tasks that we know of. */
  has(backend: Backend): boolean {
    return (this.#byBackend.get(backend)?.size ?? 0) > 0;
  }

  /** The client's request has become this task; `end` ends the reports of its progress. */
  made(backend: Backend, original: string, client: DownstreamClient, end: () => void): void {
    this.finish(backend, original);
    this.#set(backend, original, { principal: client.principal, client, progress: { client, end } });
  }

  /**
   * The client has shown that it knows the task. It becomes the client's when it waits for the result, since questions
   * come with that, or when nobody else is there whose it is.
   */
  asked(backend: Backend, original: string, client: DownstreamClient, isWaiting: boolean): void {
    const known = this.find(backend, original);
    if (known?.client !== undefined && !isWaiting) return;
    this.#set(backend, original, { principal: client.principal, client, progress: known?.progress });
  }

  /** The task is done; who it belongs to is kept, as its result may be asked for. */
  finish(backend: Backend, original: string): void {
    this.find(backend, original)?.progress?.end();
  }

  /** The client is gone; the same person may come back for its tasks. */
  left(backend: Backend, client: DownstreamClient): void {
    const tasks = this.#byBackend.get(backend);
    for (const [original, { principal, client: owner, progress }] of tasks ?? []) {
      const hears = progress?.client === client;
      if (hears) progress.end();
      if (!hears && owner !== client) continue;
      const left = owner === client ? undefined : owner;
      tasks?.set(original, { principal, client: left, progress: hears ? undefined : progress });
    }
  }

  /** The process is gone, and its tasks with it. */
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
