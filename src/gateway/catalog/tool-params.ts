import {
  isObject,
  isString,
  readString,
  type Span,
  toBytes,
  visitElements,
  visitMembers,
} from '../../json/json-text.js';
import { type ObjectRewrite, REMOVED, rewriteObject } from '../../json/rewrite-object.js';
import type { Edit } from '../../json/splice.js';
import { didYouMean, suggest } from '../../json/suggest.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { RelayedRequest } from '../../mcp/relayed-request.js';

/** A description that replaces the server's, or that follows it. */
export type Description = string | { readonly append: string };

/** The parameters of one tool in another form, by name. */
export interface ParamShapes {
  /** Parameters that clients do not see. */
  readonly hide?: readonly string[];
  /** Values that replace what a client sends. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Values for what a client leaves out. */
  readonly default?: Readonly<Record<string, unknown>>;
  readonly describe?: Readonly<Record<string, string>>;
}

/** The parameters of one tool. The values of the configuration are serialized once. */
export class ToolParams {
  readonly #shapes: ParamShapes;
  /** Parameters that a client need not send. */
  readonly #optional: ReadonlySet<string>;
  readonly #hidden: ReadonlySet<string>;
  readonly #set: ReadonlyMap<string, Uint8Array>;
  readonly #default: ReadonlyMap<string, Uint8Array>;

  constructor(shapes: ParamShapes) {
    this.#shapes = shapes;
    this.#hidden = new Set(shapes.hide ?? []);
    this.#set = toMembers(shapes.set);
    this.#default = toMembers(shapes.default);
    this.#optional = new Set([...this.#hidden, ...this.#set.keys(), ...this.#default.keys()]);
  }

  /** The schema as clients see it, and sentences about parameters that it does not have. */
  shapeSchema(bytes: Uint8Array, schema: Span): { readonly text: Uint8Array; readonly unknown: readonly string[] } {
    const known: string[] = [];
    const text = rewriteObject(bytes, schema, {
      change: (name, value) => {
        if (name === 'required') return withoutRequired(bytes, value, this.#optional);
        if (name !== 'properties' || !isObject(bytes, value)) return undefined;
        return rewriteObject(bytes, value, {
          change: (param, property) => {
            known.push(param);
            return this.#hidden.has(param) ? REMOVED : this.#describe(param, bytes, property);
          },
        });
      },
    });
    return { text, unknown: this.unknownAmong(known) };
  }

  /** Sentences about the parameters that are not among the known ones. */
  unknownAmong(known: readonly string[]): readonly string[] {
    const named = new Set([...this.#optional, ...Object.keys(this.#shapes.describe ?? {})]);
    const unknown = [...named].filter((name) => !known.includes(name));
    return unknown.map((name) => `has no parameter ${JSON.stringify(name)}${hintFor(name, known)}`);
  }

  editsOf({ bytes, params }: Pick<RelayedRequest, 'bytes' | 'params'>): readonly Edit[] | RpcError {
    if (params === undefined || this.#set.size + this.#default.size === 0) return NO_EDITS;
    const found: Span[] = [];
    visitMembers(bytes, params.start, Number.POSITIVE_INFINITY, (key, value) => {
      if (readString(bytes, key) === 'arguments') found.push(value);
    });
    if (found.length === 0) {
      // `params` has the name of the tool, so that a member follows.
      const at = params.start + 1;
      const text = rewriteObject(NO_ARGUMENTS, WHOLE, this.#rewrite);
      return [{ span: { start: at, end: at }, text: join([ARGUMENTS, text, COMMA]) }];
    }
    const edits = found.map((span): Edit | undefined => {
      if (isObject(bytes, span)) return { span, text: rewriteObject(bytes, span, this.#rewrite) };
      // Some clients send null for no arguments.
      const isNull = bytes[span.start] === LETTER_N;
      return isNull ? { span, text: rewriteObject(NO_ARGUMENTS, WHOLE, this.#rewrite) } : undefined;
    });
    const sound = edits.filter((edit) => edit !== undefined);
    if (sound.length === edits.length) return sound;
    return new RpcError(RPC_CODES.invalidParams, 'tools/call needs arguments that are an object');
  }

  #describe(param: string, bytes: Uint8Array, property: Span): Uint8Array | undefined {
    const { describe = {} } = this.#shapes;
    const text = Object.hasOwn(describe, param) ? describe[param] : undefined;
    if (text === undefined || !isObject(bytes, property)) return undefined;
    return rewriteObject(bytes, property, {
      change: (member, old) => (member === 'description' ? describedAs(text, bytes, old) : undefined),
      insert: (names) => (names.has('description') ? [] : [newDescription(text)]),
    });
  }

  get #rewrite(): ObjectRewrite {
    return {
      change: (name: string) => (this.#set.has(name) ? REMOVED : undefined),
      insert: (names: ReadonlySet<string>) => [
        ...this.#set.values(),
        ...[...this.#default].flatMap(([name, member]) => (names.has(name) || this.#set.has(name) ? [] : [member])),
      ],
    };
  }
}

const NO_EDITS: readonly Edit[] = [];
const ARGUMENTS = toBytes('"arguments":');
const NO_ARGUMENTS = toBytes('{}');
const WHOLE: Span = { start: 0, end: NO_ARGUMENTS.length };
const COMMA = toBytes(',');
const LETTER_N = 0x6e;

function toMembers(values: Readonly<Record<string, unknown>> = {}): ReadonlyMap<string, Uint8Array> {
  return new Map(Object.entries(values).map(([name, value]) => [name, memberOf(name, JSON.stringify(value))]));
}

function memberOf(name: string, value: string): Uint8Array {
  return toBytes(`${JSON.stringify(name)}:${value}`);
}

/** `required` without these names, or nothing if none is left. */
function withoutRequired(bytes: Uint8Array, value: Span, optional: ReadonlySet<string>) {
  const elements: Span[] = [];
  visitElements(bytes, value.start, Number.POSITIVE_INFINITY, (element) => elements.push(element));
  const kept = elements.filter((element) => !isString(bytes, element) || !optional.has(readString(bytes, element)));
  if (kept.length === elements.length) return undefined;
  if (kept.length === 0) return REMOVED;
  const pieces = kept.flatMap(({ start, end }, index) => [
    toBytes(index === 0 ? '[' : ','),
    bytes.subarray(start, end),
  ]);
  return join([...pieces, toBytes(']')]);
}

export function describedAs(description: Description, bytes: Uint8Array, old: Span): Uint8Array {
  const before = isString(bytes, old) ? readString(bytes, old) : '';
  if (typeof description === 'string') return toBytes(JSON.stringify(description));
  return toBytes(JSON.stringify(before === '' ? description.append : `${before}\n\n${description.append}`));
}

export function newDescription(description: Description): Uint8Array {
  return memberOf('description', JSON.stringify(typeof description === 'string' ? description : description.append));
}

export function hintFor(name: string, candidates: readonly string[]): string {
  const meant = suggest(name, candidates.slice(0, MAX_COMPARED));
  return meant === undefined ? '' : `; ${didYouMean(meant)}`;
}

/** Comparing two names takes some microseconds. */
const MAX_COMPARED = 500;
