import { addFirst } from '../../json/edit-members.js';
import { isObject, readText, type Span, toBytes, valuesAt } from '../../json/json-text.js';
import { type Edit, splice } from '../../json/splice.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { requestedList } from '../../mcp/lists.js';
import { METHODS } from '../../mcp/methods.js';
import { SKILL_METHODS } from '../../mcp/skills.js';
import type { ServerInfo } from '../declared-capabilities.js';
import type { AnswerForm } from '../wire-exchange.js';

/** How long a client may keep a list while a server is still starting, and after that. Changes are announced besides. */
const UNSETTLED_TTL_MS = 5_000;
const SETTLED_TTL_MS = 300_000;

/** What a result may lack. */
const MISSING = { type: 1, ttl: 2, scope: 4, meta: 8 } as const;

const COMPLETE = '"resultType":"complete"';
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
  /** Whether a list that is read now stays as it is for now. */
  readonly areListsSettled: () => boolean;
}

/**
 * Writes answers as revision 2026-07-28 wants them: each result has a `resultType`, results of lists and reads say how
 * long they may be cached, and `_meta` names the server. What a server wrote itself stays.
 */
export class ModernForm implements AnswerForm {
  readonly #options: ModernFormOptions;
  /** A member of `_meta`, before a comma. */
  readonly #serverInfo: Uint8Array;
  readonly #meta: string;
  /** What was added to results, before a comma, by the sum of what was missing. */
  readonly #added: (Uint8Array | undefined)[] = [];

  constructor(options: ModernFormOptions) {
    this.#options = options;
    const serverInfo = `${JSON.stringify(SERVER_INFO)}:${JSON.stringify(options.serverInfo)}`;
    this.#serverInfo = toBytes(`${serverInfo},`);
    this.#meta = `"_meta":{${serverInfo}}`;
  }

  edits({ bytes, result, tokens }: ResponseEnvelope, method: string): readonly Edit[] {
    if (result === undefined) return errorEdits(bytes, tokens.errorCode);
    if (!isObject(bytes, result)) return NO_EDITS;
    const { resultType, ttlMs, cacheScope, resultMeta, resultServerInfo } = tokens;
    let missing = 0;
    if (resultType === undefined) missing += MISSING.type;
    // A request for input is not cached, and says so with its own type.
    if (resultType === undefined && isCacheable(method)) {
      if (ttlMs === undefined) missing += MISSING.ttl;
      if (cacheScope === undefined) missing += MISSING.scope;
    }
    if (resultMeta === undefined) missing += MISSING.meta;
    const own = missing === 0 ? NO_EDITS : [addFirst(bytes, result, this.#members(missing))];
    const isUnnamed = resultMeta !== undefined && resultServerInfo === undefined && isObject(bytes, resultMeta);
    return isUnnamed ? [...own, addFirst(bytes, resultMeta, this.#serverInfo)] : own;
  }

  result(result: Uint8Array, method: string): Uint8Array {
    const span = { start: 0, end: result.length };
    const isList = requestedList(method) !== undefined;
    const members = [COMPLETE];
    if (isCacheable(method)) members.push(`"ttlMs":${this.#ttlMs(isList)}`, '"cacheScope":"private"');
    const edits: Edit[] = [];
    // Lists of the gateway's own have no `_meta`, and may be large.
    const [meta] = isList ? [] : valuesAt(result, span, ['_meta']);
    if (meta === undefined) members.push(this.#meta);
    else edits.push(addFirst(result, meta, this.#serverInfo));
    edits.push(addFirst(result, span, toBytes(`${members.join()},`)));
    return splice({ bytes: result, span, edits });
  }

  /** A result that requires input. `members` are those of the result, as JSON without the braces. */
  inputRequired(members: Uint8Array): Uint8Array {
    return join([toBytes(`{"resultType":"input_required",${this.#meta},`), members, CLOSE]);
  }

  /** The missing members as JSON, before a comma. There are few combinations. */
  #members(missing: number): Uint8Array {
    let members = this.#added[missing];
    if (members === undefined) {
      const texts: readonly (readonly [number, string])[] = [
        [MISSING.type, COMPLETE],
        [MISSING.ttl, '"ttlMs":0'],
        [MISSING.scope, '"cacheScope":"private"'],
        [MISSING.meta, this.#meta],
      ];
      const wanted = texts.flatMap(([bit, text]) => ((missing & bit) === 0 ? [] : [text]));
      members = toBytes(`${wanted.join()},`);
      this.#added[missing] = members;
    }
    return members;
  }

  #ttlMs(isList: boolean): number {
    if (!isList) return 0;
    return this.#options.areListsSettled() ? SETTLED_TTL_MS : UNSETTLED_TTL_MS;
  }
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
