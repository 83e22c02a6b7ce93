import type { Code } from '../../errors/codes.js';
import { readText, valuesAt } from '../../json/json-text.js';
import { isRecord, parseJson } from '../../json/json-value.js';
import type { ClientLine } from './client-lines.js';

/** Treatment of a line whose hub died before it settled the line. */
export type Fate =
  /** It is sent to the next hub: it changes nothing, so that it may be served twice. */
  | { readonly kind: 'again' }
  /** It is answered with this. */
  | { readonly kind: 'answered'; readonly answer: string }
  /** It needs no answer. */
  | { readonly kind: 'dropped' };

/** Requests that only read, or that set something to the same value again. */
const REPEATABLE = new Set([
  ...['initialize', 'ping', 'tools/list', 'prompts/list', 'prompts/get', 'completion/complete', 'logging/setLevel'],
  ...['resources/list', 'resources/templates/list', 'resources/read', 'resources/subscribe', 'resources/unsubscribe'],
  ...['tasks/get', 'tasks/list', 'server/discover', 'subscriptions/listen'],
]);

const AGAIN: Fate = { kind: 'again' };
const DROPPED: Fate = { kind: 'dropped' };

/** Decides what becomes of a line. Every request in it gets exactly one answer in the end, by us or by the next hub. */
export function fateOf({ pieces, isCut }: ClientLine): Fate {
  if (isCut) return answered(errorText('null'));
  const bytes = Buffer.concat(pieces);
  const message = parseJson(bytes.toString());
  // The next hub says what is wrong with it.
  if (message === undefined) return AGAIN;
  if (!Array.isArray(message)) return fateOfMessage(message, bytes);
  const requests = message.filter(isRequest);
  if (requests.length === 0) return DROPPED;
  if (requests.every(({ method }) => REPEATABLE.has(method))) return AGAIN;
  return answered(`[${requests.map((request) => failureText(request, JSON.stringify(request.id))).join()}]`);
}

function fateOfMessage(message: unknown, bytes: Uint8Array): Fate {
  // The requests that a client's answer is for, and those that it cancels, ended with the hub.
  if (!isRequest(message)) return isHandshakeEnd(message) ? AGAIN : DROPPED;
  if (REPEATABLE.has(message.method)) return AGAIN;
  // The text of the id, because a parser changes large numbers.
  const id = valuesAt(bytes, { start: 0, end: bytes.length }, ['id']).at(-1);
  return answered(failureText(message, id === undefined ? 'null' : readText(bytes, id)));
}

function isHandshakeEnd(message: unknown): boolean {
  return isRecord(message) && message.method === 'notifications/initialized';
}

interface Request {
  readonly id: unknown;
  readonly method: string;
  readonly params?: unknown;
}

function isRequest(message: unknown): message is Request {
  return isRecord(message) && typeof message.method === 'string' && Object.hasOwn(message, 'id');
}

/** In every request of a revision without a handshake. */
const ERA = 'io.modelcontextprotocol/protocolVersion';

const TEXT =
  'Trunkline was restarted while this call was in flight: its shared process ended unexpectedly. Whether the call took effect is unknown: check before repeating it.';
const FACTS = {
  reason: 'hub_exited',
  code: 'TL-CALL-HUB-EXITED' satisfies Code,
  sent: true,
  outcome: 'unknown',
};

/** `id` is JSON. */
function failureText({ method, params }: Request, id: string): string {
  const isTask = isRecord(params) && params.task !== undefined;
  if (method !== 'tools/call' || isTask) return errorText(id);
  const content = [{ type: 'text', text: TEXT }];
  // Revisions without a handshake require the type of a result. Others do not know it.
  const type = isRecord(params) && isRecord(params._meta) && ERA in params._meta ? { resultType: 'complete' } : {};
  const result = { ...type, content, isError: true, _meta: { 'trunkline/failure': FACTS } };
  return `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`;
}

function errorText(id: string): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code: -32603, message: TEXT, data: FACTS })}}`;
}

function answered(answer: string): Fate {
  return { kind: 'answered', answer };
}
