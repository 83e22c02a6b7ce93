import { isObject, membersOf, readText, stringAt, toBytes } from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { scanOwn } from '../../wire/mcp/envelope.js';
import { ownKeyOf } from '../../wire/mcp/exposed-name.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { RelayedRequest, RequestParams } from '../../wire/mcp/relayed-request.js';
import { AmbiguousArguments, valuesAtPath } from './argument-values.js';
import { type CallRule, RULED, type Ruled } from './rule.js';
import { Globs } from './spellings.js';

/** A request on its way to a server, as rules judge it. */
export interface RuledRequest {
  readonly request: RelayedRequest;
  /** Replacements in the request before the server gets it. */
  readonly edits: readonly Edit[];
  /** The key of the server. */
  readonly server: string;
  /** The server's own name of the tool or prompt, or the URI. `undefined` if the request names none. */
  readonly original: string | undefined;
  /** The new name of the tool, if the configuration renames it. */
  readonly shown?: string | undefined;
}

/** The decision of the rule that has matched a request. */
export class Decision {
  readonly verdict: CallRule['verdict'];
  readonly rule: CallRule;
  /** A clause about the arguments, if the call is denied because servers may read them in different ways. */
  readonly fault: string | undefined;
  readonly #ruled: RuledRequest;
  readonly #args: SentArguments;

  constructor(ruled: RuledRequest, args: SentArguments, rule: CallRule, fault?: string) {
    this.verdict = fault === undefined ? rule.verdict : 'deny';
    this.rule = rule;
    this.fault = fault;
    this.#ruled = ruled;
    this.#args = args;
  }

  /** The server's own name of the tool or prompt, or the URI. `undefined` if the request names none in a readable way. */
  get name(): string | undefined {
    return nameIn(this.#ruled);
  }

  /** Everything that the server would get besides the name and `_meta`, as JSON: the arguments if there is nothing else. */
  get arguments(): string {
    const others = this.#args.members.filter(([key]) => key !== 'name' && key !== 'uri');
    const [only] = others;
    if (others.length === 1 && only?.[0] === 'arguments') return only[1];
    return others.length === 0 ? '' : `{${others.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
  }

  /** The server, the method and all parameters without `_meta` as one text. A yes is for requests with the same text. */
  get identity(): string {
    const { server, request } = this.#ruled;
    return JSON.stringify([server, request.method, this.name, this.#args.members]);
  }

  /** The answer of a request that is not sent. `undefined` if the rule allows it. */
  get denial(): Denial | undefined {
    if (this.verdict === 'allow') return undefined;
    if (this.verdict === 'ask') return this.notAllowed('and nobody was asked');
    const { fault } = this;
    const detail =
      fault === undefined
        ? `was not asked, because a rule of the configuration denies this${this.#say}`
        : `was not asked, because a rule of the configuration decides about the arguments, and ${fault}.`;
    return this.#denialOf(
      `${detail} The same request will be denied again; another tool, or other arguments, may be allowed.`,
    );
  }

  /** The answer of a request that needs the yes of a person, and has none. `because` is a clause; `more` are sentences. */
  notAllowed(because: string, more = ''): Denial {
    const detail = `was not asked, because a rule of the configuration asks a person first, ${because}${this.#say}`;
    return this.#denialOf(more === '' ? detail : `${detail} ${more}`);
  }

  get #say(): string {
    const { say } = this.rule;
    return say === undefined ? '.' : `: ${say}${/[.!?]$/.test(say) ? '' : '.'}`;
  }

  #denialOf(detail: string): Denial {
    return { reason: 'denied', detail, rule: this.rule.at };
  }
}

/** The reason for which a request is not sent. */
export interface Denial {
  readonly reason: 'denied';
  /** A sentence that follows `Server "NAME"`. */
  readonly detail: string;
  readonly rule: string;
}

/**
 * The rules of one server or of one view, prepared for calls. The first rule that matches decides; without one, the call is
 * allowed.
 *
 * A value has several spellings, and a list several values. A rule that denies or asks matches if any of them does, and one that
 * allows only if all do, so that no spelling gets around a rule.
 */
export class RequestRules {
  readonly #rules: readonly PreparedRule[];

  /** The names in rules of a view are such as `KEY__TOOL`. */
  constructor(rules: readonly CallRule[], { areOfView = false } = {}) {
    this.#rules = rules.map((rule) => new PreparedRule(rule, areOfView));
  }

  decide(ruled: RuledRequest): Decision | undefined {
    const kind = kindOf(ruled.request);
    if (kind === undefined) return undefined;
    const own = this.#rules.filter((rule) => rule.concerns(kind, ruled));
    // Most calls are decided by a name alone, and their arguments are not read.
    const args = new SentArguments(ruled);
    for (const prepared of own) {
      const { rule } = prepared;
      try {
        if (prepared.matchesArguments(args)) return new Decision(ruled, args, rule);
      } catch (error) {
        if (!(error instanceof AmbiguousArguments)) throw error;
        return new Decision(ruled, args, rule, error.message);
      }
    }
    return undefined;
  }
}

/** Methods with a URI whose answers have no content of the resource. */
const SUBSCRIPTIONS: ReadonlySet<string> = new Set([METHODS.subscribe, METHODS.unsubscribe]);

/** The list of a rule that the request concerns. Extensions of MCP read resources with methods of their own. */
function kindOf({ method, tokens }: RelayedRequest): Ruled | undefined {
  if (method === METHODS.callTool) return 'tools';
  if (method === METHODS.getPrompt) return 'prompts';
  return tokens.uri === undefined || SUBSCRIPTIONS.has(method) ? undefined : 'uris';
}

function nameIn({ request, original }: RuledRequest): string | undefined {
  const { bytes, tokens } = request;
  return original ?? stringAt(bytes, kindOf(request) === 'uris' ? tokens.uri : tokens.name);
}

/** Longest name or URI that is compared, in characters. */
const MAX_NAME = 65_536;

class PreparedRule {
  readonly rule: CallRule;
  readonly #areOfView: boolean;
  readonly #kind: Ruled | undefined;
  readonly #names: Globs;
  readonly #args: readonly PreparedArgument[];

  constructor(rule: CallRule, areOfView: boolean) {
    this.rule = rule;
    this.#areOfView = areOfView;
    this.#kind = RULED.find((kind) => rule[kind] !== undefined);
    this.#names = new Globs((this.#kind && rule[this.#kind]) ?? []);
    this.#args = Object.entries(rule.args ?? {}).map(([path, values]) => ({
      path: path.replaceAll('[]', '').split('.'),
      takesMissing: values.includes(null),
      globs: new Globs(values.flatMap((value) => (value === null ? [] : [String(value)]))),
    }));
  }

  get #inAll(): boolean {
    return this.rule.verdict === 'allow';
  }

  /** Whether the rule is about this tool, prompt or resource. */
  concerns(kind: Ruled, ruled: RuledRequest): boolean {
    if (kind !== this.#kind) return false;
    const { server, shown } = ruled;
    const name = nameIn(ruled);
    // A server could take a list or a number for the name that a rule denies.
    // To compare a very long URI takes seconds, in which all clients wait.
    if (name === undefined || name.length > MAX_NAME) return !this.#inAll;
    const isName = kind !== 'uris';
    const names = [name, ...(isName && this.#areOfView && shown !== undefined ? [shown] : [])];
    const isPrefixed = isName && this.#areOfView;
    return names.some((each) =>
      this.#names.matches(isPrefixed ? `${ownKeyOf(server)}__${each}` : each, { inAll: this.#inAll, isName }),
    );
  }

  matchesArguments(args: SentArguments): boolean {
    const inAll = this.#inAll;
    return this.#args.every(({ path, takesMissing, globs }) => {
      const isMatch = (value: string | undefined) =>
        value === undefined ? takesMissing : globs.matches(value, { inAll });
      const values = args.valuesAt(path);
      return inAll ? values.every(isMatch) : values.some(isMatch);
    });
  }
}

interface PreparedArgument {
  readonly path: readonly string[];
  readonly takesMissing: boolean;
  readonly globs: Globs;
}

/** Id of a request that is read only. */
const ID = { text: toBytes('0'), part: { start: 0, end: 1 } };

/** The arguments as the server will get them, with the values that the configuration sets. Read when a rule asks for them. */
class SentArguments {
  readonly #ruled: RuledRequest;
  #sent: RequestParams | undefined;

  constructor(ruled: RuledRequest) {
    this.#ruled = ruled;
  }

  valuesAt(path: readonly string[]): readonly (string | undefined)[] {
    const { bytes, tokens } = this.#all;
    return valuesAtPath(bytes, tokens.arguments, path);
  }

  /** The members of `params`, without `_meta`, as JSON texts. */
  get members(): readonly (readonly [key: string, value: string])[] {
    const { bytes, params } = this.#all;
    if (params === undefined || !isObject(bytes, params)) return [];
    return membersOf(bytes, params).flatMap(([key, span]) => (key === '_meta' ? [] : [[key, readText(bytes, span)]]));
  }

  get #all(): RequestParams {
    this.#sent ??= this.#read();
    return this.#sent;
  }

  #read(): RequestParams {
    const { request, edits } = this.#ruled;
    if (edits.length === 0) return request;
    const sent = scanOwn(splice(request.message(ID, edits)));
    if (sent.kind !== 'request') throw new AmbiguousArguments('they cannot be read with the values of `tools.params`');
    return sent;
  }
}
