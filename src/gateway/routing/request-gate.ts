import type { Decision } from '../../config/rules/request-rules.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { NamedView } from '../catalog/tool-policy.js';
import type { Target } from './router.js';

/** A request of a client, with the server that it is for, before the server gets it. */
export interface GatedRequest {
  readonly exchange: Exchange;
  readonly target: Target;
  /** The view of the configuration that the client has. Absent if it sees everything. */
  readonly view: NamedView | undefined;
  /** The decision of a rule that asks a person, who has not said yes to the request yet. */
  readonly asks: Decision | undefined;
}

/** A request of a server to a client. */
export interface GatedInput {
  /** The key of the server. */
  readonly server: string;
  readonly client: DownstreamClient;
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
  /**
   * Returns a function that asks the client as `ask` does, once the gate has looked at the question, and that looks at the answer.
   * Returns `ask` if the gate does not look at questions of this server. Absent if it never does.
   */
  asking?(input: GatedInput, ask: Exchange['requireInput']): Exchange['requireInput'];
}
