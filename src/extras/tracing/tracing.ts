import type { Config } from '../../config/resolve/config.js';
import type { CallFeed } from '../../gateway/call-feed.js';
import { type KnownSecrets, publicPartOf } from '../../host/observe/redact.js';
import type { TracingFacts } from '../../status/status-facts.js';
import type { Address } from './call-spans.js';
import type { SpanExport, SpanExportOptions } from './span-export.js';
import { describeSampler, type TraceSettings, traceSettings } from './trace-settings.js';

export interface TracingOptions extends Pick<SpanExportOptions, 'env' | 'now' | 'scan'> {
  readonly calls: Pick<CallFeed, 'observe'>;
  readonly secrets: Pick<KnownSecrets, 'know' | 'redact'>;
  readonly logger: { info(facts: object, text: string): void; warn(facts: object, text: string): void };
}

/** The traces that the environment or the configuration asks for. Without them, their code is not loaded. */
export class Tracing {
  readonly #options: TracingOptions;
  #running: { readonly key: string; readonly export: SpanExport; readonly stop: () => void } | undefined;
  #settings: TraceSettings | undefined;
  #offBecause: string | undefined;
  #addresses: ReadonlyMap<string, Address> = new Map();
  /** The latest change. Each change waits for the change before it. */
  #changes: Promise<void> = Promise.resolve();

  constructor(options: TracingOptions) {
    this.#options = options;
  }

  /** For the status. `undefined` if nothing asks for traces. */
  get facts(): TracingFacts | undefined {
    if (this.#offBecause !== undefined) return { offBecause: this.#offBecause };
    if (this.#settings === undefined || this.#running === undefined) return undefined;
    const { endpoint, sampler, from } = this.#settings;
    return {
      endpoint: publicPartOf(endpoint),
      sampler: describeSampler(sampler),
      from,
      ...this.#running.export.facts,
    };
  }

  /** Follows the configuration. Never rejects, because calls are served without traces too. */
  apply(config: Config): Promise<void> {
    this.#changes = this.#changes.then(() => this.#apply(config));
    return this.#changes;
  }

  async close(): Promise<void> {
    await this.#changes;
    await this.#end();
  }

  async #apply({ gateway, servers }: Config): Promise<void> {
    const { env, secrets, calls, logger } = this.#options;
    this.#addresses = new Map(
      servers.flatMap(({ key, spec }) => (spec?.kind === 'remote' ? [[key, addressIn(spec.url)] as const] : [])),
    );
    const decided = traceSettings(env, gateway.tracing);
    const settings = typeof decided === 'string' ? undefined : decided;
    const key = JSON.stringify(settings);
    if (settings !== undefined && this.#running?.key === key) return;
    await this.#end();
    this.#settings = settings;
    const isNews = typeof decided === 'string' && decided !== this.#offBecause;
    this.#offBecause = typeof decided === 'string' ? decided : undefined;
    if (isNews) logger.info({ because: decided }, 'traces are off');
    if (settings === undefined) return;
    const { endpoint, headers, from, sampler } = settings;
    const hidden = publicPartOf(endpoint);
    try {
      secrets.know([{ env: credentialsIn(endpoint, headers, env), args: [] }]);
      const { SpanExport } = await import('./span-export.js');
      const spans = new SpanExport({
        ...this.#options,
        settings,
        redact: secrets.redact,
        addressOf: (server) => this.#addresses.get(server),
        onFailing: (fault) =>
          logger.warn(
            { endpoint: hidden, fault },
            'the collector takes no spans; calls are served as usual without traces',
          ),
        onRecovered: (dropped) => logger.info({ endpoint: hidden, dropped }, 'the collector takes spans again'),
      });
      this.#running = { key, export: spans, stop: calls.observe(spans.observer) };
      logger.info({ endpoint: hidden, from, sampler: describeSampler(sampler) }, 'tracing calls');
    } catch (err) {
      this.#offBecause = 'their code or their settings cannot be used';
      logger.warn({ err }, 'traces cannot be sent; calls are served as usual');
    }
  }

  async #end(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop();
    await running?.export.close();
  }
}

function addressIn(url: string) {
  const { hostname, port, protocol } = new URL(url);
  return { address: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/** Everything that can be a credential of the collector, by names that the redaction takes for those of secrets. */
function credentialsIn(endpoint: string, headers: TraceSettings['headers'], env: TracingOptions['env']) {
  const { password, search } = new URL(endpoint);
  const written = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'].flatMap((name) =>
    (env[name] ?? '').split(',').map((pair) => decodeURIComponent(pair.slice(pair.indexOf('=') + 1).trim())),
  );
  const values = [...Object.values(headers ?? {}), ...written, password, ...new URLSearchParams(search).values()];
  const bare = values.flatMap((value) => [value, value.replace(/^\w+ /, '')]).filter((value) => value !== '');
  return Object.fromEntries(bare.map((value, at) => [`secret of the collector ${at}`, value]));
}
