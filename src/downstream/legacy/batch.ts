import { readText, toBytes } from '../../json/json-text.js';
import type { SplicedMessage } from '../../json/splice.js';
import { errorMessage, NULL_ID } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { type Envelope, messagesOf, type Rejection, type ScanEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { LegacyRevision } from '../../mcp/revisions.js';
import { rejectionReply } from './rejection-reply.js';
import type { ReplyChannel } from './reply-channel.js';

export interface AcceptBatchOptions {
  readonly batch: Rejection;
  readonly scan: ScanEnvelope;
  /** Takes each message. */
  readonly session: {
    readonly revision: string | undefined;
    accept(message: Envelope, reply: ReplyChannel): boolean;
  };
  /** The way back, given how many answers there will be. */
  readonly replyFor: (answers: number) => ReplyChannel;
}

/** How many answers a batch gets, each of which may be withdrawn, or why nothing of it is served. */
export type ReceivedBatch = { readonly answers: number; readonly isBatch: true } | { readonly refused: SplicedMessage };

/** The one revision that has batches. Before it they were not mentioned, and after it they are forbidden. */
const BATCHING: LegacyRevision = '2025-03-26';

/**
 * Hands each message of a client's batch to its session as if it had come alone. One that cannot be read is answered
 * with an error, and so is a request whose id stands in the batch before it.
 */
export function acceptBatch({ batch, scan, session, replyFor }: AcceptBatchOptions): ReceivedBatch {
  const { revision } = session;
  if (revision === undefined) return refuse('The session has to begin with initialize, which cannot be in a batch');
  if (revision !== BATCHING) return refuse(`Revision ${revision} has no batches`);
  const messages = messagesOf(batch, scan);
  if (messages.length === 0) return refuse('The batch is empty');
  if (messages.some(isInitialize)) return refuse('initialize cannot be in a batch');

  const answers = messages.filter(({ kind }) => kind === 'request' || kind === 'rejected').length;
  const reply = replyFor(answers);
  const ids = new Set<string>();
  for (const message of messages) {
    const id = message.kind === 'request' ? readText(message.bytes, message.id) : undefined;
    if (message.kind === 'rejected') reply.answer(rejectionReply(message));
    else if (id !== undefined && ids.has(id)) reply.answer(errorMessage(toBytes(id), repeatedId()));
    else session.accept(message, reply);
    if (id !== undefined) ids.add(id);
  }
  return { answers, isBatch: true };
}

function isInitialize(message: Envelope | Rejection): boolean {
  return message.kind === 'request' && message.method === METHODS.initialize;
}

function repeatedId(): RpcError {
  return new RpcError(RPC_CODES.invalidRequest, 'Another request of this batch has the same id');
}

function refuse(message: string): ReceivedBatch {
  return { refused: errorMessage(NULL_ID, new RpcError(RPC_CODES.invalidRequest, message)) };
}
