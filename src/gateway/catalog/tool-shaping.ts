import type { Description, ParamShapes, ToolHints, ToolShapes } from '../../spec/server-rules.js';
import { type ObjectRewrite, REMOVED, rewriteObject } from '../../wire/json/edit-members.js';
import { matchesGlob } from '../../wire/json/glob.js';
import { elementsOf, foldKey, isObject, membersOf, type Span, stringAt, toBytes } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import { didYouMean, suggest } from '../../wire/json/suggest.js';
import { join, jsonArray, RPC_CODES, RpcError } from '../../wire/jsonrpc/message.js';
import type { RequestParams } from '../../wire/mcp/relayed-request.js';
import { createToolPolicy, type ToolPolicy } from './tool-policy.js';

/** The changes that the configuration makes to the tools of one server. Prepared once, for lists and for calls. */
export class ToolShaping {
  readonly #rename: ReadonlyMap<string, string>;
  readonly #describe: ReadonlyMap<string, Description>;
  readonly #params: ReadonlyMap<string, ToolParams>;
  readonly #annotate: Readonly<Record<string, ToolHints>>;
  readonly #pin: readonly string[];
  readonly #isPinned: ToolPolicy;
  readonly #keywords: ReadonlyMap<string, readonly string[]>;
  readonly #onWarnings: (warnings: readonly string[]) => void;

  /** Calls `onWarnings` for each list of tools with sentences about the shapes that do not apply, if there are any. */
  constructor(shapes: ToolShapes, onWarnings: (warnings: readonly string[]) => void = () => {}) {
    this.#rename = new Map(Object.entries(shapes.rename ?? {}));
    this.#describe = new Map(Object.entries(shapes.describe ?? {}));
    this.#params = new Map(Object.entries(shapes.params ?? {}).map(([name, params]) => [name, new ToolParams(params)]));
    this.#annotate = shapes.annotate ?? {};
    this.#pin = shapes.pin ?? [];
    this.#isPinned = createToolPolicy({ allow: this.#pin, deny: [] });
    this.#keywords = new Map(Object.entries(shapes.keywords ?? {}));
    this.#onWarnings = onWarnings;
  }

  /** The configured words that find the tool in search mode. */
  keywordsOf(original: string): readonly string[] {
    return this.#keywords.get(original) ?? [];
  }

  /**
   * Returns the annotations that the configuration gives to the tool; `undefined` if it gives none. Each comes from the tool's own name,
   * or else from the last glob that has it, because the order of a map should not decide against a name.
   */
  hintsOf(original: string): ToolHints | undefined {
    const entries = Object.entries(this.#annotate);
    const globs = entries.flatMap(([glob, hints]) => (matchesGlob(glob, original) ? [hints] : []));
    return globs.length === 0 ? undefined : Object.assign({}, ...globs, this.ownHintsOf(original));
  }

  /** The annotations that the configuration gives to the tool by its own name. */
  ownHintsOf(original: string): ToolHints | undefined {
    return Object.hasOwn(this.#annotate, original) ? this.#annotate[original] : undefined;
  }

  /** Names the keys of `tools` that change the tool, such as `describe` and `annotate.title`. See `originalOf` for `renamed`. */
  changesOf(original: string, renamed: ReadonlyMap<string, string> = this.#rename): readonly string[] {
    return [
      ...(renamed.has(original) ? ['rename'] : []),
      ...(this.#describe.has(original) ? ['describe'] : []),
      ...(this.#params.has(original) ? ['params'] : []),
      ...Object.keys(this.hintsOf(original) ?? {}).map((hint) => `annotate.${hint}`),
    ];
  }

  /**
   * Returns the original name of a tool that clients see as `shown`. `renamed` has the renames that apply to the server's
   * list. The default is all renames of the configuration.
   */
  originalOf(shown: string, renamed: ReadonlyMap<string, string> = this.#rename): string {
    for (const [original, name] of renamed) if (name === shown) return original;
    return shown;
  }

  /**
   * Prepares the shaping of one list. `listed` has the original names of all its tools, and `maySee` is the tool policy
   * for clients.
   */
  begin(listed: readonly string[], maySee: (name: string) => boolean) {
    const warnings = this.#unknownTools(listed);
    return {
      /** New names of the renamed tools, by original name. */
      names: this.#namesIn(new Set(listed.filter(maySee)), warnings),
      /** Original names of the tools that clients in search mode see in the list. */
      pinned: new Set(listed.filter(this.#isPinned)),
      shape: (name: string, entry: Uint8Array) =>
        this.shape(name, entry, (unknown) =>
          warnings.push(...unknown.map((warning) => `the tool ${quoted(name)} ${warning}`)),
        ),
      /** Returns sentences about the shapes that do not apply. Call this after all entries were shaped. */
      end: (): readonly string[] => {
        if (warnings.length > 0) this.#onWarnings(warnings);
        return warnings;
      },
    };
  }

  /** The entry as clients see it, except for its name; `undefined` if it stays as it is. */
  shape(name: string, entry: Uint8Array, onUnknown: OnUnknown = () => {}): Uint8Array | undefined {
    const describe = this.#describe.get(name);
    const params = this.#params.get(name);
    const hints = this.hintsOf(name);
    if (describe === undefined && params === undefined && hints === undefined) return undefined;
    return shapeEntry(entry, { describe, params, hints }, onUnknown);
  }

  /** Returns the shaped entry with the name that clients see; `undefined` if it stays as it is. See `originalOf` for `renamed`. */
  shapeWhole(
    name: string,
    entry: Uint8Array,
    renamed: ReadonlyMap<string, string> = this.#rename,
  ): Uint8Array | undefined {
    const shown = renamed.get(name);
    const shaped = this.shape(name, entry);
    if (shown === undefined) return shaped;
    const bytes = shaped ?? entry;
    const change = (member: string) => (member === 'name' ? toBytes(quoted(shown)) : undefined);
    return rewriteObject(bytes, { start: 0, end: bytes.length }, { change });
  }

  /** Returns the edits that put the values of the configuration into a call, or an error if the call cannot be made. */
  editsOf(original: string, request: RequestParams): readonly Edit[] | RpcError {
    return this.#params.get(original)?.editsOf(request) ?? NO_EDITS;
  }

  /**
   * Returns the new names of the renamed tools, by original name. Of two tools with the same new name, the second keeps
   * its own.
   */
  #namesIn(listed: ReadonlySet<string>, warnings: string[]): ReadonlyMap<string, string> {
    const names = new Map([...this.#rename].filter(([original]) => listed.has(original)));
    for (let collision = findCollision(listed, names); collision !== undefined; ) {
      const { original, owner, name } = collision;
      warnings.push(
        `the tool ${quoted(original)} keeps its name, because the tool ${quoted(owner)} has the name ${quoted(name)}`,
      );
      names.delete(original);
      collision = findCollision(listed, names);
    }
    for (const [original, name] of names) if (original === name) names.delete(original);
    return names;
  }

  #unknownTools(listed: readonly string[]): string[] {
    const named = [this.#rename, this.#describe, this.#params, this.#keywords].flatMap((each) => [...each.keys()]);
    const unknown = new Set(named);
    for (const name of listed) unknown.delete(name);
    for (const glob of [...Object.keys(this.#annotate), ...this.#pin]) {
      if (!listed.some((name) => matchesGlob(glob, name))) unknown.add(glob);
    }
    return [...unknown].map((name) => {
      const original = this.originalOf(name);
      const isNew = original !== name;
      const hint = isNew ? `; it is the new name of ${quoted(original)}: use the original name` : hintFor(name, listed);
      return `there is no tool ${quoted(name)}${hint}`;
    });
  }
}

/** Finds a tool that must not be renamed, and the tool that has its new name already. */
function findCollision(listed: ReadonlySet<string>, names: ReadonlyMap<string, string>) {
  const owners = new Map<string, string>();
  for (const original of listed) if (!names.has(original)) owners.set(original, original);
  for (const [original, name] of names) {
    const owner = owners.get(name);
    if (owner !== undefined) return { original, owner, name };
    owners.set(name, original);
  }
  return undefined;
}

type OnUnknown = (warnings: readonly string[]) => void;

/** The shapes of one tool. */
interface EntryShapes {
  readonly describe: Description | undefined;
  readonly params: ToolParams | undefined;
  readonly hints: ToolHints | undefined;
}

/** Returns the entry of a tool with another description, other parameters and other annotations. */
function shapeEntry(bytes: Uint8Array, { describe, params, hints }: EntryShapes, onUnknown: OnUnknown): Uint8Array {
  let hasSchema = false;
  // Revisions before 2025-06-18 know only the title among the annotations, and later ones show the title of the tool first.
  const title = hints?.title === undefined ? {} : { title: hints.title };
  const shaped = rewriteObject(
    bytes,
    { start: 0, end: bytes.length },
    {
      change: (name, value) => {
        if (name === 'description' && describe !== undefined) return describedAs(describe, bytes, value);
        if (name === 'title' && Object.hasOwn(title, name)) return toBytes(JSON.stringify(title.title));
        if (name === 'annotations' && hints !== undefined)
          return isObject(bytes, value) ? withMembers(bytes, value, hints) : toBytes(JSON.stringify(hints));
        if (name !== 'inputSchema' || params === undefined || !isObject(bytes, value)) return undefined;
        hasSchema = true;
        const { text, unknown } = params.shapeSchema(bytes, value);
        onUnknown(unknown);
        return text;
      },
      insert: (names) => [
        ...(describe === undefined || names.has('description') ? [] : [newDescription(describe)]),
        ...newMembers(names, { ...title, ...(hints && { annotations: hints }) }),
      ],
    },
  );
  if (params !== undefined && !hasSchema) onUnknown(params.unknownAmong([]));
  return shaped;
}

/** Returns the object with these members in place of its own of the same names. */
function withMembers(bytes: Uint8Array, object: Span, members: object): Uint8Array {
  const texts = new Map(Object.entries(members).map(([name, value]) => [name, toBytes(JSON.stringify(value))]));
  return rewriteObject(bytes, object, {
    change: (name) => texts.get(name),
    insert: (names) => newMembers(names, members),
  });
}

/** Returns the members whose names the object does not have yet. */
function newMembers(names: ReadonlySet<string>, members: object): Uint8Array[] {
  return Object.entries(members).flatMap(([name, value]) => {
    return names.has(name) ? [] : [memberOf(name, JSON.stringify(value))];
  });
}

function quoted(name: string): string {
  return JSON.stringify(name);
}

const NO_EDITS: readonly Edit[] = [];

/** The parameters of one tool. The values of the configuration are serialized once. */
class ToolParams {
  readonly #shapes: ParamShapes;
  /** Parameters that a client need not send. */
  readonly #optional: ReadonlySet<string>;
  readonly #hidden: ReadonlySet<string>;
  readonly #set: ReadonlyMap<string, Uint8Array>;
  /** Parameters that are hidden or set, as written and in folded case, because some servers ignore case. */
  readonly #guarded: ReadonlySet<string>;
  readonly #guardedFolded: ReadonlySet<string>;
  readonly #default: ReadonlyMap<string, Uint8Array>;

  constructor(shapes: ParamShapes) {
    this.#shapes = shapes;
    this.#hidden = new Set(shapes.hide ?? []);
    this.#set = toMembers(shapes.set);
    this.#default = toMembers(shapes.default);
    this.#optional = new Set([...this.#hidden, ...this.#set.keys(), ...this.#default.keys()]);
    this.#guarded = new Set([...this.#hidden, ...this.#set.keys()]);
    this.#guardedFolded = new Set([...this.#guarded].map(foldKey));
  }

  /** Returns the schema as clients see it, and a sentence about each parameter that the schema does not have. */
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

  /** Returns a sentence about each parameter of the configuration that is not among the known ones. */
  unknownAmong(known: readonly string[]): readonly string[] {
    const named = new Set([...this.#optional, ...Object.keys(this.#shapes.describe ?? {})]);
    const unknown = [...named].filter((name) => !known.includes(name));
    return unknown.map((name) => `has no parameter ${JSON.stringify(name)}${hintFor(name, known)}`);
  }

  editsOf({ bytes, params, tokens: { arguments: args } }: RequestParams): readonly Edit[] | RpcError {
    const lookalike = args && this.#lookalikeIn(bytes, args);
    if (lookalike !== undefined) {
      const message = `The configuration decides about a parameter that some servers take ${lookalike} for`;
      return new RpcError(RPC_CODES.invalidParams, message);
    }
    if (params === undefined || this.#set.size + this.#default.size === 0) return NO_EDITS;
    if (args === undefined) {
      // `params` also has the name of the tool, so a comma must follow an inserted member.
      const at = params.start + 1;
      const text = rewriteObject(NO_ARGUMENTS, WHOLE, this.#rewrite);
      return [{ span: { start: at, end: at }, text: join([ARGUMENTS, text, COMMA]) }];
    }
    if (isObject(bytes, args)) return [{ span: args, text: rewriteObject(bytes, args, this.#rewrite) }];
    // Some clients send null for no arguments.
    const isNull = bytes[args.start] === LETTER_N;
    if (isNull) return [{ span: args, text: rewriteObject(NO_ARGUMENTS, WHOLE, this.#rewrite) }];
    return new RpcError(RPC_CODES.invalidParams, 'tools/call needs arguments that are an object');
  }

  /** The first key that differs in case only from a parameter that is set or hidden. As JSON. */
  #lookalikeIn(bytes: Uint8Array, args: Span): string | undefined {
    if (this.#guarded.size === 0) return undefined;
    const names = membersOf(bytes, args).map(([name]) => name);
    const found = names.find((name) => !this.#guarded.has(name) && this.#guardedFolded.has(foldKey(name)));
    return found === undefined ? undefined : JSON.stringify(found);
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

/** `required` without these names: `REMOVED` if none is left, `undefined` if nothing changes. */
function withoutRequired(bytes: Uint8Array, value: Span, optional: ReadonlySet<string>) {
  const elements = elementsOf(bytes, value);
  const kept = elements.filter((element) => !optional.has(stringAt(bytes, element) ?? ''));
  if (kept.length === elements.length) return undefined;
  if (kept.length === 0) return REMOVED;
  return jsonArray(kept.map(({ start, end }) => bytes.subarray(start, end)));
}

function describedAs(description: Description, bytes: Uint8Array, old: Span): Uint8Array {
  const before = stringAt(bytes, old) ?? '';
  if (typeof description === 'string') return toBytes(JSON.stringify(description));
  return toBytes(JSON.stringify(before === '' ? description.append : `${before}\n\n${description.append}`));
}

function newDescription(description: Description): Uint8Array {
  return memberOf('description', JSON.stringify(typeof description === 'string' ? description : description.append));
}

function hintFor(name: string, candidates: readonly string[]): string {
  const meant = suggest(name, candidates.slice(0, MAX_COMPARED));
  return meant === undefined ? '' : `; ${didYouMean(meant)}`;
}

/** Limit of the names that are compared with an unknown one, because each comparison takes some microseconds. */
const MAX_COMPARED = 500;
