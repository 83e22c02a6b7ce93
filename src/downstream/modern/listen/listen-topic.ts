/** Waits for the outcome of a subscription to one subject. Called at most once for each subject that was joined. */
export interface Subscriber {
  subscribed(subject: string): void;
  refused(subject: string): void;
}

/** Subjects that may be subscribed to by name, each of them once for all subscribers. */
export interface SubjectSource {
  join(subject: string, subscriber: Subscriber): void;
  leave(subject: string, subscriber: Subscriber): void;
}

/** The subjects of one kind that one subscription asks for, from its request to its end. */
export class ListenTopic implements Subscriber {
  readonly #source: SubjectSource;
  readonly #wanted: ReadonlySet<string>;
  /** Those whose servers have not answered yet, and those that were subscribed to. */
  readonly #undecided: Set<string>;
  readonly #subscribed = new Set<string>();
  readonly #onDecided: () => void;

  /** `onDecided` is called each time that a server has answered. */
  constructor(source: SubjectSource, wanted: ReadonlySet<string>, onDecided: () => void) {
    this.#source = source;
    this.#wanted = wanted;
    this.#undecided = new Set(wanted);
    this.#onDecided = onDecided;
  }

  get isDecided(): boolean {
    return this.#undecided.size === 0;
  }

  get subscriptions(): ReadonlySet<string> {
    return this.#subscribed;
  }

  /** Those that were subscribed to, in the order of the request. */
  get honored(): ReadonlySet<string> {
    return new Set([...this.#wanted].filter((subject) => this.#subscribed.has(subject)));
  }

  join(): void {
    for (const subject of this.#wanted) this.#source.join(subject, this);
  }

  subscribed(subject: string): void {
    this.#undecided.delete(subject);
    this.#subscribed.add(subject);
    this.#onDecided();
  }

  refused(subject: string): void {
    this.#undecided.delete(subject);
    this.#onDecided();
  }

  /** Does without the subjects that are undecided. */
  decide(): void {
    this.#leave(this.#undecided);
  }

  leave(): void {
    this.#leave(this.#undecided);
    this.#leave(this.#subscribed);
  }

  #leave(subjects: Set<string>): void {
    const leaving = [...subjects];
    subjects.clear();
    for (const subject of leaving) this.#source.leave(subject, this);
  }
}
