import { CODES } from '../../errors/codes.js';
import type { RefusedName } from '../../observe/events/events.js';
import type { RefusedNameReport } from './status-report.js';

/** How often requests were refused for one header. */
export interface CountedName {
  readonly header: RefusedName['header'];
  readonly count: number;
  /** The name that the last refused request had. */
  readonly last: string;
  /** When that was, in milliseconds on the clock of the caller. */
  readonly at: number;
}

/** The code for a refused request, which the doctor and the status share. */
export const CODE_OF = { Host: 'TL-HTTP-HOST-REFUSED', Origin: 'TL-HTTP-ORIGIN-REFUSED' } as const;

/** Counts the HTTP requests that were refused for a name that is not allowed: at most one entry for each header. */
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

export function reportRefusedName({ header, count, last, at }: CountedName, now: number): RefusedNameReport {
  const code = CODE_OF[header];
  return {
    header,
    count,
    last,
    secondsAgo: Math.round((now - at) / 1_000),
    code,
    advice: CODES[code].remedy,
  };
}
