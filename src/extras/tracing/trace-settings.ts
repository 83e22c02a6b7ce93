import type { TracingConfig } from '../../config/file/check-file.js';

export interface TraceSettings extends SpanSettings {
  /** URL to which batches of spans are posted. */
  readonly endpoint: string;
  /** Headers of the configuration. Absent if the endpoint and the headers of the environment count. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Where the endpoint comes from: `gateway.tracing`, or the name of a variable. */
  readonly from: string;
}

export interface SpanSettings {
  readonly sampler: Sampler;
  /** Whether a request without a `traceparent` gets one. */
  readonly insertsContext: boolean;
  /** Whether spans have the arguments and results of calls. */
  readonly hasContent: boolean;
}

/** `ratio` is the share of traced calls. With `followsParent`, the client decides on calls that belong to its traces. */
export interface Sampler {
  readonly ratio: number;
  readonly followsParent: boolean;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Variables whose endpoint and headers do not count if the configuration names an endpoint. */
export const COLLECTOR_VARIABLES = ['', '_TRACES'].flatMap((signal) =>
  ['ENDPOINT', 'HEADERS'].map((name) => `OTEL_EXPORTER_OTLP${signal}_${name}`),
);

const STANDARD_ENDPOINT = 'http://localhost:4318';

/**
 * Decides on traces from the environment and from `gateway.tracing`. Returns `undefined` if neither asks for traces, and a
 * sentence without a period if they are asked for and off.
 */
export function traceSettings(env: Variables, config: TracingConfig | undefined): TraceSettings | string | undefined {
  const read = (name: string) => env[name]?.trim() || undefined;
  const isConfigured = config !== undefined && config !== 'off';
  const {
    endpoint,
    headers,
    sample,
    insert = false,
    content = false,
  } = isConfigured && !('fault' in config) ? config : {};
  const [variable] = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].filter(read);
  const exporter = read('OTEL_TRACES_EXPORTER');
  if (!isConfigured && variable === undefined && exporter === undefined) return undefined;
  if (config === 'off') return 'gateway.tracing is off';
  if (read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return 'OTEL_SDK_DISABLED is true';
  if (exporter === 'none') return 'OTEL_TRACES_EXPORTER is none';
  if (isConfigured && 'fault' in config) return config.fault;
  const from = endpoint !== undefined ? 'gateway.tracing' : (variable ?? 'OTEL_TRACES_EXPORTER');
  if (endpoint === undefined) {
    const protocol = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL');
    if (exporter !== undefined && exporter !== 'otlp') return `OTEL_TRACES_EXPORTER is not otlp`;
    if (protocol === 'grpc') return 'OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and Trunkline sends OTLP over HTTP only';
    if (variable === undefined && exporter === undefined) return 'no endpoint is set';
  }
  const written = endpoint ?? (variable && read(variable)) ?? STANDARD_ENDPOINT;
  const url = urlOf(written, variable?.includes('_TRACES_') === true && endpoint === undefined);
  if (url === undefined) return `the endpoint in ${from} is no URL that begins with http: or https:`;
  const sampler = sample === undefined ? samplerOf(read) : { ratio: sample, followsParent: true };
  if (sampler === undefined) return 'OTEL_TRACES_SAMPLER or OTEL_TRACES_SAMPLER_ARG has an unknown value';
  return {
    endpoint: url,
    ...(endpoint !== undefined && { headers: headers ?? {} }),
    sampler,
    insertsContext: insert,
    hasContent: content,
    from,
  };
}

/**
 * Appends the path of traces, `/v1/traces`, to the URL of the configuration or of the variable for all signals, unless the URL
 * ends with it. The URL of the variable for traces is complete.
 */
function urlOf(text: string, isComplete: boolean): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  if (!isComplete && !url.pathname.endsWith('/v1/traces'))
    url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return url.href;
}

/**
 * The sampler that the variables name; `undefined` for an unknown value. By default, all calls are traced, except those
 * that belong to a trace which their client does not sample.
 */
function samplerOf(read: (name: string) => string | undefined): Sampler | undefined {
  const name = read('OTEL_TRACES_SAMPLER') ?? 'parentbased_always_on';
  const ratio = Number(read('OTEL_TRACES_SAMPLER_ARG') ?? 1);
  const ratios: Readonly<Record<string, number>> = { always_on: 1, always_off: 0, traceidratio: ratio };
  const found = ratios[name.replace(/^parentbased_/, '')];
  if (found === undefined || !(found >= 0 && found <= 1)) return undefined;
  return { ratio: found, followsParent: name.startsWith('parentbased_') };
}

/** Text of a sampler in the status: a name of `OTEL_TRACES_SAMPLER`, and its argument. */
export function describeSampler({ ratio, followsParent }: Sampler): string {
  const name = ratio === 1 ? 'always_on' : ratio === 0 ? 'always_off' : `traceidratio ${ratio}`;
  return followsParent ? `parentbased_${name}` : name;
}
