import { addFirst } from '../../wire/json/edit-members.js';
import { isObject, readText, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { join, RPC_CODES } from '../../wire/jsonrpc/message.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { SKILL_METHODS } from '../../wire/mcp/extensions.js';
import { type ListKind, METHODS, requestedList } from '../../wire/mcp/methods.js';
import type { ServerInfo } from '../declared-capabilities.js';
import type { GatewaySession } from '../port.js';
import type { AnswerForm } from '../wire-exchange.js';

/** Longest times for which a client may cache a list, while a server is starting and later. Changes are announced. */
const UNSETTLED_TTL_MS = 5_000;
const SETTLED_TTL_MS = 300_000;

const COMPLETE = toBytes('"resultType":"complete",');
const NOT_KEPT = toBytes('"ttlMs":0,');
const PRIVATE = toBytes('"cacheScope":"private",');
const PUBLIC = toBytes('"cacheScope":"public",');
const INPUT_REQUIRED = toBytes('"resultType":"input_required",');
const NO_EDITS: readonly Edit[] = [];
const OPEN = toBytes('{');
const CLOSE = toBytes('}');
const COMMA = toBytes(',');
const META = toBytes('"_meta":{');
const META_END = toBytes('},');
const SERVER_INFO = toBytes('"io.modelcontextprotocol/serverInfo":');
/** Old codes for "resource not found" and "a URL must be visited", each with the closest code of 2026-07-28. */
const OLD_CODES: ReadonlyMap<string, Uint8Array> = new Map([
  ['-32002', toBytes(`${RPC_CODES.invalidParams}`)],
  ['-32042', toBytes(`${RPC_CODES.internalError}`)],
]);

export interface ModernFormOptions {
  readonly serverInfo: ServerInfo;
  /** Absent if no list is answered in this form. */
  readonly caching?: GatewaySession['caching'];
}

/**
 * Writes answers in the form of revision 2026-07-28. Each result has a `resultType`, results of lists and reads say how
 * long they may be cached, and `_meta` names the server or else the gateway. Members of the server itself stay.
 */
export class ModernForm implements AnswerForm {
  readonly #options: ModernFormOptions;
  /** Name and version of the gateway, as JSON. */
  readonly #own: Uint8Array;

  constructor(options: ModernFormOptions) {
    this.#options = options;
    this.#own = toBytes(JSON.stringify(options.serverInfo));
  }

  edits({ bytes, result, tokens }: ResponseEnvelope, method: string, server?: Uint8Array): readonly Edit[] {
    if (result === undefined) return errorEdits(bytes, tokens.errorCode);
    if (!isObject(bytes, result)) return NO_EDITS;
    const { resultType, ttlMs, cacheScope, resultMeta, resultServerInfo } = tokens;
    const missing: Uint8Array[] = [];
    if (resultType === undefined) missing.push(COMPLETE);
    // A request for input is not cached, and has another type.
    if (isCacheable(method) && (resultType === undefined || stringAt(bytes, resultType) === 'complete')) {
      if (ttlMs === undefined) missing.push(NOT_KEPT);
      if (cacheScope === undefined) missing.push(PRIVATE);
    }
    const name = server ?? this.#own;
    if (resultMeta === undefined) missing.push(META, SERVER_INFO, name, META_END);
    const edits = missing.length === 0 ? [] : [addFirst(bytes, result, join(missing))];
    if (resultMeta !== undefined && resultServerInfo === undefined && isObject(bytes, resultMeta)) {
      edits.push(addFirst(bytes, resultMeta, join([SERVER_INFO, name, COMMA])));
    }
    return edits;
  }

  result(result: Uint8Array, method: string): Uint8Array {
    const span = { start: 0, end: result.length };
    const list = requestedList(method);
    const members = [COMPLETE];
    if (isCacheable(method)) members.push(...this.#cachingHint(list));
    const edits: Edit[] = [];
    // Lists of the gateway's own have no `_meta`, and searching a large list would take long.
    const [meta] = list !== undefined ? [] : valuesAt(result, span, ['_meta']);
    if (meta === undefined) members.push(META, SERVER_INFO, this.#own, META_END);
    else edits.push(addFirst(result, meta, join([SERVER_INFO, this.#own, COMMA])));
    edits.push(addFirst(result, span, join(members)));
    return splice({ bytes: result, span, edits });
  }

  /** Returns a result that requires input. `members` are JSON without the braces. */
  inputRequired(members: Uint8Array): Uint8Array {
    return join([OPEN, INPUT_REQUIRED, META, SERVER_INFO, this.#own, META_END, members, CLOSE]);
  }

  #cachingHint(list: ListKind | undefined): readonly Uint8Array[] {
    const caching = list === undefined ? undefined : this.#options.caching?.(list);
    if (caching === undefined) return [NOT_KEPT, PRIVATE];
    const { isSettled, freshMs, isPublic } = caching;
    const ttlMs = Math.floor(Math.min(isSettled ? SETTLED_TTL_MS : UNSETTLED_TTL_MS, freshMs));
    return [toBytes(`"ttlMs":${ttlMs},`), isPublic ? PUBLIC : PRIVATE];
  }
}

/** Whether the result says how long it may be cached. See the page server/utilities/caching of revision 2026-07-28. */
function isCacheable(method: string): boolean {
  return requestedList(method) !== undefined || CACHEABLE.has(method);
}

const CACHEABLE: ReadonlySet<string> = new Set([
  METHODS.readResource,
  METHODS.discover,
  ...Object.values(SKILL_METHODS),
]);

/** Replaces error codes of earlier revisions that revision 2026-07-28 forbids. */
function errorEdits(bytes: Uint8Array, code: Span | undefined): readonly Edit[] {
  if (code === undefined) return NO_EDITS;
  const text = OLD_CODES.get(readText(bytes, code));
  return text === undefined ? NO_EDITS : [{ span: code, text }];
}
