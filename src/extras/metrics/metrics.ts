import { type CallObservation, type CallObserver, type ObservedCall, serverOf } from '../../gateway/call-feed.js';
import type { EventSource } from '../../host/observe/events/events.js';
import { readText } from '../../wire/json/json-text.js';
import { RPC_CODES } from '../../wire/jsonrpc/message.js';
import { isErrorResponse } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { MODERN_CODES } from '../../wire/mcp/revisions.js';

/** Effects of a call: the values of the label `outcome`. */
const OUTCOMES = ['ok', 'tool_error', 'not_sent', 'unknown', 'failed'] as const;

/** Limit of the tools with a series of their own, over all servers. Calls of further tools count as `other`. */
export const MAX_TOOLS = 5_000;
/** Key of the server of Trunkline's own tools. No server of the configuration can have it. */
const OWN = 'trunkline';
/** Label of calls of names that are not listed, and of tools beyond the limit. */
const OTHER = 'other';

interface NamesTools {
  /** Returns the name of a tool as clients see it; `undefined` if no server has the tool. */
  exposedName(server: string | undefined, name: string): string | undefined;
}

/**
 * Counts calls and events since the start of the process. The counters belong to keys of the configuration and not to processes, so
 * they survive restarts and reloads.
 */
export class Metrics implements CallObserver, CallObservation {
  /** Calls by server, tool and outcome. The server is `trunkline` for its own tools, and '' for calls that name no tool of any server. */
  readonly calls = counters('server', 'tool', 'outcome');
  readonly durations = histograms('server', 'outcome');
  readonly waits = histograms('server');
  /** Durations of the requests of clients, and of the requests to servers. The names are those of the conventions of OpenTelemetry. */
  readonly clientRequests = histograms('mcp_method_name', 'error_type', 'mcp_protocol_version');
  readonly serverRequests = histograms('mcp_method_name', 'error_type', 'mcp_protocol_version', 'server');
  readonly restarts = counters('server', 'reason');
  readonly refused = counters('where', 'reason');
  readonly renewals = counters('server', 'result');
  /** Whether calls are counted by tool from now on. */
  hasTools = true;
  readonly #gateway: NamesTools;
  /** The tools with series of their own, by their servers. */
  readonly #tools = new Map<string, Set<string>>();
  #toolCount = 0;

  constructor(gateway: NamesTools, events: EventSource) {
    this.#gateway = gateway;
    const earlier = new Map<string, { readonly state: string; readonly restarts: number }>();
    events.subscribe('server.changed', ({ instance, snapshot: { state, restarts } }) => {
      const before = earlier.get(instance);
      const reason = RESTARTED_FROM[before?.state ?? ''];
      const server = serverOf(instance);
      if (before !== undefined && reason !== undefined && restarts > before.restarts)
        this.restarts.of(server, reason).value += 1;
      if (state === 'stopped') earlier.delete(instance);
      else earlier.set(instance, { state, restarts });
    });
    events.subscribe('http.refused', ({ status }) => this.#refuse('http', String(status)));
    events.subscribe('login.renewed', ({ server, result }) => {
      this.renewals.of(server, result).value += 1;
    });
  }

  begin(): CallObservation {
    return this;
  }

  attemptEnded({ method, revision, server }: ObservedCall, outcome: Outcome, ms: number): void {
    addTo(this.serverRequests.of(method, errorOf(outcome), revision, server), ms);
  }

  ended(call: ObservedCall): void {
    const { method, exchange, durationMs } = call;
    addTo(this.clientRequests.of(method, errorForClient(call), exchange.client.revision), durationMs);
    if (method === METHODS.callTool) this.#count(call, durationMs);
  }

  #count(call: ObservedCall, durationMs: number): void {
    const { server, name, effect, servedMs } = call;
    const isOwn =
      server === undefined && name !== undefined && this.#gateway.exposedName(undefined, name) !== undefined;
    const key = server ?? (isOwn ? OWN : '');
    const tool = this.hasTools ? this.#toolOf(key, name) : '';
    const counted = this.calls.of(key, tool, effect);
    // Creates the counters of all outcomes together, because a counter that appears with its first call has no rate for that call.
    if (counted.value === 0) for (const outcome of OUTCOMES) this.calls.of(key, tool, outcome);
    counted.value += 1;
    addTo(this.durations.of(key, effect), durationMs);
    if (server !== undefined) addTo(this.waits.of(server), Math.max(0, durationMs - servedMs));
    if (effect === 'not_sent') this.#refuse('call', refusalOf(call));
  }

  /** The label of a tool: its name if a list has or had it, and if there is room for its series. */
  #toolOf(server: string, name: string | undefined): string {
    if (server === '' || name === undefined) return OTHER;
    const known = this.#tools.get(server);
    if (known?.has(name)) return name;
    const isListed = this.#gateway.exposedName(server === OWN ? undefined : server, name) !== undefined;
    if (!isListed || this.#toolCount >= MAX_TOOLS) return OTHER;
    this.#tools.set(server, (known ?? new Set()).add(name));
    this.#toolCount += 1;
    return name;
  }

  #refuse(where: string, reason: string): void {
    this.refused.of(where, reason).value += 1;
  }
}

/** Reason of a restart, by the state before. A server that was stopped or idle is started and not restarted. */
const RESTARTED_FROM: Readonly<Record<string, string>> = {
  backoff: 'failed',
  parked: 'parked',
  offline: 'offline',
  blocked: 'blocked',
  stopping: 'requested',
};

/** Reason for which a call was sent to no server. Messages of errors are no labels, because they may contain names. */
function refusalOf({ outcome, reason }: ObservedCall): string {
  return outcome === 'failed' && reason !== undefined ? reason : outcome === 'cancelled' ? 'cancelled' : 'invalid';
}

/** Codes with a label of their own. The conventions name all other types of errors `_OTHER`. */
const CODES: ReadonlySet<number> = new Set([...Object.values(RPC_CODES), ...Object.values(MODERN_CODES), -32002]);
/** Codes of mistakes of the client. By the conventions, they are no errors on the side of the server. */
const MISTAKES: ReadonlySet<number> = new Set([
  ...[RPC_CODES.parseError, RPC_CODES.invalidRequest, RPC_CODES.methodNotFound, RPC_CODES.invalidParams, -32002],
]);

function codeLabel(code: number | undefined): string {
  return code !== undefined && CODES.has(code) ? String(code) : '_OTHER';
}

/** The label `error_type` of a request of a client; `undefined` without an error. */
function errorForClient({ outcome, reason, errorCode }: ObservedCall): string | undefined {
  if (outcome === 'ok') return undefined;
  if (outcome === 'rpc_error') return MISTAKES.has(errorCode ?? 0) ? undefined : codeLabel(errorCode);
  return outcome === 'failed' ? reason : outcome;
}

/** The label `error_type` of a request to a server; `undefined` without an error. */
function errorOf(outcome: Outcome): string | undefined {
  if (outcome.kind === 'failed') return outcome.reason;
  const { bytes, error, tokens } = outcome.response;
  if (error === undefined) return isErrorResponse(outcome.response) ? 'tool_error' : undefined;
  return codeLabel(tokens.errorCode && Number(readText(bytes, tokens.errorCode)));
}

/** Upper bounds of the buckets in seconds: those of the conventions of OpenTelemetry, and four for answers within 5 ms. */
const BUCKETS = [...[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]];

/** Durations, counted by bucket. */
export class Histogram {
  /** Each duration counts in one bucket. The last one is for those above all bounds. */
  readonly counts = new Float64Array(BUCKETS.length + 1);
  sum = 0;

  add(seconds: number): void {
    let at = 0;
    while (at < BUCKETS.length && seconds > (BUCKETS[at] ?? 0)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += seconds;
  }
}

/** Labels without a value are absent. */
export type Labels = Readonly<Record<string, string | undefined>>;

export interface Sample {
  readonly labels: Labels;
  readonly value: number | Histogram;
}

/** Values by the values of their labels, which are texts from a bounded set. A label without a value is absent. */
class Series<Value> {
  readonly #names: readonly string[];
  readonly #create: () => Value;
  readonly #root = new Level<Value>();
  readonly #all: SampleOf<Value>[] = [];

  constructor(names: readonly string[], create: () => Value) {
    this.#names = names;
    this.#create = create;
  }

  /**
   * The value behind one text for each label, in their order. Goes down one level of maps a label, because a call looks up
   * five values, and joining the texts to one key would take a tenth of the time of the whole call.
   */
  of(...texts: readonly (string | undefined)[]): SampleOf<Value> {
    let level = this.#root;
    for (const text of texts) level = level.at(text);
    level.sample ??= this.#add(texts);
    return level.sample;
  }

  get samples(): readonly SampleOf<Value>[] {
    return this.#all;
  }

  #add(texts: readonly (string | undefined)[]): SampleOf<Value> {
    const labels = Object.fromEntries(this.#names.map((name, at) => [name, texts[at]]));
    const sample = { labels, value: this.#create() };
    this.#all.push(sample);
    return sample;
  }
}

interface SampleOf<Value> {
  readonly labels: Labels;
  value: Value;
}

class Level<Value> {
  sample: SampleOf<Value> | undefined;
  readonly #next = new Map<string | undefined, Level<Value>>();

  at(text: string | undefined): Level<Value> {
    let next = this.#next.get(text);
    if (next === undefined) {
      next = new Level();
      this.#next.set(text, next);
    }
    return next;
  }
}

function counters(...names: readonly string[]): Series<number> {
  return new Series(names, () => 0);
}

function histograms(...names: readonly string[]): Series<Histogram> {
  return new Series(names, () => new Histogram());
}

function addTo({ value }: SampleOf<Histogram>, ms: number): void {
  value.add(ms / 1_000);
}

export type Samples = Readonly<Record<string, readonly Sample[]>>;

/** Writes metrics in the text format of Prometheus, version 0.0.4. `help` has their names and sentences about them, by type. */
export function expositionOf(
  help: Readonly<Record<string, Readonly<Record<string, string>>>>,
  samples: Samples,
): string {
  const lines = Object.entries(help).flatMap(([type, ofType]) =>
    Object.entries(ofType).flatMap(([name, sentence]) => {
      const own = samples[name]?.flatMap(({ labels, value }) =>
        typeof value === 'number' ? line(name, labels, value) : histogramLines(name, labels, value),
      );
      return own === undefined ? [] : [`# HELP ${name} ${sentence}`, `# TYPE ${name} ${type}`, ...own];
    }),
  );
  return `${lines.join('\n')}\n`;
}

function histogramLines(name: string, labels: Labels, { counts, sum }: Histogram): string[] {
  let total = 0;
  const buckets = [...BUCKETS, '+Inf'].map((bound, at) => {
    total += counts[at] ?? 0;
    return line(`${name}_bucket`, { ...labels, le: String(bound) }, total);
  });
  return [...buckets, line(`${name}_sum`, labels, sum), line(`${name}_count`, labels, total)];
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).flatMap(([label, text]) =>
    text === undefined ? [] : `${label}="${text.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`,
  );
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`;
}
