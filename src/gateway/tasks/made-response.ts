import { splice } from '../../json/splice.js';
import { errorMessage, resultMessage } from '../../jsonrpc/message.js';
import { RpcError } from '../../jsonrpc/rpc-error.js';
import { createScan, type ResponseEnvelope } from '../../mcp/envelope.js';
import type { Outcome } from '../../upstream/port.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';

/** Scans messages of the gateway's own. What they contain of other messages was checked when those were read. */
export const scanOwn = createScan(() => true);

/** A response in place of a server's own, with a result as JSON or an error. Its id is replaced when it is sent. */
export function madeResponse(content: Uint8Array | RpcError): ResponseEnvelope {
  const message = content instanceof RpcError ? errorMessage(ANY_ID, content) : resultMessage(ANY_ID, content);
  return toResponse(splice(message));
}

function toResponse(bytes: Uint8Array): ResponseEnvelope {
  const response = scanOwn(bytes);
  if (response.kind !== 'response') throw new Error('The response that was made is none');
  return response;
}

/** The same response in memory of its own: that of a response has another use soon. */
export function madeCopy({ bytes, span }: ResponseEnvelope): ResponseEnvelope {
  return toResponse(bytes.slice(span.start, span.end));
}

/** The outcome of a request that is answered with this now: with a result as JSON, an error, or a response. */
export function madeOutcome(content: Uint8Array | RpcError | ResponseEnvelope, { options }: Dispatcher): Outcome {
  const isResponse = !(content instanceof Uint8Array || content instanceof RpcError);
  return { kind: 'answered', response: isResponse ? content : madeResponse(content), at: options.clock.now() };
}

const ANY_ID = new Uint8Array([0x30]);
