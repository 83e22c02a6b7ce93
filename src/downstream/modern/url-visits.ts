import { editMembers } from '../../wire/json/edit-members.js';
import { elementsOf, isObject, readText, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { splice } from '../../wire/json/splice.js';
import { jsonObject, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import { type RequestEnvelope, type ResponseEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { type EnvelopeRequest, ownResponse, requestWith } from '../../wire/mcp/relayed-request.js';
import { VISIT_REQUIRED } from '../../wire/mcp/signed-questions.js';
import type { Hmac } from '../../wire/mcp/task-id.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { inputRequestEntry, lackingCapability, refusedInput, requiredCapabilities } from '../input-requests.js';
import { type StateContext, sealState, VISIT_STATE, type VisitState } from './request-state.js';

/** Limit of the rounds in which one request asks its client for visits, or to come back later. */
const MAX_ROUNDS = 10;
/** Time that a repeated request waits for the end of the visit, in milliseconds. */
const MAX_WAIT_MS = 30_000;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 5_000;
/** Longest URL in the message, in characters. Longer ones are only in the data of the error. */
const MAX_SHOWN_URL = 2_000;

export interface UrlVisitsOptions {
  readonly clock: Clock;
  readonly seal: Hmac;
  readonly context: StateContext;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** State that the client brings back; absent in the first request. */
  readonly state: VisitState | undefined;
  readonly sendAgain: () => void;
}

/**
 * The visits of URLs that a legacy server wants before it serves a request. The server refuses the request and suspends nothing. The client
 * gets the URLs as required input, and comes back with the consent of its user.
 *
 * The visit may end later than the consent comes, and servers need not report the end. The request is therefore sent again at once and then
 * after growing pauses. If the visit takes longer, the client is asked to come back again, but the page is not shown again.
 */
export class UrlVisits {
  readonly #options: UrlVisitsOptions;
  readonly #endsAt: number;
  #pauseMs = FIRST_PAUSE_MS;
  #cancelTimer: Cancel = () => {};

  constructor(options: UrlVisitsOptions) {
    this.#options = options;
    this.#endsAt = options.clock.now() + MAX_WAIT_MS;
  }

  /**
   * Returns the answer for the client in place of the error. Returns `later` if the request will be sent again. Returns
   * `undefined` if the error names no pages, or if the client was asked ten times.
   */
  next(refused: ResponseEnvelope): ResponseEnvelope | 'later' | undefined {
    const { clock, capabilities, state, sendAgain } = this.#options;
    const visits = readVisits(refused);
    if (visits.length === 0) return undefined;
    const refusal = visits.find(({ request }) => refusedInput(request, capabilities) !== undefined);
    if (refusal !== undefined) {
      const lack = { required: requiredCapabilities(refusal.request), because: unable(visits) };
      return lackingCapability(refused, [], lack);
    }
    const pages = this.#digest(visits);
    const isAccepted = state?.isAccepted === true && state.pages === pages;
    if (isAccepted && clock.now() + this.#pauseMs <= this.#endsAt) {
      this.#cancelTimer = clock.schedule(this.#pauseMs, sendAgain);
      this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
      return 'later';
    }
    const round = (state?.round ?? 0) + 1;
    return round > MAX_ROUNDS ? undefined : this.#asking(visits, { round, pages, count: visits.length, isAccepted });
  }

  cancel(): void {
    this.#cancelTimer();
  }

  #asking(visits: readonly Visit[], state: VisitState): ResponseEnvelope {
    const { context, seal } = this.#options;
    const entries = visits.map(({ request }, index) => {
      return [`url-${index + 1}`, inputRequestEntry({ request, edits: [] })] as const;
    });
    const sealed = sealState(VISIT_STATE, JSON.stringify(state), context, seal);
    return ownResponse(
      jsonObject([
        ['resultType', toBytes('"input_required"')],
        ...(state.isAccepted ? [] : [['inputRequests', jsonObject(entries)] as const]),
        ['requestState', toBytes(JSON.stringify(sealed))],
      ]),
    );
  }

  /** Returns a digest of the pages without their queries, because many servers make a new query for each request. */
  #digest(visits: readonly Visit[]): string {
    const pages = visits.map(({ url }) => url.replace(/[?#].*$/s, ''));
    return this.#options.seal(JSON.stringify(['pages', ...pages])).slice(0, 22);
  }
}

interface Visit {
  readonly url: string;
  readonly request: EnvelopeRequest;
}

export function wantsVisits({ bytes, tokens: { errorCode } }: ResponseEnvelope): boolean {
  return errorCode !== undefined && readText(bytes, errorCode) === VISIT_REQUIRED;
}

/** The visits that the error demands; none if they cannot be read. */
function readVisits({ bytes, error }: ResponseEnvelope): readonly Visit[] {
  const [list] = error === undefined ? [] : valuesAt(bytes, error, ['data', 'elicitations']);
  const visits = elementsOf(bytes, list).map(({ start, end }) => toVisit(bytes.slice(start, end)));
  const readable = visits.filter((visit) => visit !== undefined);
  return readable.length === visits.length ? readable : [];
}

function toVisit(params: Uint8Array): Visit | undefined {
  const whole = { start: 0, end: params.length };
  const url = stringAt(params, valuesAt(params, whole, ['url'])[0]);
  const mode = stringAt(params, valuesAt(params, whole, ['mode'])[0]);
  const request = mode === 'url' ? requestWith(METHODS.elicit, params) : undefined;
  return url === undefined || request === undefined ? undefined : { url, request };
}

/** Explains that the client does not declare visits. The user can still open the pages. */
function unable(visits: readonly Visit[]): string {
  const pages = visits.map(({ url }) => shownUrl(url));
  const which = pages.includes(undefined) ? 'a web page' : pages.join(' and ');
  return `The server needs its user to visit ${which} before it serves this, and the client does not declare elicitation of mode url`;
}

/** Returns the URL as text that a user can judge and open; `undefined` if it is long, misleading or not of the web. */
function shownUrl(url: string): string | undefined {
  if (url.length > MAX_SHOWN_URL || !URL.canParse(url)) return undefined;
  const { protocol, username, password, href } = new URL(url);
  const isPlain = (protocol === 'https:' || protocol === 'http:') && username === '' && password === '';
  return isPlain && href.length <= MAX_SHOWN_URL ? href : undefined;
}

/** Reads the consent of the user from the repeated request. Returns an error if the user declined or canceled. */
export function visited(visit: VisitState, request: RequestEnvelope): { readonly visit: VisitState } | RpcError {
  const actions = actionsOf(request);
  if (actions.includes('decline')) return unvisited('declined');
  if (actions.some((action) => action !== 'accept')) return unvisited('canceled');
  return { visit: { ...visit, isAccepted: visit.isAccepted || actions.length >= visit.count } };
}

function actionsOf({ bytes, tokens: { inputResponses } }: RequestEnvelope): readonly unknown[] {
  if (inputResponses === undefined || !isObject(bytes, inputResponses)) return [];
  const responses = JSON.parse(readText(bytes, inputResponses)) as Record<string, { readonly action?: unknown } | null>;
  return Object.values(responses).map((response) => response?.action);
}

function unvisited(did: string): RpcError {
  const message = `The server needs its user to visit a web page before it serves this, and the user ${did} that`;
  return new RpcError(RPC_CODES.internalError, message);
}

/** Restores the first form of the request, because the server does not know the members that the client adds. */
export function withoutInput(request: RequestEnvelope): RequestEnvelope {
  const { bytes, span, params } = request;
  if (params === undefined) return request;
  const removes = (name: string) => name === 'inputResponses' || name === 'requestState';
  const first = scanOwn(splice({ bytes, span, edits: editMembers(bytes, params, { removes }) }));
  return first.kind === 'request' ? first : request;
}
