import { REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import { equalsAt, isObject, type Span, skipWhitespace, stringAt, toBytes } from '../../wire/json/json-text.js';
import { concatEdits, type Edit, type SplicedMessage, type TokenText } from '../../wire/json/splice.js';
import { join } from '../../wire/jsonrpc/message.js';
import { TASKS_EXTENSION } from '../../wire/mcp/extensions.js';
import type { ClientProfile } from '../../wire/mcp/handshake.js';
import type { LogLevel } from '../../wire/mcp/methods.js';
import type { RelayedRequest } from '../../wire/mcp/relayed-request.js';

/** Description of the client in the `_meta` of requests. Its text is made once, so a request costs only one more edit. */
export class RequestMeta {
  readonly #client: Uint8Array;
  #revision: string;
  #logLevel: LogLevel | undefined;
  #texts: Texts;

  constructor(profile: ClientProfile, revision: string) {
    this.#client = clientMembers(profile);
    this.#revision = revision;
    this.#texts = this.#compose();
  }

  set revision(revision: string) {
    this.#revision = revision;
    this.#texts = this.#compose();
  }

  /** Sets the lowest level of the log messages that the server sends while it serves a request. */
  set logLevel(level: LogLevel | undefined) {
    this.#logLevel = level;
    this.#texts = this.#compose();
  }

  /** Makes the message of a request with this id. `more` is text with members for the end of `params`. */
  message(request: RelayedRequest, id: TokenText, edits: readonly Edit[], more?: Uint8Array): SplicedMessage {
    const { bytes, params } = request;
    if (params !== undefined && isObject(bytes, params)) {
      return request.message(id, concatEdits(edits, this.#editsOf(request, params, more)));
    }
    const message = request.message(id, edits);
    const added = join([this.#texts.asParams, ...(more ? [COMMA, more] : []), CLOSE]);
    return { ...message, edits: [...message.edits, before(message.span.end - 1, added)] };
  }

  #editsOf({ bytes, tokens }: RelayedRequest, params: Span, more?: Uint8Array): readonly Edit[] {
    const { requestMeta, eraVersion } = tokens;
    // The request of a modern client already describes the client, but may have another revision.
    if (eraVersion !== undefined) {
      const { quotedRevision } = this.#texts;
      const isSame = equalsAt(bytes, eraVersion.start, quotedRevision);
      if (isSame && more === undefined) return NO_EDITS;
      return [
        ...(more === undefined ? [] : [atEnd(bytes, params, join([COMMA, more]))]),
        ...(isSame ? [] : [{ span: eraVersion, text: quotedRevision }]),
      ];
    }
    if (requestMeta === undefined) {
      const { nextMember } = this.#texts;
      return [atEnd(bytes, params, more === undefined ? nextMember : join([nextMember, COMMA, more]))];
    }
    const ofMeta = isObject(bytes, requestMeta)
      ? atEnd(bytes, requestMeta, this.#texts.nextMembers)
      : { span: requestMeta, text: this.#texts.asObject };
    return more === undefined ? [ofMeta] : [ofMeta, atEnd(bytes, params, join([COMMA, more]))];
  }

  /** Adds the description to the params of a request of the gateway's own. `params` is serializable, or bytes of JSON. */
  ownParams(params: unknown): Uint8Array {
    if (params === undefined) return join([OPEN, this.#texts.asMember, CLOSE]);
    const bytes = params instanceof Uint8Array ? params : toBytes(JSON.stringify(params));
    const end = bytes.lastIndexOf(CLOSE[0] ?? 0);
    const isEmpty = isEmptyObject(bytes, { start: bytes.indexOf(OPEN[0] ?? 0), end: end + 1 });
    return join([bytes.subarray(0, end), ...(isEmpty ? [] : [COMMA]), this.#texts.asMember, CLOSE]);
  }

  #compose(): Texts {
    const quotedRevision = toBytes(JSON.stringify(this.#revision));
    const level = this.#logLevel === undefined ? '' : `,"${PREFIX}logLevel":${JSON.stringify(this.#logLevel)}`;
    const members = join([toBytes(`"${PREFIX}protocolVersion":`), quotedRevision, this.#client, toBytes(level)]);
    const asObject = join([OPEN, members, CLOSE]);
    const asMember = join([toBytes('"_meta":'), asObject]);
    return {
      quotedRevision,
      nextMembers: join([COMMA, members]),
      asObject,
      asMember,
      nextMember: join([COMMA, asMember]),
      asParams: join([toBytes(',"params":{'), asMember]),
    };
  }
}

interface Texts {
  readonly quotedRevision: Uint8Array;
  /** A comma and the members, for the end of an object with other members. */
  readonly nextMembers: Uint8Array;
  readonly asObject: Uint8Array;
  readonly asMember: Uint8Array;
  readonly nextMember: Uint8Array;
  /** A comma and the member `params`, without its last brace. */
  readonly asParams: Uint8Array;
}

const NO_EDITS: readonly Edit[] = [];
const PREFIX = 'io.modelcontextprotocol/';
const OPEN = toBytes('{');
const CLOSE = toBytes('}');
const COMMA = toBytes(',');

/** Returns members with the client's identity and capabilities, in the client's own text if it is known. */
function clientMembers({ clientInfo, capabilities, raw }: ClientProfile): Uint8Array {
  const info = raw?.clientInfo ?? toBytes(JSON.stringify(clientInfo));
  const declared = raw?.capabilities ?? toBytes(JSON.stringify(capabilities));
  const isAnonymous = isEmptyObject(info, { start: 0, end: info.length });
  return join([
    ...(isAnonymous ? [] : [toBytes(`,"${PREFIX}clientInfo":`), info]),
    toBytes(`,"${PREFIX}clientCapabilities":`),
    capabilitiesFor(declared),
  ]);
}

/**
 * Adapts capabilities to modern revisions. Removes the client's tasks and the notifications about its roots, because these
 * revisions have neither. Adds the tasks extension, because the gateway waits for a task if the client does not know tasks.
 */
function capabilitiesFor(declared: Uint8Array): Uint8Array {
  const removing = (unknown: string) => (name: string) => (name === unknown ? REMOVED : undefined);
  const tasks = `"${TASKS_EXTENSION}":{}`;
  return rewriteObject(
    declared,
    { start: 0, end: declared.length },
    {
      change: (name, value) => {
        if (name === 'tasks') return REMOVED;
        if (name === 'extensions' && isObject(declared, value)) {
          const insert = (names: ReadonlySet<string>) => (names.has(TASKS_EXTENSION) ? [] : [toBytes(tasks)]);
          return rewriteObject(declared, value, { change: () => undefined, insert });
        }
        const isRoots = name === 'roots' && isObject(declared, value);
        return isRoots ? rewriteObject(declared, value, { change: removing('listChanged') }) : undefined;
      },
      insert: (names) => (names.has('extensions') ? [] : [toBytes(`"extensions":{${tasks}}`)]),
    },
  );
}

/** Adds members at the end of an object. `text` begins with a comma, which is left out if the object is empty. */
function atEnd(bytes: Uint8Array, object: Span, text: Uint8Array): Edit {
  const edit = before(object.end - 1, text);
  return isEmptyObject(bytes, object) ? { ...edit, part: { start: 1, end: text.length } } : edit;
}

function before(at: number, text: Uint8Array): Edit {
  return { span: { start: at, end: at }, text };
}

function isEmptyObject(bytes: Uint8Array, { start, end }: Span): boolean {
  return skipWhitespace(bytes, start + 1) >= end - 1;
}

/** Makes a request for a modern server. `more` is text with members for `params`. `onId` receives the id of the message. */
export function modernMessage(
  request: RelayedRequest,
  meta: RequestMeta,
  more?: Uint8Array,
  onId?: (id: TokenText) => void,
): RelayedRequest {
  const { method, bytes, params, tokens } = request;
  const message: RelayedRequest['message'] = (id, edits) => {
    onId?.(id);
    return meta.message(request, id, edits, more);
  };
  return { method, bytes, params, tokens, message };
}

/** Returns a text in the params of a request after the edits, or `undefined` if it is absent or not a string. */
export function sentText(
  { bytes, tokens }: RelayedRequest,
  edits: readonly Edit[],
  name: 'uri' | 'level',
): string | undefined {
  const span = tokens[name];
  const edit = edits.find((each) => each.span === span);
  const { text, part = { start: 0, end: text.length } } = edit ?? { text: bytes, part: span };
  return span === undefined ? undefined : stringAt(text, part);
}
