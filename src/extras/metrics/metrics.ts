import { type CallObservation, type CallObserver, type ObservedCall, serverOf } from '../../gateway/call-feed.js';
import type { Gateway } from '../../gateway/gateway.js';
import type { EventSource } from '../../host/observe/events/events.js';
import { readText } from '../../wire/json/json-text.js';
import { RPC_CODES } from '../../wire/jsonrpc/message.js';
import { isErrorResponse } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { MODERN_CODES } from '../../wire/mcp/revisions.js';

/** Effects of a call: the values of the label `outcome`. */
export const OUTCOMES = ['ok', 'tool_error', 'not_sent', 'unknown', 'failed'] as const;

/** Limit of the tools with a series of their own, over all servers. Calls of further tools count as `other`. */
export const MAX_TOOLS = 5_000;
/** Key of the server of Trunkline's own tools. No server of the configuration can have it. */
const OWN = 'trunkline';
/** Label of calls of names that are not listed, and of tools beyond the limit. */
const OTHER = 'other';

/** The calls to one server. */
export interface ServerCalls {
  /** Numbers of calls by tool, each in the order of `OUTCOMES`. Without the label, the only tool is ''. */
  readonly tools: Map<string, Counts>;
  /** In the order of `OUTCOMES`. */
  readonly durations: (Histogram | undefined)[];
  readonly waits: Histogram;
}

/**
 * Counts the calls, and what only events tell, since the start of the process. The counters belong to keys of the
 * configuration and not to processes, so they survive restarts and reloads.
 */
export class Metrics implements CallObserver, CallObservation {
  /** By key of the configuration: `trunkline` for its own tools, '' for calls that name no tool of any server. */
  readonly servers = new Map<string, ServerCalls>();
  /** Durations of the requests of clients, and of the requests to servers. */
  readonly clientRequests = new Durations();
  readonly serverRequests = new Durations();
  readonly restarts = new Series<Counter>();
  readonly refused = new Series<Counter>();
  readonly renewals = new Series<Counter>();
  /** Whether calls are counted by tool from now on. */
  hasTools = true;
  readonly #gateway: Pick<Gateway, 'exposedName'>;
  #toolCount = 0;

  constructor(gateway: Pick<Gateway, 'exposedName'>, events: EventSource) {
    this.#gateway = gateway;
    const earlier = new Map<string, { readonly state: string; readonly restarts: number }>();
    events.subscribe('server.changed', ({ instance, snapshot: { state, restarts } }) => {
      const before = earlier.get(instance);
      const reason = RESTARTED_FROM[before?.state ?? ''];
      const server = serverOf(instance);
      if (before !== undefined && reason !== undefined && restarts > before.restarts)
        increment(this.restarts, { server, reason });
      if (state === 'stopped') earlier.delete(instance);
      else earlier.set(instance, { state, restarts });
    });
    events.subscribe('http.refused', ({ status }) => this.#refuse('http', String(status)));
    events.subscribe('login.renewed', ({ server, result }) => increment(this.renewals, { server, result }));
  }

  begin(): CallObservation {
    return this;
  }

  attemptEnded({ method, revision, server }: ObservedCall, outcome: Outcome, ms: number): void {
    this.serverRequests.add(ms, method, errorOf(outcome), revision, server);
  }

  ended(call: ObservedCall): void {
    const { method, exchange, durationMs } = call;
    this.clientRequests.add(durationMs, method, errorForClient(call), exchange.client.revision);
    if (method === METHODS.callTool) this.#count(call, durationMs);
  }

  #count(call: ObservedCall, durationMs: number): void {
    const { server, name, effect, servedMs } = call;
    const isOwn =
      server === undefined && name !== undefined && this.#gateway.exposedName(undefined, name) !== undefined;
    const key = server ?? (isOwn ? OWN : '');
    const calls = this.#callsOf(key);
    const at = OUTCOMES.indexOf(effect);
    this.#countsOf(key, calls, name).add(at);
    const durations = calls.durations[at] ?? new Histogram();
    calls.durations[at] = durations;
    durations.add(durationMs / 1_000);
    if (server !== undefined) calls.waits.add(Math.max(0, durationMs - servedMs) / 1_000);
    if (effect === 'not_sent') this.#refuse('call', refusalOf(call));
  }

  #callsOf(key: string): ServerCalls {
    let calls = this.servers.get(key);
    if (calls === undefined) {
      calls = { tools: new Map(), durations: [], waits: new Histogram() };
      this.servers.set(key, calls);
    }
    return calls;
  }

  #countsOf(key: string, { tools }: ServerCalls, name = OTHER): Counts {
    const known = tools.get(this.hasTools ? name : '');
    if (known !== undefined) return known;
    const exposed = this.hasTools ? this.#exposedNameOf(key, name) : '';
    const hasRoom = exposed === '' || this.#toolCount < MAX_TOOLS;
    const label = (hasRoom ? exposed : undefined) ?? OTHER;
    let counts = tools.get(label);
    if (counts === undefined) {
      counts = new Counts(OUTCOMES);
      tools.set(label, counts);
      if (label !== '' && label !== OTHER) this.#toolCount += 1;
    }
    return counts;
  }

  #exposedNameOf(key: string, name: string): string | undefined {
    return key === '' ? undefined : this.#gateway.exposedName(key === OWN ? undefined : key, name);
  }

  #refuse(where: string, reason: string): void {
    increment(this.refused, { where, reason });
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

function newCounter(): Counter {
  return new Counter();
}

function increment(series: Series<Counter>, labels: Labels): void {
  series.of(labels, newCounter).value += 1;
}

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

const BOUNDS = [...BUCKETS.map(String), '+Inf'];

/** Durations, counted by bucket. */
export class Histogram {
  /** Each duration counts in one bucket. The last one is for those above all bounds. */
  readonly counts = new Float64Array(BUCKETS.length + 1);
  sum = 0;
  count = 0;
  #written = 0;
  #text = '';

  add(seconds: number): void {
    let at = 0;
    while (at < BUCKETS.length && seconds > (BUCKETS[at] ?? 0)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += seconds;
    this.count += 1;
  }

  /** Returns the lines of this histogram. Makes them only if it has changed, because most histograms of a scrape have not. */
  linesOf(name: string, labels: Labels): string {
    if (this.#written === this.count) return this.#text;
    const text = labelText(labels);
    const head = `${name}_bucket{${text}${text === '' ? '' : ','}le="`;
    let total = 0;
    const lines = BOUNDS.map((bound, at) => {
      total += this.counts[at] ?? 0;
      return `${head}${bound}"} ${total}`;
    });
    this.#text = [...lines, `${name}_sum{${text}} ${this.sum}`, `${name}_count{${text}} ${total}`].join('\n');
    this.#written = this.count;
    return this.#text;
  }
}

/** Numbers of the values of one label. */
export class Counts {
  readonly #values: readonly string[];
  readonly #counts: Float64Array;
  #total = 0;
  #written = -1;
  #text = '';

  constructor(values: readonly string[]) {
    this.#values = values;
    this.#counts = new Float64Array(values.length);
  }

  add(at: number): void {
    this.#counts[at] = this.at(at) + 1;
    this.#total += 1;
  }

  at(at: number): number {
    return this.#counts[at] ?? 0;
  }

  /** Returns a line for each value. Makes the lines only if a number has changed. */
  linesOf(name: string, labels: Labels, label: string): string {
    if (this.#written === this.#total) return this.#text;
    const head = `${name}{${labelText(labels)},${label}="`;
    this.#text = this.#values.map((value, at) => `${head}${value}"} ${this.at(at)}`).join('\n');
    this.#written = this.#total;
    return this.#text;
  }
}

/** Values by their labels. Labels without a value are absent. */
export class Series<Value> {
  readonly all = new Map<string, { readonly labels: Labels; readonly value: Value }>();

  /** Returns the value with these labels, the values of which are texts from a bounded set. */
  of(labels: Labels, create: () => Value): Value {
    const key = Object.values(labels).join('\n');
    const known = this.all.get(key);
    if (known !== undefined) return known.value;
    const value = create();
    this.all.set(key, { labels, value });
    return value;
  }
}

/** Durations of requests. A request with the labels of the request before looks nothing up. */
class Durations extends Series<Histogram> {
  #latest: Labels = {};
  #histogram = new Histogram();

  add(ms: number, method: string, error: string | undefined, revision: string | undefined, server?: string): void {
    const { mcp_method_name, error_type, mcp_protocol_version, server: latest } = this.#latest;
    const isSame = mcp_method_name === method && latest === server && mcp_protocol_version === revision;
    if (!isSame || error_type !== error) {
      // The names of the conventions of OpenTelemetry.
      this.#latest = { mcp_method_name: method, error_type: error, mcp_protocol_version: revision, server };
      this.#histogram = this.of(this.#latest, newHistogram);
    }
    this.#histogram.add(ms / 1_000);
  }
}

function newHistogram(): Histogram {
  return new Histogram();
}

export class Counter {
  value = 0;
}

export type Labels = Readonly<Record<string, string | undefined>>;

/** Writes series in the text format of Prometheus, version 0.0.4. */
export class Exposition {
  readonly #lines: string[] = [];

  get text(): string {
    return `${this.#lines.join('\n')}\n`;
  }

  /** Begins a metric. The samples that follow belong to it. */
  begin(name: string, type: 'counter' | 'gauge' | 'histogram' | 'summary', help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  sample(name: string, labels: Labels, value: number): void {
    const text = labelText(labels);
    this.#lines.push(`${name}${text === '' ? '' : `{${text}}`} ${value}`);
  }

  /** Adds lines that exist already. */
  add(lines: string): void {
    this.#lines.push(lines);
  }
}

/** Returns the labels as they stand between the braces. */
function labelText(labels: Labels): string {
  let text = '';
  for (const name in labels) {
    const value = labels[name];
    if (value !== undefined)
      text += `${text === '' ? '' : ','}${name}="${/["\\\n]/.test(value) ? escaped(value) : value}"`;
  }
  return text;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
