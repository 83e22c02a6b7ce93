import type { RefusedName } from '../host/observe/events/events.js';

export interface CountedName {
  readonly header: RefusedName['header'];
  readonly count: number;
  readonly last: string;
  /** Time of the latest refused request, in milliseconds on the clock of the caller. */
  readonly at: number;
}

/** The code for a refused request, which the doctor and the status share. */
export const CODE_OF = { Host: 'TL-HTTP-HOST-REFUSED', Origin: 'TL-HTTP-ORIGIN-REFUSED' } as const;

/** Counts the HTTP requests that were refused for a `Host` or `Origin` that is not allowed, with one entry for each header. */
export class RefusedNames {
  readonly #counted = new Map<RefusedName['header'], CountedName>();

  get all(): readonly CountedName[] {
    return [...this.#counted.values()];
  }

  count({ header, name }: RefusedName, at: number): void {
    const { count } = this.#counted.get(header) ?? { count: 0 };
    this.#counted.set(header, { header, count: count + 1, last: name, at });
  }
}
