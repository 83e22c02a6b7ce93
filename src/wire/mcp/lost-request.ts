import { readText, valuesAt } from '../json/json-text.js';
import { isRecord, parseJson } from '../json/json-value.js';

/*
 * Requests whose process ended before it answered. It is unknown whether such a request took effect. Attach processes load this file.
 */

export interface LostRequest {
  /** The id as JSON. */
  readonly id: string;
  readonly method: string;
  /** Whether a call was to become a task. */
  readonly isTask?: boolean;
  /** Whether the request names its revision, as those without a handshake do. */
  readonly isModern?: boolean;
}

/** Reason for which a request is lost, for the client's model and for programs. */
export interface Loss {
  readonly text: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** The answer to a lost request, as JSON. A call gets a tool result, because many hosts hide errors from their models. */
export function lostAnswer(
  { id, method, isTask = false, isModern = false }: LostRequest,
  { text, facts }: Loss,
): string {
  if (method !== 'tools/call' || isTask) {
    return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code: -32603, message: text, data: facts })}}`;
  }
  const content = [{ type: 'text', text }];
  // Only revisions without a handshake know `resultType`, and they require it.
  const type = isModern ? { resultType: 'complete' } : {};
  const result = { ...type, content, isError: true, _meta: { 'trunkline/failure': facts } };
  return `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`;
}

/** Requests that may be served twice, because they only read or set the same value again. */
const REPEATABLE: ReadonlySet<string> = new Set([
  ...['initialize', 'ping', 'tools/list', 'prompts/list', 'prompts/get', 'completion/complete', 'logging/setLevel'],
  ...['resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe', 'resources/unsubscribe'],
  ...['tasks/get', 'tasks/list', 'server/discover', 'subscriptions/listen'],
]);

/** Treatment of a message whose process ended before it settled the message. */
export type Fate =
  /** The message is served by another process. It may be served twice, because it changes nothing. */
  | { readonly kind: 'again' }
  | { readonly kind: 'answered'; readonly answer: string }
  /** The message needs no answer. */
  | { readonly kind: 'dropped' };

const AGAIN: Fate = { kind: 'again' };
const DROPPED: Fate = { kind: 'dropped' };

/** Decides the fate of a message or a batch. */
export function fateOfMessage(bytes: Uint8Array, loss: Loss): Fate {
  const whole = { start: 0, end: bytes.length };
  const message = parseJson(readText(bytes, whole));
  // The process that serves the message answers with the error.
  if (message === undefined) return AGAIN;
  if (Array.isArray(message)) return fateOfBatch(message, loss);
  // Answers and cancellations of the client are for requests that ended with the process.
  if (!isRequest(message)) return isRecord(message) && message.method === 'notifications/initialized' ? AGAIN : DROPPED;
  if (REPEATABLE.has(message.method)) return AGAIN;
  // Take the text of the id, because a parser changes large numbers.
  const id = valuesAt(bytes, whole, ['id']).at(-1);
  return answered(answerTo(message, id === undefined ? 'null' : readText(bytes, id), loss));
}

function fateOfBatch(messages: readonly unknown[], loss: Loss): Fate {
  const requests = messages.filter(isRequest);
  if (requests.length === 0) return DROPPED;
  if (requests.every(({ method }) => REPEATABLE.has(method))) return AGAIN;
  return answered(`[${requests.map((request) => answerTo(request, JSON.stringify(request.id), loss)).join()}]`);
}

interface Request {
  readonly id: unknown;
  readonly method: string;
  readonly params?: unknown;
}

function isRequest(message: unknown): message is Request {
  return isRecord(message) && typeof message.method === 'string' && Object.hasOwn(message, 'id');
}

/** Member of `_meta` in every request of a revision without a handshake. */
const ERA = 'io.modelcontextprotocol/protocolVersion';

/** `id` is JSON. */
function answerTo({ method, params }: Request, id: string, loss: Loss): string {
  const isTask = isRecord(params) && params.task !== undefined;
  const isModern = isRecord(params) && isRecord(params._meta) && ERA in params._meta;
  return lostAnswer({ id, method, isTask, isModern }, loss);
}

function answered(answer: string): Fate {
  return { kind: 'answered', answer };
}
