import type { Exchange } from './exchange.js';

/** What a session needs of the gateway. */
export interface GatewayPort {
  /** Serves a request, whatever front it came through. */
  serve(exchange: Exchange): void;
  /** How to use what is offered, for the client's model. */
  readonly instructions: string;
  /** Calls `listener` whenever the merged list of tools has become another one; returns how to stop that. */
  onToolsChanged(listener: () => void): () => void;
}
