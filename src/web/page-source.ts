import type { Readable } from 'node:stream';
import type { Actions, Frame, Reads } from './contract.js';

/** The facts and actions behind the page. A test replaces it; the command implements it with the hub and the configuration. */
export interface PageSource {
  /**
   * Begins to follow the hub when the first page opens its stream. At most one `Following` is open, and it serves all pages. The
   * first frame is `hello`, the second `state`; both are sent even if no hub runs.
   */
  follow(take: (frame: Frame) => void): Following;
  /** Reject with a `PageRefusal`, whose message the page shows. Any other error is a bug, and the page shows none of its text. */
  readonly reads: { readonly [Path in keyof Reads]: (query: Reads[Path]['query']) => Promise<Reads[Path]['answer']> };
  readonly actions: {
    readonly [Path in keyof Actions]: (body: Actions[Path]['body']) => Promise<Actions[Path]['answer']>;
  };
  /** Opens a recording that was made from the page. Its name comes from the page, so it must be one that was made. */
  openRecording(file: string): Promise<Readable>;
}

export interface Following {
  /** Tells what the open pages show. Called once before the first frame is expected, and at each change. */
  want(topics: Topics): void;
  /** Ends every subscription, timer and connection. The last page has gone. */
  close(): void;
}

export interface Topics {
  readonly calls: boolean;
  /** Keys of servers whose output is shown. The first frame about a new one has `isFirst` and its last 500 lines. */
  readonly outputs: ReadonlySet<string>;
}

/** A request that cannot be done. The message is a sentence for the user, without secrets. */
export class PageRefusal extends Error {
  override readonly name = 'PageRefusal';
  readonly status: number;

  /** 400: not possible, such as an unknown server. 409: the facts have changed since they were shown. 503: no hub runs. */
  constructor(status: 400 | 404 | 409 | 503, message: string) {
    super(message);
    this.status = status;
  }
}
