import type { Exchange } from '../../downstream/port.js';
import { stringAt, valuesAt } from '../../wire/json/json-text.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { type EnvelopeRequest, ownRequest } from '../../wire/mcp/relayed-request.js';

/** A login at a server, which the user must complete in a browser. */
export interface OfferedLogin {
  readonly url: string;
  /** The code that the page shows, if the person has to compare it. */
  readonly code?: string;
  /** Resolves when calls can be served, and rejects if the login failed. */
  readonly finished: Promise<void>;
}

/** Offers the login at one server to the clients that call it, one at a time. */
export class LoginOffer {
  readonly #server: string;
  readonly #begin: () => Promise<OfferedLogin>;
  #isOpen = false;
  #count = 0;

  constructor(server: string, begin: () => Promise<OfferedLogin>) {
    this.#server = server;
    this.#begin = begin;
  }

  /**
   * Asks the client of a call to open the page of the login (`elicitation/create` of mode `url`). Calls `granted` when the person is
   * logged in. Calls `refused` if the client cannot be asked, or the person does not log in.
   */
  make(exchange: Exchange, granted: () => void, refused: () => void): void {
    if (this.#isOpen || !exchange.elicits('url') || exchange.request.method !== METHODS.callTool) {
      refused();
      return;
    }
    this.#isOpen = true;
    let isOver = false;
    const end = (next: () => void) => () => {
      if (isOver) return;
      isOver = true;
      this.#isOpen = false;
      if (!exchange.isSettled) next();
    };
    const onGranted = end(granted);
    const onRefused = end(refused);
    const ask = ({ url, code, finished }: OfferedLogin) => {
      // The call may have ended while the login goes on.
      finished.catch(() => {});
      if (exchange.isSettled) {
        onRefused();
        return;
      }
      const withdraw = exchange.requireInput({
        request: this.#request(url, code),
        isOwn: true,
        edits: [],
        // The person has agreed to open the page, and logs in there. The login may also have ended before this answer.
        answer: ({ bytes, result }) => {
          const [action] = result === undefined ? [] : valuesAt(bytes, result, ['action']);
          if (stringAt(bytes, action) !== 'accept') onRefused();
          else void finished.then(onGranted, onRefused);
        },
        fail: onRefused,
        progress: () => {},
      });
      exchange.onCancel(() => {
        withdraw();
        onRefused();
      });
    };
    void this.#begin().then(ask, onRefused);
  }

  #request(url: string, code: string | undefined): EnvelopeRequest {
    this.#count += 1;
    const compare = code === undefined ? '' : ` The page must show the code ${code}.`;
    return ownRequest(METHODS.elicit, {
      mode: 'url',
      elicitationId: `login ${this.#server} ${this.#count}`,
      message: `The server "${this.#server}" needs a login. Log in on this page; the call then goes on.${compare}`,
      url,
    });
  }
}
