import { canonicalObject } from '../../wire/json/edit-members.js';
import { RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { RequestEnvelope } from '../../wire/mcp/envelope.js';
import { EnvelopeRequest, type RelayedRequest } from '../../wire/mcp/relayed-request.js';
import { type Hmac, isSealOf } from '../../wire/mcp/task-id.js';
import type { GatewaySeals } from '../port.js';

/*
 * `requestState` is a text of the gateway that the client brings back with the input. The text is signed, so that it is
 * valid only for the principal and the request that it was made for.
 */

/** Kinds of state: a suspended call of this process, visits of URLs, and the wrapped state of a server. */
export const CALL_STATE = 'S';
export const VISIT_STATE = 'U';
export const SERVER_STATE = 'P';

/** The only context in which a state is valid: one principal, and one request with the same params. */
export interface StateContext {
  readonly principal: string;
  readonly request: string;
}

export function stateContext(principal: string, request: RelayedRequest): StateContext {
  return { principal, request: requestDigest(request) };
}

interface CallState {
  /** The unguessable id of the suspended call. */
  readonly call: string;
  /** Number of the round, from 1. In each round the client is asked once. */
  readonly round: number;
  readonly instance: string;
}

/** The state of a request that needs visits of URLs. No call is suspended meanwhile. */
export interface VisitState {
  /** Number of the round, from 1. In each round the client is asked once. */
  readonly round: number;
  /** Digest and number of the pages, so that the same pages are not shown twice. */
  readonly pages: string;
  readonly count: number;
  /** Whether the user has agreed to visit these pages already. */
  readonly isAccepted: boolean;
}

/** Signs a text for one context. A server gets its own text back byte for byte. */
export function sealState(kind: string, text: string, context: StateContext, seal: Hmac): string {
  return `${kind}.${seal(signed(kind, text, context))}.${text}`;
}

function signed(kind: string, text: string, { principal, request }: StateContext): string {
  return JSON.stringify([kind, text, principal, request]);
}

type OpenedState = CallState | { readonly visit: VisitState } | { readonly serverState: string };

/** Reads a state. Returns an error for a forged state, and for a call of another process. */
export function openState(
  state: string,
  { envelope, principal }: { readonly envelope: RequestEnvelope; readonly principal: string },
  seals: GatewaySeals | undefined,
): OpenedState | RpcError {
  if (seals === undefined) return STARTING;
  const [, kind = '', sent, text = ''] = /^([A-Z])\.([^.]*)\.(.*)$/s.exec(state) ?? [];
  const context = stateContext(principal, new EnvelopeRequest(envelope));
  if (sent === undefined || !isSealOf(sent, signed(kind, text, context), seals.lasting)) return UNKNOWN_STATE;
  if (kind === SERVER_STATE) return { serverState: text };
  if (kind === VISIT_STATE) return { visit: JSON.parse(text) as VisitState };
  const opened = JSON.parse(text) as CallState;
  return opened.instance === seals.instance ? opened : OTHER_INSTANCE;
}

/** The gateway process that has the suspended call of this state. Nothing is verified. */
export function instanceOfState(state: string): string | undefined {
  return new RegExp(`^${CALL_STATE}\\.[^.]*\\..*"instance":"([^"]*)"`, 's').exec(state)?.[1];
}

/** Returns method and params as canonical text, without the members that change each time the client sends the request. */
function requestDigest({ method, bytes, params }: RelayedRequest): string {
  return `${method} ${params === undefined ? '' : canonicalObject(bytes, params, (name) => !CHANGING.has(name))}`;
}

const CHANGING: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);

const STARTING = new RpcError(RPC_CODES.internalError, 'Trunkline is still starting. Try again');
const UNKNOWN_STATE = new RpcError(
  RPC_CODES.invalidParams,
  'This requestState was not made for this request. Begin again without it',
);
const OTHER_INSTANCE = new RpcError(
  RPC_CODES.invalidParams,
  'Another process of Trunkline keeps this call, or kept it until it ended. Begin again without requestState',
);
