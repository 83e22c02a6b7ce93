/** Upper bounds of the buckets in seconds: those of the conventions of OpenTelemetry, and four for answers within 5 ms. */
export const BUCKETS = [
  ...[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
];

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

export class Counter {
  value = 0;
}

export type Labels = Readonly<Record<string, string | undefined>>;

/** Writes series in the text format of Prometheus, version 0.0.4. */
export class Exposition {
  #lines: string[] = [];

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

  histogram(name: string, labels: Labels, { counts, sum }: Histogram): void {
    const text = labelText(labels);
    const before = text === '' ? '' : `${text},`;
    let total = 0;
    for (const [at, count] of counts.entries()) {
      total += count;
      this.#lines.push(`${name}_bucket{${before}le="${BUCKETS[at] ?? '+Inf'}"} ${total}`);
    }
    this.#lines.push(`${name}_sum{${text}} ${sum}`, `${name}_count{${text}} ${total}`);
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
