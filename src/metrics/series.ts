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

/** Durations of requests. No request allocates anything, and one with the labels of the request before looks nothing up. */
export class Durations {
  readonly all: Entry[] = [];
  #latest: Labels = {};
  #histogram = new Histogram();
  readonly #byMethod: Nested<Nested<Nested<Nested<Entry>>>> = new Map();

  add(ms: number, method: string, error: string | undefined, revision: string | undefined, server?: string): void {
    const { mcp_method_name, error_type, mcp_protocol_version, server: latest } = this.#latest;
    const isSame = mcp_method_name === method && latest === server && mcp_protocol_version === revision;
    if (!isSame || error_type !== error) this.#find(method, error, revision, server);
    this.#histogram.add(ms / 1_000);
  }

  #find(method: string, error: string | undefined, revision: string | undefined, server: string | undefined): void {
    const byServer = grown(this.#byMethod, method, newMap<Nested<Nested<Entry>>>);
    const byRevision = grown(byServer, server, newMap<Nested<Entry>>);
    const byError = grown(byRevision, revision, newMap<Entry>);
    const { labels, value } = grown(byError, error, () => {
      // The names of the conventions of OpenTelemetry.
      const labels = { mcp_method_name: method, error_type: error, mcp_protocol_version: revision, server };
      const added = { labels, value: new Histogram() };
      this.all.push(added);
      return added;
    });
    this.#latest = labels;
    this.#histogram = value;
  }
}

interface Entry {
  readonly labels: Labels;
  readonly value: Histogram;
}

type Nested<Value> = Map<string | undefined, Value>;

function newMap<Value>(): Nested<Value> {
  return new Map();
}

function grown<Value>(map: Nested<Value>, key: string | undefined, create: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
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
