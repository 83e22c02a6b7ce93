import { readText, toBytes } from '../../../json/json-text.js';
import { isRecord } from '../../../json/json-value.js';
import { type Edit, splice } from '../../../json/splice.js';
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
 * the data of the server's error, or beside the server's result as `result`. Both are left out if they are nested too deep.
 */
export function lackingCapability(
  { bytes, result, error }: ResponseEnvelope,
  edits: readonly Edit[],
  { required, because }: Lack,
  scan: ScanEnvelope,
): ResponseEnvelope {
  const span = error ?? result ?? { start: 0, end: 0 };
  const own = edits.filter((edit) => edit.span.start >= span.start && edit.span.end <= span.end);
  const json = splice({ bytes, span, edits: own });
  const said = JSON.parse(readText(json, { start: 0, end: json.length })) as Said;
  const words = error === undefined ? textOf(said) : said.message;
  const isShort = typeof words === 'string' && words !== '' && words.length <= MAX_QUOTED;
  const message = isShort ? `${because}. The server said: ${words}` : because;
  const ofError = isRecord(said.data) ? said.data : { data: said.data };
  const whole = error === undefined ? { result: said } : ofError;
  // The data adds a level, which may be too deep for a message.
  for (const data of [whole, {}]) {
    const failure = { code: MISSING_CAPABILITY, message, data: { ...data, requiredCapabilities: required } };
    const response = scan(toBytes(JSON.stringify({ jsonrpc: '2.0', id: 0, error: failure })));
    if (response.kind === 'response') return response;
  }
  throw new Error('The error that was made is none');
}

/** A tool result, or an error. */
interface Said {
  readonly content?: unknown;
  readonly message?: unknown;
  readonly data?: unknown;
}

/** The first text among the contents of a tool result. */
function textOf({ content }: Said): unknown {
  return Array.isArray(content)
    ? content.filter(isRecord).find(({ text }) => typeof text === 'string')?.text
    : undefined;
}
