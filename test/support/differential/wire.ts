// A connection of the differential tests, which carries text.

/** Channel of a message: the response to one of our requests, or the stream for all else. A pipe does not say. */
export type Channel = 'response' | 'stream' | 'pipe';

export type OnMessage = (text: string, channel: Channel) => void;

/** A connection to a server that carries texts and looks into none of them. */
export interface Wire {
  /** Resolves when the other side has taken the message, as far as can be told. */
  send(text: string): Promise<void>;
  /** Opens the stream for messages without a request, where that needs a connection of its own. */
  listen(): Promise<void>;
  /** Resolves when the connection has ended. */
  close(): Promise<void>;
}
