import { dirname } from 'node:path';
import type { DownstreamClient } from '../downstream/port.js';
import type { Gateway } from '../gateway/gateway.js';
import type { OwnTool, VisibleBackends } from '../gateway/routing/own-tool.js';
import type { Redact } from '../host/observe/redact.js';
import { factsForUser, type ServerFacts, type ServiceFacts, type StatusFacts } from '../status/status-facts.js';
import { createRestartTool, createStatusTool } from '../status/status-tools.js';
import { VERSION } from '../version.js';
import type { SharedLimit } from '../wire/io/shared-limit.js';
import { quotedPath } from '../wire/json/printable.js';
import type { ActiveConfig } from './active-config.js';
import { LOCAL_USER, type Platform } from './platform.js';
import type { ServerUsage } from './server-usage.js';
import type { SupervisedBackends } from './supervised-backends.js';

interface StatusSource {
  readonly platform: Platform;
  readonly redact: Redact;
  readonly notices: ReadonlyMap<string, string>;
  readonly active: ActiveConfig;
  readonly instances: SupervisedBackends;
  readonly usage: ServerUsage;
  readonly features: { readonly tools: readonly OwnTool[]; readonly facts: Partial<StatusFacts> };
  readonly waiting: SharedLimit;
  readonly eventLoop: StatusFacts['eventLoop'];
  readonly service: () => ServiceFacts | undefined;
  /** Whether clients belong to different users, who must not learn of each other. */
  readonly hasUsers: boolean;
  /** Called only after the gateway is made. */
  readonly gateway: () => Gateway;
}

/** The facts about a gateway process for its status, and Trunkline's own tools, of which one shows them. */
export class GatewayStatus {
  readonly #source: StatusSource;
  readonly #startedAt: number;
  #tools: { readonly madeFor: readonly unknown[]; readonly all: readonly OwnTool[] } | undefined;

  constructor(source: StatusSource) {
    this.#source = source;
    this.#startedAt = source.platform.clock.now();
  }

  /** The tools for the active configuration. The array changes only with the tools, because clients are told of each new array. */
  get tools(): readonly OwnTool[] {
    const { active, instances, features, usage } = this.#source;
    const { notice } = active;
    const { restartTool } = active.config.gateway;
    const madeFor = [notice, restartTool, ...features.tools];
    if (this.#tools !== undefined && isShallowEqual(madeFor, this.#tools.madeFor)) return this.#tools.all;
    const readUsage = (pid: number) => usage.refresh(pid);
    const all = [
      createStatusTool((visible, client) => this.#factsFor(visible, client), { notice, readUsage }),
      ...(restartTool ? [createRestartTool(runnable(instances), (id) => instances.restart(id))] : []),
      ...features.tools,
    ];
    this.#tools = { madeFor, all };
    return all;
  }

  get facts(): StatusFacts {
    const { active, gateway } = this.#source;
    const { catalogs, pool, connected } = gateway();
    const backends = new Map(pool.oldest.map((backend) => [backend.key, backend]));
    const { servers, layers } = active.config;
    // A server of a project waits for a client there, whatever its sharing.
    const withoutInstance = servers.flatMap(({ key }) =>
      backends.has(key) || !pool.isFor(key, undefined) ? [] : [key],
    );
    const folders = [...connected.values()].map(({ facts }) => facts.origin?.folder);
    const remarks = new Set(folders.flatMap((folder) => layers?.remarkOn(folder) ?? []));
    const facts = this.#allFacts({ backends, catalogs }, remarks);
    return { ...facts, servers: facts.servers.map((server) => this.#inItsLists(server)), withoutInstance };
  }

  /** A server of a project has the lists that clients of the project see, because the lists of all servers would have names twice. */
  #inItsLists(server: ServerFacts): ServerFacts {
    if (server.layer === undefined) return server;
    const folder = dirname(server.layer.file);
    return { ...server, catalogs: this.#source.gateway().catalogsIn(undefined, { environment: {}, folder }) };
  }

  #factsFor(visible: VisibleBackends, client: DownstreamClient): StatusFacts {
    const { principal } = visible;
    const isOfUser = this.#source.hasUsers && principal !== undefined && principal !== LOCAL_USER;
    const { origin } = this.#source.gateway().connected.get(client)?.facts ?? {};
    const remark = this.#source.active.config.layers?.remarkOn(origin?.folder);
    const facts = { ...this.#allFacts(visible, remark === undefined ? [] : [remark]), reader: client };
    if (!isOfUser) return facts;
    const { instances } = this.#source;
    const own = factsForUser(facts, principal);
    // Only a user may be given the address of the page.
    const servers = own.servers.map((server) => ({ ...server, userLogin: instances.userLoginOf(server.backend) }));
    return { ...own, servers };
  }

  #allFacts({ backends, ...visible }: VisibleBackends, remarks: Iterable<string>): StatusFacts {
    const { platform, redact, notices, active, instances, features, waiting, eventLoop } = this.#source;
    const { pool } = this.#source.gateway();
    return {
      ...visible,
      redact,
      waiting,
      eventLoop,
      now: platform.clock.now(),
      startedAt: this.#startedAt,
      version: VERSION,
      platform: process.platform,
      config: active.facts,
      service: this.#source.service(),
      notices: [...notices.values(), ...remarks],
      partialFrames: platform.unfinishedLines,
      requestBodies: platform.requestBodies,
      internalErrorCount: platform.internalErrors.count,
      usageOf: (pid) => this.#source.usage.of(pid),
      canRestart: active.config.gateway.restartTool,
      restartCommand: (server) =>
        `trunkline restart ${server} --config ${quotedPath(active.config.file, process.platform)}`,
      servers: [...backends.values()].map((backend) => ({
        backend,
        ...instances.factsOf(backend),
        instances: pool.of(backend.key).map((each) => {
          const { lifecycle, problem, isPerUser } = instances.factsOf(each);
          return { backend: each, lifecycle, problem, isPerUser, isUnclaimed: pool.isUnclaimed(each) };
        }),
      })),
      ...features.facts,
    };
  }
}

function isShallowEqual(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((each, at) => each === other[at]);
}

function runnable(instances: SupervisedBackends) {
  return ({ backends }: VisibleBackends) =>
    [...backends.values()].flatMap(({ key, id }) => (instances.canRun(id) ? [key] : []));
}
