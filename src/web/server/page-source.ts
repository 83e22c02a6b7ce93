import type { Readable } from 'node:stream';
import type { Frame, Requests } from './contract.js';

/** The facts and actions behind the page. The command implements them with the hub and the configuration; tests replace them. */
export interface PageSource {
  /**
   * Follows the hub for all open pages, until the returned function is called. The first frame is `hello`, the second `state`; both
   * are sent even if no hub runs.
   */
  follow(take: (frame: Frame) => void): () => void;
  /** Each rejects with a `PageRefusal`, whose message the page shows. Any other error is a bug, and the page shows none of its text. */
  readonly answers: {
    readonly [R in keyof Requests]: (values: Requests[R]['values']) => Promise<Requests[R]['answer']>;
  };
  /** Opens a recording that was made from the page. Rejects for any other name, because the name comes from the page. */
  openRecording(file: string): Promise<Readable>;
}

/** A request that cannot be done. The message is a sentence for the user, without secrets. */
export class PageRefusal extends Error {
  override readonly name = 'PageRefusal';
  readonly status: number;

  /** 400: not possible. 404: no such server, tool or recording. 409: other facts than the page has shown. 503: no hub runs. */
  constructor(status: 400 | 404 | 409 | 503, message: string) {
    super(message);
    this.status = status;
  }
}
