import { addFirst } from '../../json/edit-members.js';
import { isObject, isString, readString, readText, type Span, toBytes, valuesAt } from '../../json/json-text.js';
import { type Edit, splice } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { type ListKind, requestedList } from '../../mcp/lists.js';
import { METHODS } from '../../mcp/methods.js';
import { SKILL_METHODS } from '../../mcp/skills.js';
import type { ServerInfo } from '../declared-capabilities.js';
import type { GatewaySession } from '../port.js';
import type { AnswerForm } from '../wire-exchange.js';

/** Longest time that a client may cache a list, while a server is still starting and after that. Changes are announced. */
const UNSETTLED_TTL_MS = 5_000;
const SETTLED_TTL_MS = 300_000;

/** Members that a result may lack. */
const MISSING = { type: 1, ttl: 2, scope: 4, meta: 8 } as const;

const COMPLETE = '"resultType":"complete"';
const NOT_KEPT = '"ttlMs":0';
const PRIVATE = '"cacheScope":"private"';
const NO_EDITS: readonly Edit[] = [];
const CLOSE = toBytes('}');
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
/** Resource not found; a URL has to be visited before. Each with the code of 2026-07-28 that comes closest. */
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
 * Writes answers as revision 2026-07-28 wants them: each result has a `resultType`, results of lists and reads say how
 * long they may be cached, and `_meta` names the server, or else the gateway. Members that a server wrote itself stay.
 */
export class ModernForm implements AnswerForm {
  readonly #options: ModernFormOptions;
  readonly #own: Additions;
  /** By what a server calls itself. */
  readonly #ofServers = new WeakMap<Uint8Array, Additions>();

  constructor(options: ModernFormOptions) {
    this.#options = options;
    this.#own = new Additions(JSON.stringify(options.serverInfo));
  }

  edits({ bytes, result, tokens }: ResponseEnvelope, method: string, server?: Uint8Array): readonly Edit[] {
    if (result === undefined) return errorEdits(bytes, tokens.errorCode);
    if (!isObject(bytes, result)) return NO_EDITS;
    const { resultType, ttlMs, cacheScope, resultMeta, resultServerInfo } = tokens;
    let missing = 0;
    if (resultType === undefined) missing += MISSING.type;
    // A request for input is not cached, and says so with its own type.
    if (isCacheable(method) && (resultType === undefined || isComplete(bytes, resultType))) {
      if (ttlMs === undefined) missing += MISSING.ttl;
      if (cacheScope === undefined) missing += MISSING.scope;
    }
    if (resultMeta === undefined) missing += MISSING.meta;
    const isUnnamed = resultMeta !== undefined && resultServerInfo === undefined && isObject(bytes, resultMeta);
    if (missing === 0 && !isUnnamed) return NO_EDITS;
    const additions = server === undefined ? this.#own : this.#additionsOf(server);
    const own = missing === 0 ? NO_EDITS : [addFirst(bytes, result, additions.members(missing))];
    return isUnnamed ? [...own, addFirst(bytes, resultMeta, additions.serverInfo)] : own;
  }

  result(result: Uint8Array, method: string): Uint8Array {
    const span = { start: 0, end: result.length };
    const list = requestedList(method);
    const members = [COMPLETE];
    if (isCacheable(method)) members.push(...this.#cachingHint(list));
    const edits: Edit[] = [];
    // Lists of the gateway's own have no `_meta`, and may be large.
    const [meta] = list !== undefined ? [] : valuesAt(result, span, ['_meta']);
    if (meta === undefined) members.push(this.#own.meta);
    else edits.push(addFirst(result, meta, this.#own.serverInfo));
    edits.push(addFirst(result, span, toBytes(`${members.join()},`)));
    return splice({ bytes: result, span, edits });
  }

  /** A result that requires input. `members` are those of the result, as JSON without the braces. */
  inputRequired(members: Uint8Array): Uint8Array {
    return join([toBytes(`{"resultType":"input_required",${this.#own.meta},`), members, CLOSE]);
  }

  #additionsOf(server: Uint8Array): Additions {
    let additions = this.#ofServers.get(server);
    if (additions === undefined) {
      additions = new Additions(readText(server, { start: 0, end: server.length }));
      this.#ofServers.set(server, additions);
    }
    return additions;
  }

  /** Merges the hints of the servers. */
  #cachingHint(list: ListKind | undefined): readonly string[] {
    const caching = list === undefined ? undefined : this.#options.caching?.(list);
    if (caching === undefined) return [NOT_KEPT, PRIVATE];
    const { isSettled, freshMs, isPublic } = caching;
    const ttlMs = Math.floor(Math.min(isSettled ? SETTLED_TTL_MS : UNSETTLED_TTL_MS, freshMs));
    return [`"ttlMs":${ttlMs}`, isPublic ? '"cacheScope":"public"' : PRIVATE];
  }
}

/** What is added to the results of one server, or of the gateway. `name` is what it calls itself, as JSON. */
class Additions {
  /** A member of `_meta`, before a comma. */
  readonly serverInfo: Uint8Array;
  readonly meta: string;
  /** By the sum of what was missing. */
  readonly #members: (Uint8Array | undefined)[] = [];

  constructor(name: string) {
    const serverInfo = `${JSON.stringify(SERVER_INFO)}:${name}`;
    this.serverInfo = toBytes(`${serverInfo},`);
    this.meta = `"_meta":{${serverInfo}}`;
  }

  /** The missing members as JSON, before a comma. There are few combinations. */
  members(missing: number): Uint8Array {
    let members = this.#members[missing];
    if (members === undefined) {
      const texts: readonly (readonly [number, string])[] = [
        [MISSING.type, COMPLETE],
        [MISSING.ttl, NOT_KEPT],
        [MISSING.scope, PRIVATE],
        [MISSING.meta, this.meta],
      ];
      const wanted = texts.flatMap(([bit, text]) => ((missing & bit) === 0 ? [] : [text]));
      members = toBytes(`${wanted.join()},`);
      this.#members[missing] = members;
    }
    return members;
  }
}

function isComplete(bytes: Uint8Array, resultType: Span): boolean {
  return isString(bytes, resultType) && readString(bytes, resultType) === 'complete';
}

/** The results that say how long they may be cached. See the page server/utilities/caching of revision 2026-07-28. */
function isCacheable(method: string): boolean {
  return requestedList(method) !== undefined || CACHEABLE.has(method);
}

const CACHEABLE: ReadonlySet<string> = new Set([
  METHODS.readResource,
  METHODS.discover,
  ...Object.values(SKILL_METHODS),
]);

/** Replaces the codes that earlier revisions define, and revision 2026-07-28 forbids. */
function errorEdits(bytes: Uint8Array, code: Span | undefined): readonly Edit[] {
  if (code === undefined) return NO_EDITS;
  const text = OLD_CODES.get(readText(bytes, code));
  return text === undefined ? NO_EDITS : [{ span: code, text }];
}
