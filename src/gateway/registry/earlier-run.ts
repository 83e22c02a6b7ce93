import type { CachedCatalogue } from '../catalog/cached-catalogue.js';

/** What the last run tells about a server, until a process of this run is ready. */
export class EarlierRun {
  /** The catalogue that the last run cached. */
  catalogue: CachedCatalogue | undefined;
  /** Whether a list was shown without this server, in this run or in earlier ones. No list waits for it again. */
  isLate = false;

  /** Whether no list has to wait for the first start of the server. */
  get isEnough(): boolean {
    return this.catalogue !== undefined || this.isLate;
  }

  /**
   * Servers with a smaller number start first: those of which nothing is known, because lists wait for them; then those
   * that failed in the last run, or came too late in several; then those whose cached lists are shown already.
   */
  get startOrder(): number {
    if (this.catalogue !== undefined) return 2;
    return this.isLate ? 1 : 0;
  }
}
