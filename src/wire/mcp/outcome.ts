import type { Edit } from '../json/splice.js';
import type { ResponseEnvelope } from './envelope.js';

export type Outcome =
  | {
      readonly kind: 'answered';
      readonly response: ResponseEnvelope;
      /** Arrival of the answer, in milliseconds on the clock. */
      readonly at: number;
      /** Edits of the response for a sender of another era than the server's. */
      readonly edits?: readonly Edit[];
    }
  | {
      readonly kind: 'failed';
      readonly reason: RequestFailure;
      /** Whether a byte of the request may have reached the server. */
      readonly sent: boolean;
      /** Present if the gateway closed the connection because of the server's behavior. */
      readonly because?: EndedBecause | undefined;
    };

export type RequestFailure =
  | CloseReason
  /** No answer and no progress within the idle timeout, or no answer within the maximum. */
  | 'timeout'
  /** The server has left too many bytes unread, and took none for five seconds, or too few before the timeout. */
  | 'overloaded'
  | 'response_too_large'
  /** The answer was the largest unfinished message when the memory for unfinished messages was full. */
  | 'response_dropped'
  /** The id of the answer can be read, but the answer is not a valid message. */
  | 'response_malformed'
  /** The answer is a valid JSON-RPC message, but its result is not an object, or its error has no code and message. */
  | 'result_malformed'
  /** The sender cancelled the request. */
  | 'cancelled'
  /** Over HTTP: no connection to the server could be made. */
  | 'unreachable'
  /** Over HTTP: the connection, or the stream of the answer, broke before the answer. */
  | 'connection_lost'
  /** Over HTTP: the status of the response says that the server is overloaded or failing. */
  | 'unavailable'
  /** Over HTTP: the response has a status or a content type that no answer has. */
  | 'refused'
  /** Over HTTP: the server does not accept the credentials, or there are none. */
  | 'login_required';

/** `exited`: the server ended or broke the connection. `stopped`: the gateway ended it. */
export type CloseReason = 'exited' | 'stopped';

/** Reason for which the gateway ended a server, as a phrase with the subject *it*, without a period or a secret. */
export type EndedBecause = string;
