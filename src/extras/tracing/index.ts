import type { Config } from '../../config/resolve/config.js';
import { publicPartOf } from '../../host/observe/redact.js';
import type { TracingFacts } from '../../status/status-facts.js';
import { type CreateFeature, type Feature, type FeatureHost, Switch } from '../feature.js';
import type { ServerAddress } from './call-spans.js';
import type { SpanExport } from './span-export.js';
import { describeSampler, type TraceSettings, traceSettings } from './trace-settings.js';

/** Sends traces of calls if the environment or the configuration asks for them. Otherwise the code that sends is not loaded. */
export const tracing: CreateFeature = (host) => new Tracing(host);

class Tracing implements Feature {
  readonly #host: FeatureHost;
  readonly #export = new Switch(() => this.#begin());
  #settings: TraceSettings | undefined;
  #offBecause: string | undefined;
  #spans: SpanExport | undefined;
  #addresses: ReadonlyMap<string, ServerAddress> = new Map();

  constructor(host: FeatureHost) {
    this.#host = host;
  }

  get facts(): { readonly tracing?: TracingFacts } {
    if (this.#offBecause !== undefined) return { tracing: { offBecause: this.#offBecause } };
    if (this.#settings === undefined || this.#spans === undefined) return {};
    const { endpoint, sampler, from } = this.#settings;
    const sent = { endpoint: publicPartOf(endpoint), sampler: describeSampler(sampler), from };
    return { tracing: { ...sent, ...this.#spans.facts } };
  }

  async apply({ gateway, servers }: Config): Promise<void> {
    const { environment, logger } = this.#host;
    this.#addresses = new Map(
      servers.flatMap(({ key, spec }) => (spec?.kind === 'remote' ? [[key, addressIn(spec.url)] as const] : [])),
    );
    const decided = traceSettings(environment, gateway.tracing);
    const because = typeof decided === 'string' ? decided : undefined;
    if (because !== undefined && because !== this.#offBecause) logger.info({ because }, 'traces are off');
    this.#offBecause = because;
    this.#settings = typeof decided === 'string' ? undefined : decided;
    await this.#export.set(JSON.stringify(this.#settings));
  }

  close(): Promise<void> {
    return this.#export.close();
  }

  async #begin(): Promise<(() => Promise<void>) | undefined> {
    const { platform, calls, environment: env, secrets, logger } = this.#host;
    const settings = this.#settings;
    if (settings === undefined) return undefined;
    const { endpoint, headers, from, sampler } = settings;
    const hidden = publicPartOf(endpoint);
    try {
      secrets.know([{ env: credentialsIn(endpoint, headers, env), args: [] }]);
      const { SpanExport } = await import('./span-export.js');
      const spans = new SpanExport({
        settings,
        env,
        scan: platform.scan,
        redact: secrets.redact,
        now: () => platform.clock.now(),
        addressOf: (server) => this.#addresses.get(server),
        onFailing: (fault) =>
          logger.warn(
            { endpoint: hidden, fault },
            'the collector takes no spans; calls are served as usual without traces',
          ),
        onRecovered: (dropped) => logger.info({ endpoint: hidden, dropped }, 'the collector takes spans again'),
      });
      const stop = calls.observe(spans.observer);
      this.#spans = spans;
      logger.info({ endpoint: hidden, from, sampler: describeSampler(sampler) }, 'tracing calls');
      return async () => {
        this.#spans = undefined;
        stop();
        await spans.close();
      };
    } catch (err) {
      this.#offBecause = 'the code or the settings for traces cannot be used';
      logger.warn({ err }, 'traces cannot be sent; calls are served as usual');
      return undefined;
    }
  }
}

function addressIn(url: string) {
  const { hostname, port, protocol } = new URL(url);
  return { address: hostname, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

/** Returns all possible credentials of the collector, under names that the redaction takes for names of secrets. */
function credentialsIn(endpoint: string, headers: TraceSettings['headers'], env: FeatureHost['environment']) {
  const { password, search } = new URL(endpoint);
  const written = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'].flatMap((name) =>
    (env[name] ?? '').split(',').map((pair) => decodeURIComponent(pair.slice(pair.indexOf('=') + 1).trim())),
  );
  const values = [...Object.values(headers ?? {}), ...written, password, ...new URLSearchParams(search).values()];
  const bare = values.flatMap((value) => [value, value.replace(/^\w+ /, '')]).filter((value) => value !== '');
  return Object.fromEntries(bare.map((value, at) => [`secret of the collector ${at}`, value]));
}
