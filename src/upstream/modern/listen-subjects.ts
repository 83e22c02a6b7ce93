import { isRecord } from '../../json/is-record.js';

/** What a stream can report on besides lists, by the member of the filter that names it. */
export type SubjectKind = 'resourceSubscriptions' | 'taskIds';

/** A resource by its URI, or a task by the server's id. */
export interface Subject {
  readonly kind: SubjectKind;
  readonly name: string;
}

const KINDS: readonly SubjectKind[] = ['resourceSubscriptions', 'taskIds'];

/** A set of subjects, in the order in which they were added. */
export class ListenSubjects {
  readonly #names: ReadonlyMap<SubjectKind, Set<string>>;

  constructor(of?: ListenSubjects) {
    this.#names = new Map(KINDS.map((kind) => [kind, new Set(of?.namesOf(kind))]));
  }

  /** The subjects that a filter names, such as that of an acknowledgment. */
  static of(filter: unknown): ListenSubjects {
    const named = new ListenSubjects();
    for (const kind of KINDS) {
      const names = isRecord(filter) ? filter[kind] : undefined;
      if (Array.isArray(names)) for (const name of names) named.add({ kind, name });
    }
    return named;
  }

  get size(): number {
    return KINDS.reduce((sum, kind) => sum + this.namesOf(kind).size, 0);
  }

  /** The members of a filter that ask for the subjects. */
  get filter(): Readonly<Record<string, readonly string[]>> {
    const named = KINDS.filter((kind) => this.namesOf(kind).size > 0);
    return Object.fromEntries(named.map((kind) => [kind, [...this.namesOf(kind)]]));
  }

  namesOf(kind: SubjectKind): ReadonlySet<string> {
    return this.#names.get(kind) ?? new Set();
  }

  has({ kind, name }: Subject): boolean {
    return this.namesOf(kind).has(name);
  }

  add({ kind, name }: Subject): void {
    this.#names.get(kind)?.add(name);
  }

  delete({ kind, name }: Subject): boolean {
    return this.#names.get(kind)?.delete(name) === true;
  }
}
