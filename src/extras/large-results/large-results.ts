import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import type { Backend } from '../../gateway/registry/backend.js';
import { createOwnTool, type OwnTool, type ResultCutter, textResult } from '../../gateway/routing/own-tool.js';
import type { ResultLimits } from '../../spec/server-rules.js';
import { type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { isRecord } from '../../wire/json/json-value.js';
import type { Edit } from '../../wire/json/splice.js';
import { join, RpcError } from '../../wire/jsonrpc/message.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { knowsOldContentOnly, resourceNotFoundCode } from '../../wire/mcp/revisions.js';
import type { Hmac } from '../../wire/mcp/task-id.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { cutResult, type KeptContent } from './cut-result.js';
import { findLines, readRange } from './read-result.js';

const MIB = 1024 * 1024;
/** Limits of all results that are kept. Beyond them, the owner with the most bytes loses its least recently used result. */
const LIMITS = { bytes: 128 * MIB, count: 4_096 };
/** Time for which a result is kept after its last use, in milliseconds. */
const KEPT_MS = 15 * 60_000;

const URI = 'trunkline://result/';

/** Path of the tool result within the result of each method. `tasks/get` of the extension has it within the task. */
const RESULTS: ReadonlyMap<string, readonly string[]> = new Map([
  [METHODS.callTool, []],
  [METHODS.taskResult, []],
  [METHODS.getTask, ['result']],
]);

interface KeptResult extends KeptContent {
  readonly client: DownstreamClient;
  /** Limit of one answer of `trunkline__read_result`, in bytes. */
  readonly maxBytes: number;
  cancel: Cancel;
}

/** A view of the configuration, whose limits replace those of the servers. */
interface LimitingView {
  readonly results?: ResultLimits | undefined;
}

/**
 * The client that can read results. If its requests may come from unrelated programs (`Exchange.conversation`), the owner is
 * its principal instead.
 */
type Owner = DownstreamClient | string;

/** The results of one owner by URI, the last used one last. */
type Holding = Map<string, KeptResult>;

/**
 * Cuts tool results that are larger than the configuration allows, and keeps the whole of each in memory for a while. The owner
 * of the result, and nobody else, can read the whole as a resource, and parts of it with `trunkline__read_result`.
 */
export class LargeResults implements ResultCutter {
  readonly tool: OwnTool;
  readonly #clock: Clock;
  readonly #seal: Hmac;
  readonly #limits: typeof LIMITS;
  readonly #holdings = new Map<Owner, Holding>();
  #bytes = 0;
  #count = 0;
  #serial = 0;

  /** `seal` makes URIs that cannot be guessed. */
  constructor(clock: Clock, seal: Hmac, limits = LIMITS) {
    this.#clock = clock;
    this.#seal = seal;
    this.#limits = limits;
    this.tool = {
      ...createOwnTool(READ_RESULT, (args, _, exchange) => this.#callTool(args, exchange)),
      isOffered: (backends, named) => [...backends].some((backend) => limitsOf(backend, named).maxBytes > 0),
    };
  }

  /** Number and bytes of the kept results; `undefined` if there are none. */
  get kept(): { readonly count: number; readonly bytes: number } | undefined {
    return this.#count === 0 ? undefined : { count: this.#count, bytes: this.#bytes };
  }

  editor(exchange: Exchange, backend: Backend, tool: string | undefined, view: LimitingView | undefined) {
    const { request, client } = exchange;
    const { maxBytes, maxBinaryBytes } = limitsOf(backend, view);
    const path = RESULTS.get(request.method);
    if ((maxBytes === 0 && maxBinaryBytes === 0) || path === undefined) return undefined;
    const { bytes, tokens } = request;
    const source = stringAt(bytes, tokens.name) ?? 'a task';
    const hasLinks = !knowsOldContentOnly(client.revision);
    return (response: ResponseEnvelope, others: readonly Edit[]): readonly Edit[] => {
      const [result] = response.result === undefined ? [] : valuesAt(response.bytes, response.result, path);
      // A client that has left can read nothing.
      if (result === undefined || exchange.isSettled) return others;
      const cut = cutResult(response.bytes, result, {
        maxBytes: maxBytes || Number.POSITIVE_INFINITY,
        maxBinaryBytes: maxBinaryBytes || Number.POSITIVE_INFINITY,
        isStructureFixed: () => tool === undefined || mayHaveOutputSchema(backend, tool),
        source,
        hasLinks,
        keep: (content) => this.#keep(exchange, { ...content, maxBytes }),
      });
      // Content that is left out needs no translation to another era.
      const isLeftOut = ({ start }: Span) => cut.some(({ span }) => span.start === start);
      return [...others.filter(({ span }) => !isLeftOut(span)), ...cut];
    };
  }

  serve(exchange: Exchange): boolean {
    const { request, client } = exchange;
    const uri = stringAt(request.bytes, request.tokens.uri);
    if (uri?.startsWith(URI) !== true) return false;
    const kept = this.#use(uri, exchange);
    if (kept === undefined) exchange.fail(new RpcError(resourceNotFoundCode(client.revision), GONE, { uri }));
    else {
      const { inside, isBinary, mimeType } = kept;
      const about = JSON.stringify({ uri, mimeType }).slice(0, -1);
      const head = `{"contents":[${about},"${isBinary ? 'blob' : 'text'}":"`;
      exchange.succeed(join([toBytes(head), inside, CONTENTS_END]));
    }
    return true;
  }

  left(client: DownstreamClient): void {
    for (const owner of [client, client.principal])
      for (const [uri, kept] of this.#holdings.get(owner) ?? []) if (kept.client === client) this.#forget(owner, uri);
  }

  close(): void {
    for (const [owner, holding] of this.#holdings) for (const uri of holding.keys()) this.#forget(owner, uri);
  }

  /** Returns the URI of the result, or `undefined` if the result is too large to be kept. */
  #keep(exchange: Exchange, result: KeptContent & { readonly maxBytes: number }): string | undefined {
    const { bytes, count } = this.#limits;
    if (result.inside.length > bytes) return undefined;
    while (this.#bytes + result.inside.length > bytes || this.#count >= count) this.#forgetOne();
    const owner = ownerOf(exchange);
    const holding = this.#holdings.get(owner) ?? new Map<string, KeptResult>();
    this.#holdings.set(owner, holding);
    this.#serial += 1;
    const uri = `${URI}${this.#serial}-${this.#seal(`result ${this.#serial}`)}`;
    holding.set(uri, { ...result, client: exchange.client, cancel: this.#endLater(owner, uri) });
    this.#bytes += result.inside.length;
    this.#count += 1;
    return uri;
  }

  /** Returns a result of this client, and begins again the time for which it is kept. */
  #use(uri: string, exchange: Exchange): KeptResult | undefined {
    const owner = ownerOf(exchange);
    const holding = this.#holdings.get(owner);
    const kept = holding?.get(uri);
    if (holding === undefined || kept === undefined) return undefined;
    kept.cancel();
    kept.cancel = this.#endLater(owner, uri);
    holding.delete(uri);
    holding.set(uri, kept);
    return kept;
  }

  #endLater(owner: Owner, uri: string): Cancel {
    return this.#clock.schedule(KEPT_MS, () => this.#forget(owner, uri));
  }

  /** Forgets the least recently used result of the owner with the most bytes. */
  #forgetOne(): void {
    const sizes = [...this.#holdings].map(([owner, holding]) => ({ owner, holding, bytes: bytesOf(holding) }));
    const largest = sizes.reduce((one, other) => (other.bytes > one.bytes ? other : one));
    const [oldest = ''] = largest.holding.keys();
    this.#forget(largest.owner, oldest);
  }

  #forget(owner: Owner, uri: string): void {
    const holding = this.#holdings.get(owner);
    const kept = holding?.get(uri);
    if (holding === undefined || kept === undefined) return;
    kept.cancel();
    holding.delete(uri);
    if (holding.size === 0) this.#holdings.delete(owner);
    this.#bytes -= kept.inside.length;
    this.#count -= 1;
  }

  async #callTool(args: unknown, exchange: Exchange): Promise<ReturnType<typeof textResult>> {
    const read = readArguments(args);
    if (typeof read === 'string') return textResult(read, true);
    const { uri, offset, length, find } = read;
    const kept = this.#use(uri, exchange);
    if (kept === undefined) return textResult(GONE, true);
    if (kept.isBinary) return textResult(BINARY, true);
    if (offset >= kept.length) return textResult(`The offset is too large: the result has ${kept.length} bytes.`, true);
    const limit = Math.max(MIN_READ_BYTES, kept.maxBytes);
    const turn = () => new Promise<void>((resolve) => void this.#clock.schedule(0, resolve));
    const text = { inside: kept.inside, turn };
    if (find === undefined) {
      const { start, end, text: range } = await readRange(text, offset, Math.min(limit, length ?? limit));
      const rest = end < kept.length ? `To read on, use offset ${end}.` : 'This is the end.';
      return textResult([`Bytes ${start} to ${end} of ${kept.length}. ${rest}`, range]);
    }
    const { lines, next } = await findLines(text, offset, limit, find);
    if (lines.length === 0) return textResult('No line has this text.');
    const rest = next === undefined ? '' : ` More lines have the text; to see them, use offset ${next}.`;
    const shown = lines.map(({ at, text: line }) => `${at}: ${line}`).join('\n');
    return textResult([`The number before each line is its offset.${rest}`, shown]);
  }
}

function bytesOf(holding: Holding): number {
  return [...holding.values()].reduce((bytes, { inside }) => bytes + inside.length, 0);
}

/** Limits up to which a client of this view gets results whole; 0 means no limit. */
function limitsOf({ rules }: Backend, view: LimitingView | undefined): Required<ResultLimits> {
  return { maxBytes: 0, maxBinaryBytes: 0, ...rules.results, ...view?.results };
}

function ownerOf({ client, conversation }: Exchange): Owner {
  return conversation === client ? client : client.principal;
}

/** Whether the tool has an output schema, or is not listed. */
function mayHaveOutputSchema({ lists }: Backend, tool: string): boolean {
  const entry = lists.tools.entries.find(({ original }) => original === tool)?.entry;
  return entry === undefined || valuesAt(entry, { start: 0, end: entry.length }, ['outputSchema']).length > 0;
}

const CONTENTS_END = toBytes('"}]}');

const GONE =
  'Trunkline has no such result for this client. Results are kept for 15 minutes after their last use, until the session of the client ends, and while there is room. Call the tool that gave the result again.';

const BINARY = 'This result is binary. To get it, read the resource with this URI.';

/** Least limit of one answer, so that a text can be read even if `results.max` is small. */
const MIN_READ_BYTES = 1_000;
/** Limit of the text to find, in characters. */
const MAX_FIND_LENGTH = 100;

/** Kept short, because clients send list entries to the model in each conversation. */
const READ_RESULT = {
  name: 'trunkline__read_result',
  title: 'Read a long result',
  description: 'Reads a result of which Trunkline left out a part: some bytes of it, or the lines that have a text.',
  inputSchema: {
    type: 'object' as const,
    properties: {
      uri: { type: 'string', description: 'URI of the result' },
      offset: { type: 'integer', minimum: 0, description: 'First byte to read; default 0' },
      length: { type: 'integer', minimum: 4, description: 'Number of bytes' },
      find: { type: 'string', maxLength: MAX_FIND_LENGTH, description: 'Shows only the lines that have this text' },
    },
    required: ['uri'],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

interface ReadArguments {
  readonly uri: string;
  readonly offset: number;
  readonly length: number | undefined;
  readonly find: string | undefined;
}

/** Returns the arguments, or a sentence about the first mistake in them. */
function readArguments(args: unknown): ReadArguments | string {
  const { uri, offset = 0, length, find } = isRecord(args) ? args : {};
  if (typeof uri !== 'string') return 'The argument "uri" is missing: use the URI in the result.';
  if (!isCount(offset)) return 'The argument "offset" must be a whole number that is not negative.';
  if (length !== undefined && (!isCount(length) || length < 4))
    return 'The argument "length" must be a whole number from 4 on.';
  if (find !== undefined && (typeof find !== 'string' || find === '' || find.length > MAX_FIND_LENGTH))
    return `The argument "find" must be a text of 1 to ${MAX_FIND_LENGTH} characters.`;
  return { uri, offset, length, find };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
