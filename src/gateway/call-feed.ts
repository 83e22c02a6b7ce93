import { type ClientFacts, type Exchange, withMembers } from '../downstream/port.js';
import { readText, type Span, stringAt, valuesAt } from '../json/json-text.js';
import { asText } from '../json/json-value.js';
import { splicedLength } from '../json/splice.js';
import { RpcError } from '../jsonrpc/message.js';
import { isErrorResponse } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';

/** A call of a client, from its arrival at the gateway to its answer. */
export interface EndedCall {
  readonly client: CallingClient;
  /** Backend to which the call was sent last; `undefined` if it was sent to none. */
  readonly instance: string | undefined;
  /** Generation of the server at the time of the failure; `undefined` for other outcomes. */
  readonly generation: number | undefined;
  readonly method: string;
  /** The tool or the prompt, under the name that the client used. */
  readonly name: string | undefined;
  /** Id of the request, as JSON. */
  readonly requestId: string;
  /** `tool_error` is a tool result with `isError`, `rpc_error` is a JSON-RPC error. With `failed`, the gateway answered. */
  readonly outcome: 'ok' | 'tool_error' | 'rpc_error' | 'failed' | 'cancelled';
  /** Reason of the failure. */
  readonly reason: string | undefined;
  readonly durationMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** The arguments, or all parameters of a request without arguments, as JSON. `undefined` unless wanted. Not redacted. */
  readonly params: Excerpt | undefined;
  /** The result as JSON. `undefined` unless wanted. Not redacted. */
  readonly result: Excerpt | undefined;
}

/** The beginning of a text. */
export interface Excerpt {
  readonly text: string;
  readonly isCut: boolean;
}

export interface CallingClient {
  readonly name: string;
  readonly version: string;
  /** Number of the session, counted from the start of this process. */
  readonly session: number;
}

export interface CallObserver {
  /** Whether the observer gets parameters and results. */
  readonly wantsContent: boolean;
  ended(call: EndedCall): void;
}

/** Methods of the requests that are reported as calls. Lists and polls are not. */
const CALLS: readonly string[] = [METHODS.callTool, METHODS.getPrompt, METHODS.readResource, METHODS.complete];
/** Length of an excerpt in bytes. The log shows less, so that the redaction recognizes a secret at the cut. */
const MAX_READ_BYTES = 16 * 1024;

/** Reports the calls of all clients to the call log. Without a call log, a request costs one comparison. */
export class CallFeed {
  readonly now: () => number;
  observer: CallObserver | undefined;
  #sessions = 0;

  /** `now` returns milliseconds of the monotonic clock. */
  constructor(now: () => number) {
    this.now = now;
  }

  /** Returns a function that passes the requests of one session to the current client view of that session. */
  session(connected: {
    readonly facts: Pick<ClientFacts, 'profile'>;
    readonly view: { serve(exchange: Exchange): void };
  }): (exchange: Exchange) => void {
    this.#sessions += 1;
    const client = { ...namesOf(connected.facts), session: this.#sessions };
    return (exchange) => {
      const { observer } = this;
      const isWanted = observer !== undefined && CALLS.includes(exchange.request.method);
      connected.view.serve(isWanted ? observed(exchange, client, observer, this.now) : exchange);
    };
  }
}

/** For gateways without a call log, such as those of most tests. */
export const NO_CALLS = new CallFeed(() => 0);

/** Name and version of the client as text. The client may have sent other types. */
export function namesOf({ profile }: Pick<ClientFacts, 'profile'>): Pick<CallingClient, 'name' | 'version'> {
  const { name, version } = profile.clientInfo;
  return { name: asText(name), version: asText(version) };
}

/** Wraps an exchange, and reports the end of the call to the observer. */
function observed(exchange: Exchange, client: CallingClient, observer: CallObserver, now: () => number): Exchange {
  const startedAt = now();
  const { method, bytes, params, tokens } = exchange.request;
  const excerpt = (text: Uint8Array, span: Span | undefined): Excerpt | undefined => {
    if (span === undefined || !observer.wantsContent) return undefined;
    const end = Math.min(span.end, span.start + MAX_READ_BYTES);
    return { text: readText(text, { start: span.start, end }), isCut: end < span.end };
  };
  // Reads the request now, because its memory is reused after the request was written to the server.
  const facts = {
    method,
    name: stringAt(bytes, tokens.name),
    requestId: exchange.requestId,
    bytesIn: params === undefined ? 0 : params.end - params.start,
    params: excerpt(bytes, params && (valuesAt(bytes, params, ['arguments'])[0] ?? params)),
  };
  let instance: string | undefined;
  let hasEnded = false;
  const end = (
    outcome: EndedCall['outcome'],
    { bytesOut = 0, result, reason, generation }: Partial<EndedCall> = {},
  ): void => {
    // The exchange is settled before its cancellation is reported.
    if (hasEnded || (exchange.isSettled && outcome !== 'cancelled')) return;
    hasEnded = true;
    const durationMs = now() - startedAt;
    observer.ended({ ...facts, client, outcome, instance, durationMs, generation, reason, bytesOut, result });
  };
  exchange.onCancel(() => end('cancelled'));
  return withMembers(exchange, {
    route: (source) => {
      instance = source;
      exchange.route(source);
    },
    answer: (response, edits = [], server) => {
      const failed = response.error === undefined ? 'tool_error' : 'rpc_error';
      end(isErrorResponse(response) ? failed : 'ok', {
        bytesOut: splicedLength({ ...response, edits }),
        result: excerpt(response.bytes, response.result ?? response.error),
      });
      exchange.answer(response, edits, server);
    },
    succeed: (result) => {
      end('ok', { bytesOut: result.length, result: excerpt(result, { start: 0, end: result.length }) });
      exchange.succeed(result);
    },
    fail: (failure) => {
      if (failure instanceof RpcError) end('rpc_error', { reason: failure.message });
      else end('failed', { reason: failure.reason, generation: failure.generation });
      exchange.fail(failure);
    },
    onCancel: (listener) =>
      exchange.onCancel((notification) => {
        end('cancelled');
        listener(notification);
      }),
  });
}
