// Gateways of one cluster in the test's process, with real peer ports, scripted cores and a store in memory.

import { connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { HttpLimits } from '../../../src/downstream/http/limits.js';
import { ClusterEndpoint } from '../../../src/extras/cluster/cluster-endpoint.js';
import type { ClusterMember } from '../../../src/extras/cluster/cluster-member.js';
import type { ClusterStore } from '../../../src/extras/cluster/store.js';
import type { GatewayEvent } from '../../../src/host/observe/events/events.js';
import { systemClock } from '../../../src/host/observe/system-clock.js';
import type { Keys } from '../../../src/host/sealed-bytes.js';
import type { Clock } from '../../../src/wire/timing/clock.js';
import { ScriptedCore } from '../../downstream/http/scripted-core.js';
import { ScriptedUsers } from '../../downstream/http/scripted-users.js';
import { DEFAULT_LIMITS, idsOf, type Serving, serving } from '../../downstream/http/serving.js';
import { freePort } from '../../support/free-port.js';
import { type MemoryServer, MemoryStore } from './memory-store.js';

export interface Gateway {
  readonly http: Serving;
  readonly core: ScriptedCore;
  readonly users: ScriptedUsers;
  readonly cluster: ClusterMember;
  readonly store: ClusterStore;
  readonly name: string;
  readonly peerPort: number;
  readonly clock: PausingClock;
  readonly events: readonly GatewayEvent[];
}

/** The key of all gateways of the tests. */
export const KEYS = [Buffer.alloc(32, 7)] as const;

export interface GatewayOptions {
  readonly server: MemoryServer;
  /** Ten letters. */
  readonly name: string;
  /** Address that the others get; default: that of its peer port. */
  readonly advertise?: string;
  /** Whether clients have tokens of their own; otherwise all have the same. */
  readonly hasUsers?: boolean;
  /** The groups of ann. */
  readonly groups?: readonly string[];
  readonly limits?: Partial<HttpLimits>;
  readonly keys?: Keys;
  readonly noteToken?: (principal: string, token: string) => void;
}

/** Starts a gateway that ends with the test. */
export async function startGateway({ server, name, ...more }: GatewayOptions): Promise<Gateway> {
  const peerPort = await freePort();
  const store = new MemoryStore(server);
  const events: GatewayEvent[] = [];
  const clock = new PausingClock();
  const core = new ScriptedCore();
  let joined: ClusterEndpoint | undefined;
  const { hasUsers = true, limits = {} } = more;
  const users = new ScriptedUsers();
  if (more.groups !== undefined) users.groups.set('ann', more.groups);
  const http = await serving({
    core,
    limits,
    ids: idsOf(name),
    ...(hasUsers && { users, bind: { tokens: [] } }),
    decorate: async (...decorated) => {
      joined = await ClusterEndpoint.join(
        {
          ...{ store, keys: more.keys ?? KEYS, instance: name, clock, version: '1.0.0', limits: DEFAULT_LIMITS },
          ...{ subjectKeys: [Buffer.alloc(32, 9)], noteToken: () => more.noteToken },
          ...{ hasUsers, servers: () => '', passedHeaders: () => core.passedHeaders?.() ?? [] },
          advertise: more.advertise ?? `127.0.0.1:${peerPort}`,
          listen: { host: '127.0.0.1', port: peerPort },
          events: { wants: () => true, emit: (event) => events.push(event) },
        },
        ...decorated,
      );
      return joined;
    },
  });
  if (joined === undefined) throw new Error('The gateway has not joined');
  return { http, core, users, cluster: joined.cluster, store, name, peerPort, clock, events };
}

/** A connection between gateways that can be cut, as a network is. */
export class Relay {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  #target: () => number;

  private constructor(server: Server, port: number, target: () => number) {
    this.#server = server;
    this.port = port;
    this.#target = target;
  }

  /** Opens a way to this port of the machine, until the test ends. */
  static async to(target: () => number): Promise<Relay> {
    const port = await freePort();
    const server = createServer({ allowHalfOpen: true });
    const relay = new Relay(server, port, target);
    server.on('connection', (socket) => {
      const other = connect({ port: relay.#target(), host: '127.0.0.1', allowHalfOpen: true });
      for (const [from, to] of [
        [socket, other],
        [other, socket],
      ] as const) {
        relay.#sockets.add(from);
        from.on('error', () => to.destroy());
        from.on('close', () => {
          relay.#sockets.delete(from);
          to.destroy();
        });
        from.pipe(to);
      }
    });
    await relay.open();
    onTestFinished(() => relay.cut());
    return relay;
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.port, '127.0.0.1', resolve));
  }

  /** Opens the way to another port, after it was cut. */
  async leadTo(port: number): Promise<void> {
    this.#target = () => port;
    await this.open();
  }

  /** Passes no more bytes, and ends nothing. */
  freeze(): void {
    for (const socket of this.#sockets) socket.unpipe().pause();
    this.freezeNew();
  }

  /** Passes nothing on connections that are made from now on. Returns the number of these connections. */
  freezeNew(): () => number {
    let frozen = 0;
    this.#server.removeAllListeners('connection');
    this.#server.on('connection', (socket) => {
      frozen += 1;
      socket.on('error', () => {});
      this.#sockets.add(socket);
    });
    return () => frozen;
  }

  /** Breaks all connections, and refuses new ones. */
  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }
}

/** The clock of the machine, which a test can advance: a pause of the whole process looks the same. */
export class PausingClock implements Clock {
  #pausedMs = 0;

  now(): number {
    return systemClock.now() + this.#pausedMs;
  }

  schedule(delayMs: number, task: () => void) {
    return systemClock.schedule(delayMs, task);
  }

  pause(ms: number): void {
    this.#pausedMs += ms;
  }
}
