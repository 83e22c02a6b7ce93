import { isDeepStrictEqual } from 'node:util';
import {
  type Config,
  changeOf,
  type Origin,
  preparedRules,
  type ServerChange,
  type ServerConfig,
  variantOf,
} from '../config/resolve/config.js';
import { type SharingRule, sharingOf } from '../config/resolve/sharing.js';
import type { ConfiguredSettings, GatewaySettings } from '../gateway/gateway.js';
import { type BackendRules, toBackendRules } from '../gateway/registry/backend.js';
import type { SecretSource } from '../host/observe/redact.js';
import type { RemoteSpec } from '../spec/server-spec.js';
import type { Approvals } from '../state/approvals.js';
import type { ConfigFacts } from '../status/status-facts.js';
import type { Clock } from '../wire/timing/clock.js';

export interface ActiveConfigOptions {
  readonly clock: Clock;
  readonly config: Config;
  /** The report about the configuration file, if the file is rejected as a whole. */
  readonly fault: string | undefined;
  /** Whether HTTP is served. The limits of HTTP are read once, when the listener opens. */
  readonly servesHttp: boolean;
  readonly approvals: { readonly of: Approvals['of'] };
  readonly logger: { warn(facts: object, text: string): void };
}

/** The change of a server by another configuration, for clients of one origin. */
export interface ServerChanged {
  readonly key: string;
  readonly change: ServerChange | 'removed';
  /** The server in the other configuration. */
  readonly server: ServerConfig | undefined;
}

/** The active configuration, the state of its file, and each server with the variables and the folder of a client. */
export class ActiveConfig {
  readonly #options: ActiveConfigOptions;
  #config: Config;
  #fault: { readonly report: string; readonly since: number } | undefined;
  /** Whether any configuration was accepted yet. */
  #isSound: boolean;
  #reloads = 0;
  #views: NonNullable<GatewaySettings['views']>;
  /** Warnings already logged about this configuration. They are logged once, because all instances of a server have the same tools. */
  readonly #logged = new Set<string>();

  constructor(options: ActiveConfigOptions) {
    const { clock, config, fault } = options;
    this.#options = options;
    this.#config = config;
    this.#views = viewsOf(config);
    this.#isSound = fault === undefined;
    this.#fault = fault === undefined ? undefined : { report: fault, since: clock.now() };
  }

  get config(): Config {
    return this.#config;
  }

  /** A notice for every client, while no configuration was accepted. */
  get notice(): string | undefined {
    if (this.#isSound || this.#fault === undefined) return undefined;
    return `The configuration cannot be used:\n${this.#fault.report}`;
  }

  get facts(): ConfigFacts {
    return {
      file: this.#config.file,
      fault: this.#fault && { ...this.#fault, isPreviousInForce: this.#isSound },
      reloads: this.#reloads,
      needsRestart: this.needsRestart,
    };
  }

  /** The settings of the gateway. Unchanged views stay the same object, so that the lists of their clients stay, too. */
  get gatewaySettings(): ConfiguredSettings {
    const { startupWaitMs, mode, maxInstructionsBytes } = this.#config.gateway;
    return { startupWaitMs, mode, maxInstructionsBytes, views: this.#views, notice: this.notice };
  }

  /** Changed settings that take effect when Trunkline is restarted. */
  get needsRestart(): readonly string[] {
    const { config, servesHttp } = this.#options;
    const { http, cluster, sealKeyFile, secretFolder } = this.#config.gateway;
    const isOther = !isDeepStrictEqual(http, config.gateway.http);
    const isOtherCluster = !isDeepStrictEqual(cluster, config.gateway.cluster);
    return [
      ...(servesHttp && isOther ? ['gateway.http'] : []),
      ...(servesHttp && isOtherCluster ? ['gateway.cluster'] : []),
      ...(sealKeyFile === config.gateway.sealKeyFile ? [] : ['gateway.sealKeyFile']),
      ...(secretFolder === config.gateway.secretFolder ? [] : ['gateway.secretFolder']),
    ];
  }

  /** Accepts the file. `isOther` says whether its meaning has changed. */
  accept(config: Config, isOther: boolean): void {
    const { views, clientViews } = this.#config.gateway;
    const areSame = isDeepStrictEqual([views, clientViews], [config.gateway.views, config.gateway.clientViews]);
    if (!areSame) this.#views = viewsOf(config);
    this.#config = config;
    this.#logged.clear();
    this.#fault = undefined;
    this.#isSound = true;
    if (isOther) this.#reloads += 1;
  }

  /** Rejects the file. Returns false if the last report was the same. */
  refuse(report: string): boolean {
    if (this.#fault?.report === report) return false;
    this.#fault = { report, since: this.#fault?.since ?? this.#options.clock.now() };
    return true;
  }

  /** The server for clients of this origin, in the active configuration or in another one. */
  serverFor(key: string, origin: Origin | undefined, config = this.#config): ServerConfig | undefined {
    const own = config.servers.find((server) => server.key === key);
    const isOwn = own === undefined || origin === undefined || variantOf(own, origin) === variantOf(own);
    return isOwn ? own : config.serverFor(key, origin);
  }

  /** The change of a server by another configuration. `complete` adds packages that were installed in the meantime. */
  changeOf(
    { server: before, origin }: { readonly server: ServerConfig; readonly origin: Origin | undefined },
    config: Config,
    complete: (server: ServerConfig) => ServerConfig,
  ): ServerChanged {
    const { key } = before;
    const server = this.serverFor(key, origin, config);
    return { key, change: server === undefined ? 'removed' : changeOf(complete(before), complete(server)), server };
  }

  /** Returns the rule by which clients share a process of the server, with its reason. */
  sharingOf(server: ServerConfig): SharingRule {
    return sharingOf(server, this.#options.servesHttp);
  }

  /** The rules for the backends of a server. */
  rulesOf(server: ServerConfig): BackendRules {
    const { key, approval } = server;
    const limits = this.sharingOf(server).isSerial === true ? { ...server, concurrency: 1 } : server;
    const approvals = approval === 'off' ? undefined : this.#options.approvals.of(key, this.#config.file);
    const callRules = preparedRules(this.#config, server.rules);
    return { ...toBackendRules(server, limits, approvals, (warnings) => this.#warn(key, warnings)), callRules };
  }

  #warn(server: string, warnings: readonly string[]): void {
    for (const warning of warnings) {
      const logged = JSON.stringify([server, warning]);
      if (this.#logged.size >= MAX_LOGGED || this.#logged.has(logged)) continue;
      this.#logged.add(logged);
      this.#options.logger.warn({ server }, `\`tools\` of this server: ${warning}`);
    }
  }
}

/** Bounds the warnings of one configuration, because a server can make tools appear and disappear without end. */
const MAX_LOGGED = 1_000;

/** Returns the secrets of a server, in the form that the redactor takes. */
export function secretSourcesOf({ spec, references, secrets = {} }: ServerConfig): SecretSource[] {
  const fromFile = spec === undefined ? [] : [spec.kind === 'remote' ? secretSourceOf(spec) : spec];
  // The redactor treats every variable whose name contains `secret` as a secret.
  const named = Object.fromEntries(Object.entries(secrets).map(([name, value]) => [`secret ${name}`, value]));
  return [...fromFile, { env: { ...references, ...named }, args: [] }];
}

/**
 * Returns the secrets of a remote server: all headers, also without their scheme, because any of them may be a credential, and keys in its
 * query, its path and the URL of its proxy.
 */
function secretSourceOf({ url, headers, proxy = '', login, exchange }: RemoteSpec): SecretSource {
  const { searchParams, pathname } = new URL(url);
  const ofLogin = {
    'client secret': login?.clientSecret ?? exchange?.clientSecret ?? '',
    'private key': login?.privateKey ?? '',
    'client secret there': exchange?.authorizationServer?.clientSecret ?? '',
  };
  return {
    env: { ...Object.fromEntries(searchParams), ...secretsIn(headers), ...ofLogin, proxy },
    args: pathname.split('/'),
  };
}

/** The values of headers, by names under which each value counts as a secret. */
export function secretsIn(headers: RemoteSpec['headers']): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => [
      [`secret ${name}`, value],
      [`secret in ${name}`, value.replace(/^(?:Bearer|Basic|Token|DPoP) +/i, '')],
    ]),
  );
}

function viewsOf(config: Config): NonNullable<GatewaySettings['views']> {
  const { views, clientViews } = config.gateway;
  const prepared = views.map(({ rules, ...view }) => ({ ...view, callRules: preparedRules(config, rules, true) }));
  return { views: prepared, clients: clientViews };
}
