import type { Exchange } from '../../downstream/port.js';
import type { NamedView } from '../catalog/tool-policy.js';
import type { Target } from './router.js';

/** A request of a client, with the server that it is for, before the server gets it. */
export interface GatedRequest {
  readonly exchange: Exchange;
  readonly target: Target;
  /** The view of the configuration that the client has. Absent if it sees everything. */
  readonly view: NamedView | undefined;
}

/**
 * Holds requests back until it has looked at them. Gates come before the slots of a server, so that a request which waits at a
 * gate keeps no other one waiting. Rules that deny a request come first, and once more after all gates.
 */
export interface RequestGate {
  /** Whether the gate holds this request back. Asked for each request, so it must be cheap. */
  concerns(request: GatedRequest): boolean;
  /**
   * Looks at the request, and then either settles its exchange or calls `pass`, once, with the exchange that goes on. Must end the
   * wait when the exchange is cancelled (`Exchange.onCancel`), whose listener is another one after `pass`.
   */
  hold(request: GatedRequest, pass: (exchange: Exchange) => void): void;
}
