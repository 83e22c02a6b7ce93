import { REMOVED, rewriteObject } from '../../../json/edit-members.js';
import {
  isObject,
  isString,
  OPEN_BRACKET,
  readString,
  type Span,
  toBytes,
  valuesAt,
  visitElements,
} from '../../../json/json-text.js';
import { isRecord } from '../../../json/json-value.js';
import { type Edit, splice } from '../../../json/splice.js';
import { join } from '../../../jsonrpc/message.js';
import { RpcError } from '../../../jsonrpc/rpc-error.js';
import type { RequestEnvelope, ResponseEnvelope, ScanEnvelope } from '../../../mcp/envelope.js';
import { declaresTasks, TASKS_EXTENSION } from '../../../mcp/extensions.js';
import { METHODS } from '../../../mcp/methods.js';
import { MODERN_CODES } from '../../../mcp/revisions.js';

/** The error code of a request that needs what its client did not declare. */
const { missingCapability: MISSING_CAPABILITY } = MODERN_CODES;

/** Longest text of the server that is quoted in the message, in characters. */
const MAX_QUOTED = 500;

type Capabilities = Readonly<Record<string, unknown>>;

const TASKS: Capabilities = { extensions: { [TASKS_EXTENSION]: {} } };

/** Refuses a request about tasks of the extension; `undefined` if its client declares the extension. */
export function refusedTasks(request: RequestEnvelope): RpcError | undefined {
  if (declaresTasks(request)) return undefined;
  const message = 'Tasks need the extension io.modelcontextprotocol/tasks, which the client does not declare';
  return new RpcError(MISSING_CAPABILITY, message, { requiredCapabilities: TASKS });
}

/** The requests that only a client of the tasks extension may send. */
export function needsTasks(method: string): boolean {
  return method === METHODS.getTask || method === METHODS.updateTask || method === METHODS.cancelTask;
}

/** The capabilities that a client lacks, and a sentence about them. */
export interface Lack {
  readonly required: Capabilities;
  readonly because: string;
}

/** Both capabilities in one object. */
export function withCapabilities(one: Capabilities, other: Capabilities): Capabilities {
  const merged: Record<string, unknown> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const earlier = merged[name];
    merged[name] = isRecord(earlier) && isRecord(value) ? withCapabilities(earlier, value) : value;
  }
  return merged;
}

/**
 * Makes the error that revision 2026-07-28 wants in place of a server's own failure. Its data names the capabilities, beside
 * the data of the server's error, or beside the server's result as `result`. Both stay byte for byte, and are left out if
 * they are nested too deep.
 */
export function lackingCapability(
  { bytes, result, error }: ResponseEnvelope,
  edits: readonly Edit[],
  { required, because }: Lack,
  scan: ScanEnvelope,
): ResponseEnvelope {
  const said = error === undefined ? textOf(bytes, result) : messageOf(bytes, error);
  const message = said === undefined ? because : `${because}. The server said: ${said}`;
  const capabilities = toBytes(`"requiredCapabilities":${JSON.stringify(required)}`);
  const head = toBytes(
    `{"jsonrpc":"2.0","id":0,"error":{"code":${MISSING_CAPABILITY},"message":${JSON.stringify(message)},"data":`,
  );
  const whole = error === undefined ? dataWith(capabilities, bytes, result, edits) : dataOf(capabilities, bytes, error);
  // The data adds a level, which may be too deep for a message.
  for (const data of [whole, join([OPEN, capabilities, CLOSE])]) {
    const response = scan(join([head, data, CLOSE_TWICE]));
    if (response.kind === 'response') return response;
  }
  throw new Error('The error that was made is none');
}

/** The data of the server's error, with the capabilities. */
function dataOf(capabilities: Uint8Array, bytes: Uint8Array, error: Span): Uint8Array {
  const [data] = valuesAt(bytes, error, ['data']);
  if (data === undefined) return join([OPEN, capabilities, CLOSE]);
  if (!isObject(bytes, data)) return join([OPEN, capabilities, DATA, bytes.subarray(data.start, data.end), CLOSE]);
  return rewriteObject(bytes, data, {
    change: (name) => (name === 'requiredCapabilities' ? REMOVED : undefined),
    insert: () => [capabilities],
  });
}

/** The capabilities, and the server's result. */
function dataWith(
  capabilities: Uint8Array,
  bytes: Uint8Array,
  result: Span | undefined,
  edits: readonly Edit[],
): Uint8Array {
  if (result === undefined) return join([OPEN, capabilities, CLOSE]);
  const own = edits.filter(({ span }) => span.start >= result.start && span.end <= result.end);
  return join([OPEN, capabilities, RESULT, splice({ bytes, span: result, edits: own }), CLOSE]);
}

function messageOf(bytes: Uint8Array, error: Span): string | undefined {
  const [message] = valuesAt(bytes, error, ['message']);
  return message !== undefined && isString(bytes, message) ? quoted(readString(bytes, message)) : undefined;
}

/** The first text among the contents of a tool result. */
function textOf(bytes: Uint8Array, result: Span | undefined): string | undefined {
  const [content] = result === undefined ? [] : valuesAt(bytes, result, ['content']);
  if (content === undefined || bytes[content.start] !== OPEN_BRACKET) return undefined;
  let found: string | undefined;
  visitElements(bytes, content.start, Number.POSITIVE_INFINITY, (element) => {
    const [text] = found === undefined && isObject(bytes, element) ? valuesAt(bytes, element, ['text']) : [];
    if (text !== undefined && isString(bytes, text)) found = readString(bytes, text);
  });
  return found === undefined ? undefined : quoted(found);
}

function quoted(text: string): string | undefined {
  return text === '' || text.length > MAX_QUOTED ? undefined : text;
}

const OPEN = toBytes('{');
const CLOSE = toBytes('}');
const CLOSE_TWICE = toBytes('}}');
const DATA = toBytes(',"data":');
const RESULT = toBytes(',"result":');
