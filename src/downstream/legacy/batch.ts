import { readText, toBytes } from '../../json/json-text.js';
import { errorMessage, NULL_ID } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import { type Envelope, messagesOf, type Rejection, rejectionReply, type ScanEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { LegacyRevision } from '../../mcp/revisions.js';
import type { EraSession, ReceivedBatch, ReplyChannel } from '../transport.js';

export interface AcceptBatchOptions {
  readonly batch: Rejection;
  readonly scan: ScanEnvelope;
  /** Takes each message of the batch. */
  readonly session: Pick<EraSession, 'revision' | 'receive'>;
  /** Opens the channel for the given number of answers. */
  readonly openReply: (answers: number) => ReplyChannel;
}

/** The one revision that has batches. Older revisions do not mention them, and newer ones forbid them. */
const BATCHING: LegacyRevision = '2025-03-26';

/**
 * Hands each message of a client's batch to its session as if it had come alone. A message that cannot be read gets an
 * error, and so does a request whose id an earlier request of the batch has.
 */
export function acceptBatch({ batch, scan, session, openReply }: AcceptBatchOptions): ReceivedBatch {
  const { revision } = session;
  if (revision === undefined) return refuse('The session has to begin with initialize, which cannot be in a batch');
  if (revision !== BATCHING) return refuse(`Revision ${revision} has no batches`);
  const messages = messagesOf(batch, scan);
  if (messages.length === 0) return refuse('The batch is empty');
  if (messages.some(isInitialize)) return refuse('initialize cannot be in a batch');

  const answers = messages.filter(({ kind }) => kind === 'request' || kind === 'rejected').length;
  const reply = openReply(answers);
  const ids = new Set<string>();
  for (const message of messages) {
    const id = message.kind === 'request' ? readText(message.bytes, message.id) : undefined;
    if (message.kind === 'rejected') reply.answer(rejectionReply(message));
    else if (id !== undefined && ids.has(id)) reply.answer(errorMessage(toBytes(id), repeatedId()));
    else session.receive(message, reply);
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
