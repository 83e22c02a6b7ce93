import { RPC_CODES, RpcError } from '../../../jsonrpc/rpc-error.js';
import type { RequestEnvelope } from '../../../mcp/envelope.js';
import { EnvelopeRequest } from '../../../mcp/relayed-request.js';
import type { GatewaySeals } from '../../port.js';
import { type InputRounds, STALE } from './input-rounds.js';
import {
  instanceName,
  isOwnState,
  isVisitState,
  openState,
  openVisit,
  requestDigest,
  unwrapServerState,
  type VisitState,
} from './input-state.js';
import type { SuspendedCalls } from './suspended-calls.js';
import { visited } from './url-visits.js';

export interface StateHolder {
  readonly envelope: RequestEnvelope;
  readonly principal: string;
  /** Absent until the gateway has its servers. */
  readonly seals: GatewaySeals | undefined;
  readonly calls: Pick<SuspendedCalls<InputRounds>, 'find'>;
}

/**
 * What a request comes back to: a suspended call in one of its rounds, a server that keeps its own state, or a server that
 * wanted URLs to be visited.
 */
type Found =
  | { readonly rounds: InputRounds; readonly round: number }
  | { readonly serverState: string }
  | { readonly visit: VisitState };

/** Finds what a `requestState` belongs to, or why the request with it is refused. No server learns of a refused one. */
export function findState(state: string, { envelope, principal, seals, calls }: StateHolder): Found | RpcError {
  if (seals === undefined) return STARTING;
  const context = { principal, request: requestDigest(new EnvelopeRequest(envelope)) };
  if (isVisitState(state)) {
    const visit = openVisit(state, context, seals.lasting);
    return visit === undefined ? UNKNOWN_STATE : visited(visit, envelope);
  }
  if (!isOwnState(state)) {
    const serverState = unwrapServerState(state, context, seals.lasting);
    return serverState === undefined ? UNKNOWN_STATE : { serverState };
  }
  const opened = openState(state, context, seals.lasting);
  if (opened === undefined) return UNKNOWN_STATE;
  if (opened.instance !== instanceName(seals.run)) return OTHER_INSTANCE;
  const rounds = calls.find(opened.call);
  return rounds === undefined ? STALE : { rounds, round: opened.round };
}

const STARTING = new RpcError(RPC_CODES.internalError, 'Trunkline is still starting. Try again');
const UNKNOWN_STATE = new RpcError(
  RPC_CODES.invalidParams,
  'This requestState was not made for this request. Begin again without it',
);
const OTHER_INSTANCE = new RpcError(
  RPC_CODES.invalidParams,
  'Another process of Trunkline keeps this call, or kept it until it ended. Begin again without requestState',
);
