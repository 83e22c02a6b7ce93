import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/resolve/config.js';
import { REASONS } from '../../downstream/failure.js';
import type { CallTrail, DownstreamClient } from '../../downstream/port.js';
import type { RequestGate } from '../../gateway/routing/request-gate.js';
import { internalError, withErrorBoundaryAsync } from '../../host/errors/internal-error.js';
import type { InterceptorFacts } from '../../status/status-facts.js';
import type { CreateFeature, Feature, FeatureHost } from '../feature.js';
import type { Guard, GuardOptions } from './guard.js';
import type { Finding, Subject } from './inspection.js';
import type { InterceptorGate } from './interceptor-gate.js';

/** Lets servers of the configuration look at the messages of others. The code is loaded when a configuration names such a server. */
export const interceptors: CreateFeature = (host) => new Interceptors(host);

/** The guards of each server and of each view, by their keys. */
interface Plan {
  readonly servers: ReadonlyMap<string, readonly string[]>;
  readonly views: ReadonlyMap<string, readonly string[]>;
}

class Interceptors implements Feature {
  readonly #host: FeatureHost;
  readonly #sessions = new WeakMap<DownstreamClient, string>();
  #plan: Plan = { servers: new Map(), views: new Map() };
  #config: Config | undefined;
  /** The gate as the gateway sees it, from the first configuration on that names an interceptor. */
  #outer: RequestGate | undefined;
  #loading: Promise<InterceptorGate> | undefined;
  #inner: InterceptorGate | undefined;
  #makeGuard: ((options: GuardOptions) => Guard) | undefined;
  readonly #guards = new Map<string, Guard>();

  constructor(host: FeatureHost) {
    this.#host = host;
  }

  get gate(): RequestGate | undefined {
    return this.#outer;
  }

  get facts(): { readonly interceptors?: readonly InterceptorFacts[] } {
    const { servers, views } = this.#plan;
    const keys = new Set([...servers.values(), ...views.values()].flat());
    if (keys.size === 0) return {};
    const namedBy = (lists: Plan['servers'], key: string) =>
      [...lists].flatMap(([name, all]) => (all.includes(key) ? name : []));
    const interceptors = [...keys].map((key) => ({
      server: key,
      guards: namedBy(servers, key),
      views: namedBy(views, key),
      failsOpen: this.#optionsOf(key).failsOpen,
      fault: this.#faultOf(key),
    }));
    return { interceptors };
  }

  async apply(config: Config): Promise<void> {
    this.#config = config;
    const listed = ({ interceptors = [] }: { readonly interceptors?: readonly string[] }) => interceptors;
    this.#plan = {
      servers: new Map(config.servers.map((server) => [server.key, listed(server)])),
      views: new Map(config.gateway.views.map((view) => [view.name, listed(view)])),
    };
    this.#guards.clear();
    if ([...this.#plan.servers.values(), ...this.#plan.views.values()].every((keys) => keys.length === 0)) return;
    this.#outer ??= this.#newGate();
    await this.#load().catch((err: unknown) =>
      this.#host.logger.error(
        { err },
        'interceptors cannot be loaded, so what they look at is refused; restart Trunkline',
      ),
    );
  }

  close(): void {}

  #newGate(): RequestGate {
    return {
      concerns: ({ target, view }) => this.#keysOf(target.backend.key, view?.name).length > 0,
      hold: (request, pass) => {
        const { exchange } = request;
        if (this.#inner !== undefined) this.#inner.hold(request, pass);
        else
          void withErrorBoundaryAsync(
            this.#load().then((inner) => {
              if (!exchange.isSettled) inner.hold(request, pass);
            }),
            undefined,
            () => exchange.fail(internalError()),
          );
      },
      asking: (input, ask) => {
        if (this.#keysOf(input.server, input.view?.name).length === 0) return ask;
        if (this.#inner !== undefined) return this.#inner.asking(input, ask);
        return (question) => {
          question.fail(internalError());
          return () => {};
        };
      },
    };
  }

  #load(): Promise<InterceptorGate> {
    this.#loading ??= this.#begin().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    return this.#loading;
  }

  async #begin(): Promise<InterceptorGate> {
    const [{ Guard: GuardClass }, { Inspector }, { InterceptorGate: Gate }] = await Promise.all([
      import('./guard.js'),
      import('./inspection.js'),
      import('./interceptor-gate.js'),
    ]);
    const { secrets, gateway, calls } = this.#host;
    this.#makeGuard = (options) => new GuardClass(options);
    const inspector = new Inspector({
      redact: secrets.redact,
      userOf: (client) => gateway.connected.get(client)?.facts.user,
      sessionOf: (client) => {
        const known = this.#sessions.get(client) ?? randomUUID();
        this.#sessions.set(client, known);
        return known;
      },
    });
    this.#inner = new Gate({
      inspector,
      onInternalError: calls.onInternalError,
      subjectOf: ({ server, client, view }, exchange): Subject => ({
        server,
        client,
        guards: this.#keysOf(server, view?.name).map((key) => this.#guardOf(key)),
        note: (finding) => this.#note(server, finding, exchange),
      }),
    });
    return this.#inner;
  }

  /** Those of the view come first. */
  #keysOf(server: string, view: string | undefined): readonly string[] {
    const { servers, views } = this.#plan;
    const ofView = view === undefined ? undefined : views.get(view);
    const ofServer = servers.get(server) ?? [];
    return ofView === undefined || ofView.length === 0 ? ofServer : [...new Set([...ofView, ...ofServer])];
  }

  #guardOf(key: string): Guard {
    const known = this.#guards.get(key) ?? this.#makeGuard?.(this.#optionsOf(key));
    if (known === undefined) throw new Error('The code of the interceptors is not loaded');
    this.#guards.set(key, known);
    return known;
  }

  #optionsOf(key: string): GuardOptions {
    const { platform, gateway } = this.#host;
    const server = this.#config?.servers.find((each) => each.key === key);
    return {
      key,
      clock: platform.clock,
      timeoutMs: server?.interceptorTimeoutMs ?? 0,
      failsOpen: server?.interceptorFailOpen === true,
      backend: () => gateway.pool.of(key)[0],
    };
  }

  /** The reason for which a guard cannot look at anything now, as a clause. */
  #faultOf(key: string): string | undefined {
    const { dispatcher } = this.#host.gateway.pool.of(key)[0] ?? {};
    const reason = dispatcher?.availability.failReason ?? dispatcher?.refusal;
    return reason === undefined ? this.#guards.get(key)?.fault : `it ${REASONS[reason].sentence.replace(/\.$/, '')}`;
  }

  #note(server: string, finding: Finding, exchange: { readonly trail?: CallTrail | undefined } | undefined): void {
    this.#host.logger.warn({ server, ...finding }, 'an interceptor has found something, and the message has passed');
    exchange?.trail?.noted?.(`${finding.interceptor}: ${finding.finding}`);
  }
}
