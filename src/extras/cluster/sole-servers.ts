import { Agent } from 'node:http';
import { hostAndPort } from '../../config/schema/cluster-address.js';
import { DEFAULT_HEADERS, RequestError } from '../../host/http/send-request.js';
import type { ChildSpec, RemoteSpec } from '../../spec/server-spec.js';
import type { RemoteAccess } from '../../upstream/http/access.js';
import type { HttpDialer, HttpDialerOptions } from '../../upstream/http/http-dialer.js';
import { ServerEra } from '../../upstream/server-era.js';
import {
  type Dialed,
  type Dialer,
  type DialOutcome,
  dialLater,
  type UpstreamConnection,
  type UpstreamListener,
} from '../../upstream/upstream-connection.js';
import type { SoleServerDialer as Port } from '../feature.js';
import { GATEWAY } from './homes.js';
import { IDLE_MS } from './hop.js';
import { Leases, type LeasesShared } from './leases.js';
import type { RequestSigner } from './signed-request.js';
import { StoreUnavailable } from './store.js';

interface SoleServersOptions extends LeasesShared {
  /** Host and port of this gateway's own peer port. */
  readonly address: string;
  /** Returns the host and the port of another gateway; `undefined` if it cannot be reached. */
  readonly addressOf: (gateway: string) => string | undefined;
  /** Resolves when it is known whether the gateway can be reached. */
  readonly known: (gateway: string) => Promise<void>;
  readonly sign: RequestSigner['sign'];
  /** Whether another gateway is ready to run servers. */
  readonly hasOthers: () => boolean;
}

type Dial = Parameters<Port['dial']>;
type SoleTarget = Dial[1];
type Dialers = Dial[3];

type Failed = Extract<DialOutcome, { kind: 'failed' }>;

/** Time between two checks whether the process still runs on the gateway to which this gateway is connected, in milliseconds. */
const LOOK_MS = 2_000;

/**
 * Servers with `placement: one`. The process of such a server runs on the gateway that has its lease. The other gateways connect to
 * that gateway as to a server behind a URL. A gateway keeps the lease when the process ends, but not if the
 * process never connected, or if the gateway drains.
 */
export class SoleServers implements Port {
  readonly #options: SoleServersOptions;
  readonly #leases: Leases;
  /** The processes that run here, by the keys of their servers, with the functions that give them away. */
  readonly #running = new Map<string, () => void>();
  /** Keys of the servers that this gateway has given away. `#moving` has a key while the next gateway is being looked for. */
  readonly #given = new Set<string>();
  readonly #moving = new Set<string>();
  /** Gateways that servers have left or are about to leave, by the keys of the servers. */
  readonly #left = new Map<string, string>();
  #isDraining = false;
  #isPausing = false;
  /** Whether the configuration has a server with this key that runs on one gateway only. */
  isConfigured: (key: string) => boolean = () => true;

  constructor(options: SoleServersOptions) {
    this.#options = options;
    const isKept = (name: string) => !this.#isDraining && this.isConfigured(name.slice(LEASE.length));
    this.#leases = new Leases({ ...options, isKept });
  }

  /** Returns where other gateways find the server. `moving`: here, but they must hold back their calls until the pause is over. */
  placeOf(key: string): 'here' | 'moving' | 'elsewhere' {
    if (!this.#leases.has(leaseOf(key)) || this.#left.get(key) === this.#options.self) return 'elsewhere';
    return this.#isPausing && this.isMoving ? 'moving' : 'here';
  }

  /** Whether this gateway waits until it can give a server away, or until another gateway runs it. */
  get isMoving(): boolean {
    const isToMove = [...this.#running.keys()].some((key) => !this.#given.has(key));
    return this.#isDraining && this.#options.hasOthers() && (isToMove || this.#moving.size > 0);
  }

  /**
   * Gives each server away as soon as no call is in flight, because this gateway is about to end. The other gateways pause their
   * calls from time to time, so that such a moment comes.
   */
  drain(): void {
    this.#isDraining = true;
    this.#giveAway(this.#options.clock.now());
    this.#leases.releaseUnused().catch(this.#options.onInternalError);
  }

  #giveAway(drainsSince: number): void {
    const { clock } = this.#options;
    this.#isPausing = (clock.now() - drainsSince) % PAUSE.everyMs < PAUSE.ms;
    for (const giveAway of this.#running.values()) giveAway();
    if (this.#running.size > 0) clock.schedule(STEP_MS, () => this.#giveAway(drainsSince));
  }

  /** Runs the process of the server with this key, or connects to it. */
  dial(key: string, target: SoleTarget, listener: UpstreamListener, dialers: Dialers): Dialed {
    return dialLater(async (isEnded) => {
      const place = await this.#place(key, isEnded).finally(() => this.#moving.delete(key));
      if (typeof place !== 'string') return place;
      return place === this.#options.self
        ? this.#run(key, target, listener, dialers.processes)
        : await this.#connect(key, place, target, listener, dialers.remote);
    });
  }

  /** Gives all leases back. Call it when no process is left. */
  async close(): Promise<void> {
    await this.#leases.release();
  }

  /** Resolves when this gateway has no lease, so that it needs the store no more. */
  async closed(): Promise<void> {
    await this.#leases.none();
  }

  /** Returns the gateway on which the process runs, or is to run. Waits for a while if the process is about to move. */
  async #place(key: string, isEnded: () => boolean): Promise<string | Failed> {
    const { self, store, addressOf, known, hasOthers, clock } = this.#options;
    const name = leaseOf(key);
    const waitsUntil = clock.now() + MOVE_MS;
    try {
      for (;;) {
        const mayWait = clock.now() < waitsUntil;
        const isForOthers = this.#isDraining && mayWait && hasOthers();
        const holder = await (isForOthers ? store.holderOf(name) : this.#leases.take(name));
        if (holder !== undefined && holder !== self) await known(holder);
        if (isEnded()) return failed('it was stopped');
        const isUnknown = holder === undefined || holder === this.#left.get(key);
        if (isUnknown && mayWait) await this.#sleep(STEP_MS);
        else if (holder === self || (holder !== undefined && addressOf(holder) !== undefined)) return holder;
        else return failed('the gateway on which it runs does not answer');
      }
    } catch (error) {
      if (error instanceof StoreUnavailable) return failed(error.message);
      throw error;
    }
  }

  #run(key: string, target: SoleTarget, listener: UpstreamListener, dialer: Dialer<ChildSpec>): Dialed {
    const running = dialer.dial(target, listener);
    let connection: UpstreamConnection | undefined;
    this.#left.delete(key);
    this.#running.set(key, () => {
      if (connection?.inFlight !== 0 || this.#given.has(key) || !this.#options.hasOthers()) return;
      this.#given.add(key);
      this.#moving.add(key);
      this.#left.set(key, this.#options.self);
      listener.lost('moved', 'another gateway runs it from now on');
    });
    const forget = this.#leases.onLost(leaseOf(key), (ms, because) => {
      void running.end({ termAfterMs: 0, killAfterMs: Math.min(ms, KILL_AFTER_MS) });
      listener.lost('network', because);
    });
    return {
      pid: running.pid,
      connection: running.connection.then((outcome) => {
        if (outcome.kind === 'open') connection = outcome.connection;
        return outcome;
      }),
      end: async (ladder) => {
        this.#running.delete(key);
        await running.end(ladder);
        forget();
        // Lets another gateway start the process, because it never connected here, or because this gateway drains.
        if (connection === undefined || this.#isDraining) await this.#leases.release(leaseOf(key));
      },
    };
  }

  async #connect(
    key: string,
    holder: string,
    target: SoleTarget,
    listener: UpstreamListener,
    remote: Dialers['remote'],
  ): Promise<Dialed> {
    const { key: instance, timeouts, restart } = target.spec;
    const url = `http://${this.#options.addressOf(holder)}/mcp/${encodeURIComponent(key)}`;
    const spec: RemoteSpec = { kind: 'remote', key: instance, timeouts, restart, url, transport: 'http', headers: {} };
    // The other gateway translates between the eras.
    const era = new ServerEra(target.era.begin() ?? 'legacy');
    const dialer = await openDialer({
      ...remote,
      openAccess: () => ({ access: this.#accessTo(holder, key), release() {} }),
    });
    target.log.add(`It runs on another gateway of the cluster, ${holder}. Trunkline connects to it there.`);
    const dialed = dialer.dial(
      { ...target, spec, era },
      {
        ...listener,
        // Reports trouble, because only the gateway that runs the process may count a failure.
        unfit: (because) => listener.lost('trouble', because),
        lost: (fault, because) => {
          // The other gateway does not know the session, because it does not run the server any more.
          if (fault === 'server') this.#left.set(key, holder);
          listener.lost(fault === 'server' ? 'moved' : fault, because);
        },
      },
    );
    let isOver = false;
    let connection: UpstreamConnection | undefined;
    const mayHold = () => this.#mayHold(key, holder, () => connection?.inFlight ?? 0);
    const moved = () => listener.lost('moved', 'it does not run on the same gateway any more');
    this.#watch(mayHold, () => isOver, moved).catch(this.#options.onInternalError);
    return {
      pid: undefined,
      connection: dialed.connection.then((outcome) => {
        if (outcome.kind === 'open') {
          connection = outcome.connection;
          this.#left.delete(key);
        } else if ((outcome.fault ?? 'server') === 'server') return { ...outcome, fault: 'trouble' };
        return outcome;
      }),
      end: async (ladder) => {
        isOver = true;
        await dialed.end(ladder);
      },
    };
  }

  /** Calls `onMoved` when the process may be at another gateway, unless `isOver` by then. */
  async #watch(mayHold: () => Promise<boolean>, isOver: () => boolean, onMoved: () => void): Promise<void> {
    do await this.#sleep(LOOK_MS);
    while (!isOver() && (await mayHold()));
    if (!isOver()) onMoved();
  }

  /** Whether `holder` may still have the process, or still answers calls that it got while it had the process. */
  async #mayHold(key: string, holder: string, inFlight: () => number): Promise<boolean> {
    const { store, addressOf } = this.#options;
    if (addressOf(holder) === undefined) return false;
    try {
      return (await store.holderOf(leaseOf(key))) === holder || inFlight() > 0;
    } catch (error) {
      // The other gateway ends the process before its lease ends, which breaks the connection.
      if (error instanceof StoreUnavailable) return true;
      throw error;
    }
  }

  async #sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.#options.clock.schedule(ms, resolve));
  }

  #accessTo(holder: string, key: string): RemoteAccess {
    const { sign, self, address } = this.#options;
    const { host, port } = hostAndPort(address);
    const client = { address: host, port };
    const facts = { caller: { principal: `${GATEWAY}${self}` }, client, endpoint: key };
    return {
      headers: async ({ method, url, headers, body }) =>
        sign({
          to: holder,
          method,
          path: url.pathname,
          body,
          facts,
          // All headers are signed, so those that every request gets are named here.
          headers: { ...DEFAULT_HEADERS, ...headers, host: url.host },
        }),
      rejected: () => Promise.reject(new RequestError('the other gateway does not accept its signature', false)),
    };
  }
}

/** Interval and length of the pauses in which other gateways hold back calls while this one drains. Calls can wait for longer. */
const PAUSE = { everyMs: 10_000, ms: 2_000 };

/** Longest wait for another gateway to run a server, and the time between two attempts to find it or to give one away, in milliseconds. */
const MOVE_MS = 6_000;
const STEP_MS = 200;

/** Longest time from SIGTERM to SIGKILL for a process whose lease ends, in milliseconds. */
const KILL_AFTER_MS = 4_000;

const LEASE = 'p:';

function leaseOf(key: string): string {
  return `${LEASE}${key}`;
}

function failed(reason: string): Failed {
  return { kind: 'failed', reason, fault: 'network' };
}

/** Loads the code with the first connection to another gateway. */
async function openDialer(options: HttpDialerOptions): Promise<HttpDialer> {
  const { HttpDialer } = await import('../../upstream/http/http-dialer.js');
  return new HttpDialer({ ...options, createAgent: () => new Agent({ keepAlive: true, timeout: IDLE_MS }) });
}
