/** A node of a `LinkedList`, which sets both members. */
export interface Linked<T> {
  previous?: T | undefined;
  next?: T | undefined;
}

/**
 * A list of requests in flight, oldest first, from which each one can be removed at once. A set would rehash again and again as
 * requests come and go, and its old tables would keep the requests alive for a garbage collection or two.
 */
export class LinkedList<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #size = 0;

  get first(): T | undefined {
    return this.#first;
  }

  get last(): T | undefined {
    return this.#last;
  }

  get size(): number {
    return this.#size;
  }

  add(node: T): void {
    node.previous = this.#last;
    if (this.#last === undefined) this.#first = node;
    else this.#last.next = node;
    this.#last = node;
    this.#size += 1;
  }

  /** Returns whether the list contained the node. */
  delete(node: T): boolean {
    if (node.previous === undefined && this.#first !== node) return false;
    if (node.previous === undefined) this.#first = node.next;
    else node.previous.next = node.next;
    if (node.next === undefined) this.#last = node.previous;
    else node.next.previous = node.previous;
    node.previous = undefined;
    node.next = undefined;
    this.#size -= 1;
    return true;
  }
}
