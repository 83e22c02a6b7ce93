import { RpcError } from '../../jsonrpc/rpc-error.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';
import type { Handling } from '../dispatch/handling.js';
import type { Backend } from '../registry/backend.js';
import type { Candidates } from './try-in-order.js';

/** The server that a request is for, and what to replace in the request and its response. */
export interface Target extends Handling {
  readonly backend: Backend;
  /** The original name or URI, if the request names one. */
  readonly original?: string;
  /** The original name of the tool, if the request calls one. */
  readonly tool?: string;
  /** No server lists what was requested; this one is the most likely. */
  readonly isGuess?: boolean;
}

/** No server lists the name or URI. A server that is still starting may have it. */
export class NotListed extends RpcError {}

/** The call of a tool with the values that the configuration gives to its parameters. */
export function shaped(target: Target & { readonly tool: string }, request: RelayedRequest): Target | RpcError {
  const { shaping } = target.backend.rules;
  if (shaping === undefined) return target;
  const values = shaping.editsOf(target.tool, request);
  return values instanceof RpcError ? values : { ...target, edits: [...target.edits, ...values] };
}

/** Whether a server that is still starting may turn out to be the right one. */
export function mayChange(target: Target | Candidates | RpcError): boolean {
  if (target instanceof RpcError) return target instanceof NotListed;
  return 'candidates' in target || target.isGuess === true;
}
