import type { ChildConnection } from '../bridge/child-connection.js';
import { listAllPages } from '../bridge/list-pages.js';
import type { Edit } from '../jsonrpc/splice.js';
import type { NotificationEnvelope } from '../mcp/envelope.js';
import { METHODS } from '../mcp/methods.js';
import { Paced } from '../timing/paced.js';
import { Delivery, type DeliveryOptions } from './delivery.js';
import type { Exchange } from './exchange.js';
import { type ExposureRules, exposeTools, NO_TOOLS, type ServerTools } from './server-tools.js';

/** Where the process behind a backend is in its life, as far as the gateway needs to know. */
export type LifecycleState = 'stopped' | 'starting' | 'ready' | 'stopping' | 'backoff' | 'parked';

export interface BackendOptions extends ExposureRules, DeliveryOptions {
  /** This server can never run as it is configured. */
  readonly isMisconfigured: boolean;
  /** Asks for a start of a child that is not tried any more by itself. */
  readonly demandStart: () => void;
}

/** Told of what the rest of the gateway has to know. */
export interface BackendListener {
  /** What this backend contributes to the merged list may have changed. */
  toolsChanged(): void;
  /** The first start has ended, one way or the other. */
  startSettled(): void;
}

/** A child that announces changes all the time is listened to this often. */
const REFRESH_EVERY_MS = 1_000;

/**
 * One server as the gateway sees it: the tools that it offers, and the way calls take to it.
 *
 * The processes behind it come and go; the backend stays for as long as the server is configured.
 */
export class Backend {
  readonly key: string;
  readonly prefix: string;
  readonly delivery: Delivery;
  readonly #options: BackendOptions;
  readonly #refresh: Paced;
  #listener: BackendListener | undefined;
  #state: LifecycleState = 'stopped';
  #isStartSettled: boolean;
  #tools: ServerTools = NO_TOOLS;
  /** The tools changed while they were being read for the first time. */
  #isListStale = false;

  constructor(options: BackendOptions) {
    this.#options = options;
    this.key = options.key;
    this.prefix = options.prefix;
    this.delivery = new Delivery(options);
    this.#isStartSettled = options.isMisconfigured;
    this.#refresh = new Paced({
      clock: options.clock,
      delayMs: 0,
      everyMs: REFRESH_EVERY_MS,
      run: () => this.#reloadTools(),
    });
  }

  /** One listener, set once when the gateway is put together. */
  listen(listener: BackendListener): void {
    this.#listener = listener;
  }

  get isMisconfigured(): boolean {
    return this.#options.isMisconfigured;
  }

  /** False while the first start is under way: a list made now may lack this server's tools. */
  get isStartSettled(): boolean {
    return this.#isStartSettled;
  }

  /** What this server contributes to the merged list. One that is restarting keeps its place; one given up does not. */
  get tools(): ServerTools {
    return this.#isGivenUp ? NO_TOOLS : this.#tools;
  }

  /** Whether the configuration lets this tool through. */
  allows(originalName: string): boolean {
    return this.#options.policy(originalName);
  }

  /** Reads the child's tools, before it is attached. Resolves with what is wrong, if anything. */
  async loadTools(connection: ChildConnection): Promise<string | undefined> {
    if (!connection.offersTools) {
      this.#tools = NO_TOOLS;
      return undefined;
    }
    const { listTimeoutMs } = this.#options.limits;
    const patience = { idleMs: listTimeoutMs, maxMs: listTimeoutMs };
    const list = await listAllPages(connection.ask, METHODS.listTools, 'resultTools', patience);
    if (list.kind === 'failed') return list.reason;
    this.#tools = exposeTools(list, this.#options);
    return undefined;
  }

  /** A process is ready to be called. */
  attach(connection: ChildConnection): void {
    this.delivery.connect(connection);
    if (this.#isListStale) this.#refresh.request();
    this.#isListStale = false;
  }

  /** The process moved on in its life. In any state but `ready` there is none to call. */
  moved(state: LifecycleState): void {
    const before = this.tools;
    this.#state = state;
    if (state === 'parked' || state === 'stopped') this.delivery.giveUp(state);
    else if (state !== 'ready') this.delivery.disconnect(this.#isStartSettled ? 'restarting' : 'starting');
    if (state === 'ready' || this.tools !== before) this.#listener?.toolsChanged();
    if (!this.#isStartSettled && state !== 'starting') {
      this.#isStartSettled = true;
      this.#listener?.startSettled();
    }
  }

  /** Serves a request of a client; `edits` are what routing changed in it. */
  serve(exchange: Exchange, edits: readonly Edit[]): void {
    if (this.#state === 'parked') this.#options.demandStart();
    if (this.isMisconfigured) this.delivery.refuse(exchange, 'misconfigured');
    else if (this.#isGivenUp) this.delivery.refuse(exchange, this.#state === 'parked' ? 'parked' : 'stopped');
    else this.delivery.serve(exchange, edits);
  }

  /** Something that the child said unasked. */
  notified(notification: NotificationEnvelope): void {
    if (notification.method !== METHODS.toolsChanged) return;
    if (this.delivery.connection === undefined) this.#isListStale = true;
    else this.#refresh.request();
  }

  close(): void {
    this.#refresh.close();
    this.delivery.close();
  }

  get #isGivenUp(): boolean {
    return this.#state === 'parked' || this.#state === 'stopped';
  }

  /** A list that cannot be read leaves the last one in force; calls will tell what is wrong with the child. */
  async #reloadTools(): Promise<void> {
    const { connection } = this.delivery;
    if (connection === undefined) return;
    const fault = await this.loadTools(connection);
    if (fault === undefined && connection === this.delivery.connection) this.#listener?.toolsChanged();
  }
}
