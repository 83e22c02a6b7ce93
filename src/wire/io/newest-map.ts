/** A map of limited size: `set` makes an entry the newest one, and forgets the oldest one beyond the limit. */
export class NewestMap<Key, Value> extends Map<Key, Value> {
  readonly #limit: number;

  constructor(limit: number) {
    super();
    this.#limit = limit;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    const [oldest = key] = this.keys();
    if (this.size > this.#limit) this.delete(oldest);
    return this;
  }
}
