import { ROOT_CONTEXT, SamplingDecision, type SpanContext, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  RandomIdGenerator,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import { errorCode, errorMessage } from '../../host/errors/error-text.js';
import { VERSION } from '../../version.js';
import { type CallSpan, CallSpans, type SpanSources } from './call-spans.js';
import { COLLECTOR_VARIABLES, type TraceSettings } from './trace-settings.js';

/*
 * The part of the traces that needs the OpenTelemetry SDK, which collects spans and sends them. It is loaded only if spans are
 * sent. The spans are made here, because a span of the SDK costs several times as much as a call.
 */

/** Limit of the spans that have ended and wait for the collector. */
const MAX_WAITING = 2048;
/** Spans of one request to the collector. The event loop waits while they are written as JSON. */
const BATCH = 256;
/** Limit of the spans a second, so that traces leave the processor to the calls. Up to `MAX_WAITING` spans can come at once. */
const SPANS_PER_SECOND = 3000;
/** Longest delay of a span, and longest time of a request to the collector, unless variables of OpenTelemetry say otherwise. */
const DELAY_MS = 1000;
const TIMEOUT_MS = 3000;
/** Longest time that the last spans may take at the end. */
const FLUSH_WITHIN_MS = 500;
/** Drift of the wall clock against the monotonic clock, in milliseconds, beyond which the machine must have slept or its time was set. */
const MAX_DRIFT_MS = 1000;

export interface SpanExportOptions extends SpanSources {
  readonly settings: TraceSettings;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called when the collector begins to fail, and when it takes spans again. `dropped` counts all spans that were not sent so far. */
  readonly onFailing: (fault: string) => void;
  readonly onRecovered: (dropped: number) => void;
}

/** Makes spans of calls, and sends them to a collector in batches. */
export class SpanExport {
  readonly observer: CallSpans;
  readonly #options: SpanExportOptions;
  readonly #processor: BatchSpanProcessor;
  readonly #resource: Resource;
  #waiting = 0;
  #exported = 0;
  #dropped = 0;
  #failing: { readonly since: number; readonly fault: string } | undefined;
  /** Spans for which there is room in this moment. */
  #room = MAX_WAITING;
  #roomAt: number;
  #epoch: number;

  constructor(options: SpanExportOptions) {
    const { settings, env, now } = options;
    this.#options = options;
    this.#roomAt = now();
    this.#epoch = Date.now() - now();
    this.#resource = resourceFromAttributes({ 'service.name': 'trunkline', 'service.version': VERSION }).merge(
      detectResources({ detectors: [envDetector] }),
    );
    const exporter = createExporter(settings, env);
    const sampler = new TraceIdRatioBasedSampler(settings.sampler.ratio);
    this.#processor = new BatchSpanProcessor(this.#counting(exporter), {
      maxQueueSize: MAX_WAITING,
      maxExportBatchSize: BATCH,
      ...(env.OTEL_BSP_SCHEDULE_DELAY === undefined && { scheduledDelayMillis: DELAY_MS }),
    });
    this.observer = new CallSpans({
      ...options,
      ids: new RandomIdGenerator(),
      random: Math.random,
      isSampledId: (id) => sampler.shouldSample(ROOT_CONTEXT, id).decision === SamplingDecision.RECORD_AND_SAMPLED,
      admit: () => this.#admit(),
      dropped: () => {
        this.#dropped += 1;
      },
      ended: (span) => this.#ended(span),
      epoch: () => this.#epochNow(),
    });
  }

  get facts() {
    return { exported: this.#exported, dropped: this.#dropped, failing: this.#failing };
  }

  /** Sends the spans that wait, for a short time, unless the collector fails anyway. */
  async close(): Promise<void> {
    if (this.#failing !== undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_WITHIN_MS);
    });
    await Promise.race([this.#processor.shutdown().catch(() => {}), late]);
    clearTimeout(timer);
  }

  /** Each call takes the room for two spans. Further attempts are rare. */
  #admit(): boolean {
    const now = this.#options.now();
    this.#room = Math.min(MAX_WAITING, this.#room + ((now - this.#roomAt) * SPANS_PER_SECOND) / 1000);
    this.#roomAt = now;
    if (this.#room < 2 || this.#waiting > MAX_WAITING - 2) return false;
    this.#room -= 2;
    return true;
  }

  #ended(span: CallSpan): void {
    if (this.#waiting >= MAX_WAITING) {
      this.#dropped += 1;
      return;
    }
    this.#waiting += 1;
    this.#processor.onEnd(new SentSpan(span, this.#resource));
  }

  #counting(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#waiting -= spans.length;
          if (result.code === 0) this.#sent(spans.length);
          else this.#failed(spans.length, result.error);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
  }

  #sent(count: number): void {
    this.#exported += count;
    if (this.#failing === undefined) return;
    this.#failing = undefined;
    this.#options.onRecovered(this.#dropped);
  }

  #failed(count: number, error: unknown): void {
    this.#dropped += count;
    if (this.#failing !== undefined) return;
    const { now, onFailing } = this.#options;
    const fault = faultOf(error);
    this.#failing = { since: now(), fault };
    onFailing(fault);
  }

  /** Follows the wall clock, which a sleep of the machine or a correction changes. */
  #epochNow(): number {
    const epoch = Date.now() - this.#options.now();
    if (Math.abs(epoch - this.#epoch) > MAX_DRIFT_MS) this.#epoch = epoch;
    return this.#epoch;
  }
}

/** Creates the exporter, which reads the `OTEL_EXPORTER_OTLP_*` variables, such as those of certificates. */
function createExporter({ endpoint, headers }: TraceSettings, env: SpanExportOptions['env']): SpanExporter {
  const isTimeout = (name: string) => env[`OTEL_EXPORTER_OTLP_${name}`] !== undefined;
  const limits = isTimeout('TIMEOUT') || isTimeout('TRACES_TIMEOUT') ? {} : { timeoutMillis: TIMEOUT_MS };
  if (headers === undefined) return new OTLPTraceExporter({ url: endpoint, ...limits });
  // The credentials of another collector must not go to the configured one.
  const taken = COLLECTOR_VARIABLES.map((name) => [name, process.env[name]] as const);
  for (const name of COLLECTOR_VARIABLES) delete process.env[name];
  try {
    return new OTLPTraceExporter({ url: endpoint, headers: { ...headers }, ...limits });
  } finally {
    for (const [name, value] of taken) if (value !== undefined) process.env[name] = value;
  }
}

/** Says why the collector took no spans, without its answer and without the address. */
function faultOf(error: unknown): string {
  const status = error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined;
  if (status !== undefined) return `HTTP status ${status}`;
  return errorCode(error) ?? errorMessage(error).slice(0, 200);
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT };
const NO_ERROR = { code: SpanStatusCode.UNSET };
const NOTHING: [] = [];

/** A span in the form in which the SDK sends it. It is a class, because an object literal with a closure costs more. */
class SentSpan implements ReadableSpan {
  readonly name;
  readonly kind;
  readonly parentSpanContext;
  readonly startTime;
  readonly endTime;
  readonly duration;
  readonly status;
  readonly attributes;
  readonly links;
  readonly resource;
  readonly ended = true;
  readonly events = NOTHING;
  readonly instrumentationScope = SCOPE;
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;
  readonly #context;

  constructor({ name, kind, context, parent, link, startMs, endMs, attributes, error }: CallSpan, resource: Resource) {
    this.#context = context;
    this.name = name;
    this.kind = KINDS[kind];
    this.parentSpanContext = parent as SpanContext;
    this.startTime = timeOf(startMs);
    this.endTime = timeOf(endMs);
    this.duration = timeOf(endMs - startMs);
    this.status = error === undefined ? NO_ERROR : { code: SpanStatusCode.ERROR, message: error };
    this.attributes = attributes;
    this.links = link === undefined ? NOTHING : [{ context: link }];
    this.resource = resource;
  }

  spanContext(): SpanContext {
    return this.#context;
  }
}

const SCOPE = { name: 'trunkline', version: VERSION };

function timeOf(ms: number): [seconds: number, nanoseconds: number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
