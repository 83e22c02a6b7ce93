import type { ToolFilter } from '../../src/spec/server-rules.js';
// The whole gateway in memory: servers and clients that the test plays, on a clock that the test moves. No process is
// started, so that most tests of the gateway belong here.

import { RequestRules } from '../../src/config/rules/request-rules.js';
import type { CallRule } from '../../src/config/rules/rule.js';
import { legacyEra } from '../../src/downstream/legacy/legacy-session.js';
import { modernEra } from '../../src/downstream/modern/modern-session.js';
import type { ClientOrigin, DownstreamClient, GatewayPort, User } from '../../src/downstream/port.js';
import { ClientPipe } from '../../src/downstream/stdio/stdio-transport.js';
import type { Era, EraSession } from '../../src/downstream/transport.js';
import { eraChooser } from '../../src/downstream/transport.js';
import type { LargeResults } from '../../src/extras/large-results/large-results.js';
import { type CallFeed, NO_CALLS } from '../../src/gateway/call-feed.js';
import { createToolPolicy, type NamedViewsOptions } from '../../src/gateway/catalog/tool-policy.js';
import { ToolShaping } from '../../src/gateway/catalog/tool-shaping.js';
import { Gateway, type GatewaySettings } from '../../src/gateway/gateway.js';
import { Backend, type CatalogueContent, type ListenerFor } from '../../src/gateway/registry/backend.js';
import type { Sharing } from '../../src/gateway/registry/server-instances.js';
import type { OwnTool } from '../../src/gateway/routing/own-tool.js';
import type { RequestGate } from '../../src/gateway/routing/request-gate.js';
import { EventBus, type EventSink } from '../../src/host/observe/events/events.js';
import type { ListMode } from '../../src/spec/list-modes.js';
import type { CallLimits, ResultLimits, ToolShapes } from '../../src/spec/server-rules.js';
import type { ServerState } from '../../src/spec/server-state.js';
import type { ToolApprovals } from '../../src/spec/tool-approvals.js';
import { ServerEra } from '../../src/upstream/server-era.js';
import type { ClientProfile } from '../../src/wire/mcp/handshake.js';
import { FakeClock } from './fake-clock.js';
import { hmac } from './hmac.js';
import { HttpPeer, type Network } from './http-peer.js';
import { InMemoryUpstream } from './in-memory-upstream.js';
import { ScriptedChild } from './scripted-child.js';
import type { ScriptedPeer } from './scripted-peer.js';
import { sha256 } from './sha256.js';
import { lineOf, type Message, RecordingSink, scan } from './wire.js';

export const LIMITS: CallLimits = {
  timeoutMs: 60_000,
  maxTimeoutMs: 600_000,
  listTimeoutMs: 30_000,
  concurrency: 16,
  maxQueued: 64,
  maxWaitMs: 10_000,
};

export interface ServerScript {
  /** Raw tools on one page, or names of plain ones. */
  readonly tools?: readonly string[];
  readonly pages?: readonly string[];
  /** Answers to lists, as `PeerScript` has them. */
  readonly lists?: Readonly<Record<string, Message>>;
  readonly hello?: Message;
  readonly prefix?: string;
  readonly filter?: ToolFilter;
  /** Shapes of its tools in the configuration. */
  readonly shapes?: ToolShapes;
  readonly approvals?: ToolApprovals;
  readonly rules?: readonly Omit<CallRule, 'at'>[];
  readonly limits?: Partial<CallLimits>;
  readonly isMisconfigured?: boolean;
  readonly isTrusted?: boolean;
  readonly isRemote?: boolean;
  readonly sharing?: Sharing;
  /** Whether an earlier run has found that it speaks a revision without sessions. */
  readonly wasSessionless?: boolean;
  /** The variables that the configuration names for it. */
  readonly variables?: readonly string[];
  /** Methods that the configuration says it answers. */
  readonly methods?: readonly string[];
  readonly retryInMs?: () => number | undefined;
  /** Reason for which it does not run, as a sentence. */
  readonly failureCause?: string;
  readonly idleStopMs?: number;
  /** Limits of its results in the configuration. */
  readonly results?: ResultLimits;
  /** Whether the server is reached through a real `Bridge`, and not in memory. */
  readonly hasBridge?: boolean;
  /** The network to a server behind a URL. */
  readonly network?: Network | undefined;
  /** Whether it speaks the revision without a handshake; needs the bridge or the network. */
  readonly isModern?: boolean;
  /** Capabilities of the clients, as a server behind a bridge is told. */
  readonly clientCapabilities?: Message;
}

export interface GatewayScript {
  readonly servers: Readonly<Record<string, ServerScript>>;
  readonly ownTools?: readonly OwnTool[];
  readonly results?: LargeResults;
  readonly startupWaitMs?: number;
  readonly clock?: FakeClock;
  readonly views?: NamedViewsOptions;
  readonly mode?: ListMode;
  readonly calls?: CallFeed;
  /** Makes the gates of requests, when the gateway is made. */
  readonly gates?: (gateway: () => Gateway, clock: FakeClock) => readonly RequestGate[];
  /** The name of the process. */
  readonly instance?: string;
}

/** A tool as a server would list it. */
export function toolOf(name: string, members: Message = {}): string {
  return JSON.stringify({ name, inputSchema: { type: 'object' }, ...members });
}

export interface Offer {
  readonly prompts?: readonly string[];
  readonly resources?: readonly string[];
  readonly templates?: readonly string[];
  /** In place of what goes with the lists. */
  readonly capabilities?: Message;
}

/** A server that has more than tools, each entry by what identifies it. */
export function offering({ prompts, resources, templates, capabilities }: Offer): ServerScript {
  const hasResources = resources !== undefined || templates !== undefined;
  return {
    hello: {
      capabilities: capabilities ?? {
        tools: {},
        ...(prompts === undefined ? {} : { prompts: {} }),
        ...(hasResources ? { resources: { subscribe: true } } : {}),
      },
    },
    lists: {
      'prompts/list': { prompts: (prompts ?? []).map((name) => ({ name })) },
      'resources/list': { resources: (resources ?? []).map((uri) => ({ uri, name: uri })) },
      'resources/templates/list': {
        resourceTemplates: (templates ?? []).map((uriTemplate) => ({ uriTemplate, name: uriTemplate })),
      },
    },
  };
}

interface ScriptedServerOptions {
  readonly clock: FakeClock;
  readonly id: string;
  readonly profile: Promise<ClientProfile>;
  readonly events: EventSink;
  readonly listenerFor: ListenerFor;
  readonly origin: ClientOrigin | undefined;
}

/** A backend whose processes the test starts and ends, in the order that supervision does. */
export class ScriptedServer {
  readonly backend: Backend;
  readonly script: ServerScript;
  readonly limits: CallLimits;
  /** Number of starts that calls have demanded. */
  demands = 0;
  /** Number of stops because nobody needed it. */
  rests = 0;
  /** Number of reports that the next run should not wait for it. */
  missed = 0;
  /** Lists that were last read of a process. */
  offered: CatalogueContent | undefined;
  generation = 0;
  /** Raw pages of the next process, or of the present one when it is asked again. */
  pages: readonly string[];
  /** Other lists of the next process. */
  lists: Readonly<Record<string, Message>>;
  #child: ScriptedPeer | undefined;
  readonly #clock: FakeClock;
  /** What its connections have found out. */
  readonly era = new ServerEra('auto');

  /** Profile of the client that its process is told. */
  readonly profile: Promise<ClientProfile>;
  readonly id: string;
  /** Of the client that it was created for. */
  readonly origin: ClientOrigin | undefined;
  /** Whether the gateway wants its process to run. */
  isToRun = false;
  /** No client uses it any more. */
  isEnded = false;

  constructor(
    key: string,
    script: ServerScript,
    { clock, id, profile, events, listenerFor, origin }: ScriptedServerOptions,
  ) {
    this.id = id;
    this.origin = origin;
    this.profile = profile;
    this.script = script;
    this.limits = { ...LIMITS, ...script.limits };
    this.#clock = clock;
    this.pages = script.pages ?? [pageOf(script.tools ?? [])];
    this.lists = script.lists ?? {};
    this.backend = new Backend({
      key,
      id,
      prefix: script.prefix ?? key,
      clock,
      limits: this.limits,
      events,
      listenerFor,
      policy: createToolPolicy(script.filter ?? { deny: [] }),
      shaping: script.shapes && new ToolShaping(script.shapes),
      approvals: script.approvals,
      callRules: script.rules && callRules(script.rules),
      answers: createToolPolicy({ allow: script.methods ?? [], deny: [] }),
      sha256,
      isMisconfigured: script.isMisconfigured ?? false,
      isTrusted: script.isTrusted ?? false,
      isRemote: script.isRemote ?? false,
      demandStart: () => {
        this.demands += 1;
      },
      retryInMs: script.retryInMs ?? (() => undefined),
      whyDown: () => ({ cause: script.failureCause }),
      idleStopMs: script.idleStopMs ?? 0,
      results: script.results ?? {},
      idleStop: () => {
        this.rests += 1;
      },
      onListsRead: (offered) => {
        this.offered = offered;
      },
      onStartMissed: () => {
        this.missed += 1;
      },
    });
  }

  /** The present process. */
  get child(): ScriptedPeer {
    if (this.#child === undefined) throw new Error('No process');
    return this.#child;
  }

  moved(state: ServerState): void {
    this.backend.stateChanged(state);
  }

  /** Launches a process that becomes ready, as soon as the test answers `tools/list` if the process does not. */
  async start({ listsTools = true } = {}): Promise<ScriptedPeer> {
    this.moved('starting');
    this.generation += 1;
    const options = {
      clock: this.#clock,
      pages: this.pages,
      lists: this.lists,
      hello: this.script.hello ?? {},
      isModern: this.script.isModern ?? false,
      clientCapabilities: this.script.clientCapabilities ?? {},
    };
    const { network, hasBridge = false } = this.script;
    const child =
      network === undefined
        ? new (hasBridge ? ScriptedChild : InMemoryUpstream)(options)
        : new HttpPeer({ ...options, network, era: this.era });
    child.listsTools = listsTools;
    this.#child = child;
    const moved = (state: ServerState) => {
      if (network !== undefined && this.#child === child) this.moved(state);
    };
    const connecting = child.connect(this.generation, {
      notification: (notification) => this.backend.notification(notification),
      request: (request) => this.backend.serverRequest(request),
      suspected: () => moved('suspect'),
      cleared: () => moved('ready'),
      unfit: () => moved('backoff'),
      lost: (fault) => moved(STATES[fault]),
    });
    const connection = await connecting.catch((error) => {
      moved('offline');
      this.#child = undefined;
      throw error;
    });
    this.backend.opened(connection);
    await this.backend.loadLists(connection);
    if (network !== undefined && connection.isClosed) {
      this.#child = undefined;
      throw new Error('The connection ended');
    }
    this.backend.attach(connection);
    this.moved('ready');
    return child;
  }

  /** Ends the process for good, in the order that supervision keeps. */
  async end(): Promise<void> {
    this.isEnded = true;
    if (this.#child === undefined) return;
    this.moved('stopping');
    this.#child.connection.close('stopped');
    this.moved('stopped');
  }

  /** The process dies unasked: supervision hears of it first, then the bridge closes. */
  crash(next: ServerState = 'backoff'): void {
    this.moved(next);
    this.child.connection.close('exited');
  }
}

/** State after the end of a connection without a process, by the party at fault. */
const STATES = {
  server: 'backoff',
  host: 'backoff',
  network: 'offline',
  trouble: 'offline',
  blocked: 'blocked',
  moved: 'stopping',
} as const;

/** Rules of a server called `a` or, with `areOfView`, of a view called `v`. */
export function callRules(rules: readonly Omit<CallRule, 'at'>[], areOfView = false): RequestRules {
  const place = areOfView ? 'views.v' : 'servers.a';
  const placed = rules.map((rule, index) => ({ ...rule, at: `${place}.rules[${index}]` }));
  return new RequestRules(placed, { areOfView });
}

export function pageOf(tools: readonly string[]): string {
  return `{"tools":[${tools.map((tool) => (tool.startsWith('{') ? tool : toolOf(tool))).join(',')}]}`;
}

export function scriptGateway({
  servers,
  results,
  ownTools = results === undefined ? [] : [results.tool],
  startupWaitMs = 10_000,
  clock = new FakeClock(),
  views,
  mode,
  calls = NO_CALLS,
  gates: gatesFor = () => [],
  instance = 'aaaaaaaaaa',
}: GatewayScript) {
  const gates = gatesFor(() => gateway, clock);
  const events = new EventBus();
  /** The ids of what was to run, in order. */
  const started: string[] = [];
  /** By id: the key for the first of a server. */
  const scripted = new Map<string, ScriptedServer>();
  let scripts = servers;
  const pooled = () =>
    Object.entries(scripts).map(
      ([key, { sharing = 'all', wasSessionless = false, isMisconfigured = false, variables = [] }]) => ({
        key,
        sharing,
        isSessionless: () => wasSessionless,
        isMisconfigured,
        variantOf: (origin: ClientOrigin = OWN_ORIGIN) =>
          JSON.stringify([
            variables.map((name) => origin.environment[name]),
            sharing === 'folder' && origin.folder,
            variables.some((name) => name.startsWith('user:')) && origin.user,
          ]),
      }),
    );
  const gateway: Gateway = new Gateway({
    clock,
    servers: pooled(),
    create: (key, id, profile, listenerFor, origin) => {
      const options = { clock, id, profile, events, listenerFor, origin };
      const created = new ScriptedServer(key, scripts[key] ?? {}, options);
      scripted.set(id, created);
      return {
        backend: created.backend,
        start: (waitsForCall) => {
          created.isToRun = !waitsForCall;
          started.push(id);
        },
        end: () => created.end(),
      };
    },
    profileOfAll: { clientInfo: { name: 'trunkline' }, capabilities: { sampling: {} } },
    idleStopMs: 600_000,
    settings: { ownTools, results, gates, startupWaitMs, maxInstructionsBytes: MAX_INSTRUCTIONS_BYTES, views, mode },
    calls,
    seals: { lasting: sha256, run: hmac, cursors: hmac, instance },
    events,
  });
  const server = (key: string): ScriptedServer => {
    const found = scripted.get(key);
    if (found === undefined) throw new Error(`No server ${key}`);
    return found;
  };
  const startAll = async () => {
    for (const each of scripted.values()) if (each.script.isMisconfigured !== true) await each.start();
  };
  /** Applies another configuration; the `replaced` servers get a new process, or single instances, by their ids. */
  const change = (next: GatewayScript['servers'], replaced: readonly string[] = [], settings: GlobalOptions = {}) => {
    scripts = next;
    const isRetired = ({ id, backend: { key } }: ScriptedServer) => replaced.includes(key) || replaced.includes(id);
    const retired = [...scripted.values()].filter(isRetired).map(({ id }) => id);
    gateway.change(
      { servers: pooled(), replaced: new Set(replaced), retired: new Set(retired), idleStopMs: 600_000 },
      {
        ownTools,
        results,
        gates,
        startupWaitMs,
        maxInstructionsBytes: MAX_INSTRUCTIONS_BYTES,
        views,
        mode,
        ...settings,
      },
    );
  };
  const connect = (facts: Who = {}) => new ScriptedClient(gateway, clock, facts);
  return { clock, events, gateway, server, startAll, change, connect, started, ids: () => [...scripted.keys()] };
}

/** A gateway whose servers have all started. */
export async function startGateway(script: GatewayScript) {
  const world = scriptGateway(script);
  await world.startAll();
  return world;
}

const MAX_INSTRUCTIONS_BYTES = 8_192;

/** Origin of the gateway itself. */
export const OWN_ORIGIN: ClientOrigin = { environment: {}, folder: '/own' };

type GlobalOptions = Partial<GatewaySettings>;

/** Identity of a client, and the server that it wants to see alone. */
export interface Who {
  readonly principal?: string;
  readonly server?: string;
  readonly view?: string;
  readonly origin?: ClientOrigin | undefined;
  /** In place of `principal`. */
  readonly user?: User | undefined;
}

/** A client that the test plays, at the other end of a real pipe and session. */
export class ScriptedClient {
  readonly session: ClientPipe;
  readonly received = new RecordingSink();
  /** Whether the gateway has told the client that its server was removed. */
  isGone = false;
  #downstream: DownstreamClient | undefined;
  #eraSession: EraSession | undefined;

  constructor(
    gateway: GatewayPort,
    clock: FakeClock,
    { principal = 'somebody', server, view, origin, user }: Who = {},
  ) {
    const observed: GatewayPort = {
      open: (client, facts) => {
        this.#downstream = client;
        return gateway.open(client, facts);
      },
      describe: (facts) => gateway.describe(facts),
      seals: gateway.seals,
    };
    const serverInfo = { name: 'trunkline', version: '1.2.3' };
    const observe = (era: Era): Era => ({
      ...era,
      open: (transport) => {
        this.#eraSession = era.open(transport);
        return this.#eraSession;
      },
    });
    const legacy = observe(legacyEra({ clock, scan, gateway: observed, serverInfo }));
    const modern = observe(modernEra({ clock, scan, gateway: observed, serverInfo }));
    this.session = new ClientPipe({
      scan,
      chooseEra: eraChooser({ legacy, modern }),
      sink: this.received,
      principal: user?.principal ?? principal,
      server,
      view,
      origin,
      onGone: () => {
        this.isGone = true;
      },
    });
    // Over HTTP, a session has a user. A pipe has none.
    Object.assign(this.session, { user });
  }

  /** The client as the gateway sees it, after `initialize`. */
  get downstream(): DownstreamClient {
    if (this.#downstream === undefined) throw new Error('Not initialized');
    return this.#downstream;
  }

  /** The session behind the pipe, after the first message. */
  get eraSession(): EraSession {
    if (this.#eraSession === undefined) throw new Error('Nothing was said');
    return this.#eraSession;
  }

  /** Sends lines. */
  say(...messages: (Message | string)[]): void {
    for (const message of messages) this.session.receive(lineOf(message).subarray(0, -1));
  }

  request(id: number | string, method: string, params?: unknown): void {
    this.say({ jsonrpc: '2.0', id, method, params });
  }

  /** Sends a request of revision 2026-07-28, which has no handshake. */
  modernRequest(id: number | string, method: string, params: Message = {}, capabilities: Message = {}): void {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': capabilities,
      'io.modelcontextprotocol/clientInfo': { name: 'm', version: '0' },
      ...params._meta,
    };
    this.request(id, method, { ...params, _meta });
  }

  call(id: number | string, name: string, members: Message = {}): void {
    this.request(id, 'tools/call', { name, ...members });
  }

  cancel(requestId: number | string): void {
    this.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
  }

  /** Initializes the session and empties `received`. */
  initialize(protocolVersion = '2025-11-25', capabilities: Message = {}, name = 't'): Message {
    this.request('hello', 'initialize', { protocolVersion, capabilities, clientInfo: { name, version: '0' } });
    this.say({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return this.received.take()[0] ?? {};
  }

  /** Initializes the session as `initialize` does, and is the client that has one then. */
  greet(...hello: Parameters<ScriptedClient['initialize']>): this {
    this.initialize(...hello);
    return this;
  }

  /** The one answer to `id`. */
  answerTo(id: number | string | null): Message | undefined {
    const answers = this.received.messages.filter((message) => message.id === id);
    if (answers.length > 1) throw new Error(`${answers.length} answers to ${id}`);
    return answers[0];
  }
}
