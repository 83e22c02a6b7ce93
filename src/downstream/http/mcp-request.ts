import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FairMemory, Holder } from '../../wire/io/shared-limit.js';
import type { Envelope, Rejection } from '../../wire/mcp/envelope.js';
import { isModernRevision } from '../../wire/mcp/revisions.js';
import type { Caller } from './http-client.js';
import type { HttpRefusal } from './http-refusal.js';
import type { SessionOwner } from './sealed-ids.js';

/** A request for the MCP endpoint. An `HttpEndpoint` fills in the fields that can change. */
export class McpRequest {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  /** The path, or the absolute target. */
  readonly url: string;
  /** The server or view that the path names, in the form for `HttpSessionPort.openSession`. */
  readonly asked: string | undefined;
  /** The sender. Its principal is empty until the request is authenticated. */
  caller: Caller = { principal: '' };
  /** The server or view that serves the request. */
  endpoint: string | undefined;
  /** The reason why the server or view is closed to the caller. */
  closed: HttpRefusal | undefined;
  /** The body of a POST and the message in it. Absent until the body was read. */
  post: { readonly body: Uint8Array; readonly message: Envelope | Rejection } | undefined;

  constructor(raw: IncomingMessage, response: ServerResponse, url: string, asked: string | undefined) {
    this.raw = raw;
    this.response = response;
    this.url = url;
    this.asked = asked;
  }

  get method(): string {
    return this.raw.method ?? '';
  }

  get isOfUser(): boolean {
    return this.caller.user?.kind === 'user';
  }

  get owner(): SessionOwner {
    return { ...this.caller, endpoint: this.endpoint };
  }

  get sessionId(): string | undefined {
    return this.header('mcp-session-id');
  }

  /** Whether the header names a revision without sessions. */
  get isModern(): boolean {
    const revision = this.header('mcp-protocol-version');
    return revision !== undefined && isModernRevision(revision);
  }

  header(name: string): string | undefined {
    const value = this.raw.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }
}

interface BodyLimits {
  readonly maxBytes: number;
  /** Limit of the incomplete bodies of all requests together. A body that arrives in one piece does not count. */
  readonly memory: FairMemory;
  /** Owners of an incomplete body: the token and the session. */
  readonly owners: () => readonly string[];
}

export type ReadBody = Uint8Array | 'too-large' | 'buffers-full' | 'aborted';

/**
 * Reads the whole body, or returns the reason why it was not read.
 *
 * A body over the limit is read to its end and discarded, because closing the connection during the client's write
 * would reset it and lose the answer. The request timeout ends endless bodies.
 */
export function readRequestBody(request: IncomingMessage, { maxBytes, memory, owners }: BodyLimits): Promise<ReadBody> {
  return new Promise((resolve) => {
    const wholeLength = Number(request.headers['content-length']);
    let chunks: Buffer[] = [];
    let length = 0;
    let holder: Holder | undefined;
    let isSettled = false;
    const settle = (outcome: ReadBody) => {
      isSettled = true;
      chunks = [];
      if (holder !== undefined) memory.leave(holder);
      resolve(outcome);
    };
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (isSettled) return;
      if (length > maxBytes) {
        settle('too-large');
        return;
      }
      chunks.push(chunk);
      if (length === wholeLength) return;
      holder ??= memory.join({ owners: owners(), evict: () => settle('buffers-full') });
      if (!memory.grow(holder, length)) settle('buffers-full');
    });
    request.once('end', () => settle(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.once('error', () => settle('aborted'));
    request.once('close', () => settle('aborted'));
  });
}
