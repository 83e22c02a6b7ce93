import { EVENT_STREAM, type HttpSession, mediaTypeOf, readEvents, SESSION_GONE } from './http-session.js';

/** First and longest pause before the stream is opened again, unless the server names one, in milliseconds. */
const REOPEN = { firstMs: 1_000, maxMs: 30_000 } as const;
/** Time from a request to its failure, or to the end of its stream, from which on the pauses begin anew, in milliseconds. */
const USEFUL_MS = 10_000;
/** Longest wait for the `endpoint` event, in milliseconds. */
const ENDPOINT_MS = 10_000;

/** The stream that a client opens with GET, for messages that answer no POST; in revision 2024-11-05, for all messages. */
export class GetStream {
  readonly #session: HttpSession;
  readonly #now: () => number;
  readonly #abort = new AbortController();
  #isOpen = false;

  constructor(session: HttpSession, now: () => number) {
    this.#session = session;
    this.#now = now;
  }

  /** Whether the stream that `read` reads is open. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Reads the stream, and opens it again when it ends, or when a request for it fails or is refused. Calls `onAnswer` after each request,
   * also if it failed. Resolves when the server offers no stream or forgot the session, when the session is over, or after `end`.
   */
  async read(onAnswer: () => void): Promise<void> {
    const { signal } = this.#abort;
    let lastEventId: string | undefined;
    let pauseMs: number = REOPEN.firstMs;
    let wasOpen = false;
    while (!signal.aborted && !this.#session.isOver) {
      const openedAt = this.#now();
      const { sessionId } = this.#session;
      let retryMs: number | undefined;
      try {
        const request = this.#session.request({ method: 'GET', accept: EVENT_STREAM, signal, lastEventId });
        const response = await request.finally(onAnswer);
        const { statusCode = 0 } = response;
        if (statusCode !== 200 || mediaTypeOf(response) !== EVENT_STREAM) {
          response.resume();
          // A refusal before the stream was ever open, other than 429 and 5xx, means that the server has no such stream.
          if (!wasOpen && statusCode < 500 && statusCode !== 429) return;
          if (statusCode === 404 && sessionId !== undefined) {
            if (!(await this.#session.renew(sessionId))) this.#session.lose('lapsed', SESSION_GONE);
            return;
          }
        } else {
          if (wasOpen) this.#session.options.incoming.missedChanges();
          wasOpen = true;
          this.#isOpen = true;
          const events = await readEvents(this.#session, response);
          lastEventId = events.lastEventId ?? lastEventId;
          retryMs = events.retryMs;
        }
      } catch {
        // The next POST shows soon enough that the server is unreachable. Until then the stream may come back.
      }
      this.#isOpen = false;
      pauseMs = this.#now() - openedAt >= USEFUL_MS ? REOPEN.firstMs : pauseMs;
      await this.#session.sleep(retryMs ?? pauseMs, signal);
      pauseMs = Math.min(pauseMs * 2, REOPEN.maxMs);
    }
  }

  /**
   * Opens the stream of a server of revision 2024-11-05. Resolves with the URL for messages, or `undefined` if the server has no
   * such stream, ends it first or names no URL within 10 s, or after `end`. The session ends with the stream.
   */
  async readToEndpoint(): Promise<string | undefined> {
    const { signal } = this.#abort;
    const response = await this.#session.request({ method: 'GET', accept: EVENT_STREAM, signal });
    if (response.statusCode !== 200 || mediaTypeOf(response) !== EVENT_STREAM) {
      response.destroy();
      return undefined;
    }
    return await new Promise((resolve) => {
      void this.#session.sleep(ENDPOINT_MS, signal).then(() => resolve(undefined));
      void readEvents(this.#session, response, { onEndpoint: resolve }).then(() => {
        resolve(undefined);
        if (!signal.aborted) this.#session.lose('lapsed', 'it ended the stream on which it answers');
      });
    });
  }

  end(): void {
    this.#abort.abort();
  }
}
