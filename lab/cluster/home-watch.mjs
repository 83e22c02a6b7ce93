import { readdirSync, readFileSync } from 'node:fs';

const EVERY_MS = 200;

/** Looks at the processes that work for one user each, because all processes of a user belong to one gateway. */
export class HomeWatch {
  #folder;
  #timer = setInterval(() => this.#look(), EVERY_MS);
  #known = new Map();
  /** By user: when a second gateway got processes. */
  #since = new Map();
  /** The longest time in which a user had processes at two gateways, in milliseconds. */
  longest = 0;

  /** In `folder`, each process has a file whose name is `USER PID INSTANCE`. */
  constructor(folder) {
    this.#folder = folder;
  }

  /** The processes that run, as `user`, `pid` and `instance`. */
  get live() {
    for (const name of readdirSync(this.#folder)) {
      const [user, pid, instance] = name.split(' ');
      if (!this.#known.has(name)) this.#known.set(name, { user, pid: Number(pid), instance: Number(instance) });
    }
    const running = [...this.#known.values()].filter(({ hasEnded }) => !hasEnded);
    for (const each of running) each.hasEnded = isOver(each.pid);
    return running.filter(({ hasEnded }) => !hasEnded);
  }

  close() {
    clearInterval(this.#timer);
  }

  #look() {
    const instances = new Map();
    for (const { user, instance } of this.live) instances.set(user, (instances.get(user) ?? new Set()).add(instance));
    const now = performance.now();
    for (const [user, { size }] of instances) {
      if (size < 2) this.#since.delete(user);
      else if (!this.#since.has(user)) this.#since.set(user, now);
      else this.longest = Math.max(this.longest, now - this.#since.get(user));
    }
  }
}

function isOver(pid) {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return true;
  }
}
