import type { Backend } from './backend.js';
import type { GatewayClient } from './gateway-port.js';

/** Tasks that nobody hears of any more must not fill the memory; the oldest is forgotten first. */
const MAX_KNOWN = 1_024;

/** Who waits for a task of a server, as far as it is known. */
export interface KnownTask {
  readonly client: GatewayClient;
  /** Ends what goes on until the task is done, such as reports of progress. */
  readonly end: () => void;
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

  /** The client has made this task, or shown that it knows its id. */
  note(backend: Backend, original: string, client: GatewayClient, end?: () => void): void {
    const tasks = this.#byBackend.get(backend) ?? new Map<string, KnownTask>();
    this.#byBackend.set(backend, tasks);
    const known = tasks.get(original);
    tasks.set(original, { client, end: end ?? known?.end ?? (() => {}) });
    if (tasks.size <= MAX_KNOWN) return;
    for (const [oldest, task] of tasks) {
      task.end();
      tasks.delete(oldest);
      break;
    }
  }

  /** The task is done; who it belongs to is kept, as its result may be asked for. */
  finish(backend: Backend, original: string): void {
    this.find(backend, original)?.end();
  }

  /** The process is gone, and its tasks with it. */
  drop(backend: Backend): void {
    for (const task of this.#byBackend.get(backend)?.values() ?? []) task.end();
    this.#byBackend.delete(backend);
  }
}
