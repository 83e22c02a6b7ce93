import type { ResourceLimits } from '../supervision/resource-limits.js';
import type { Clock } from '../timing/clock.js';
import type { ControlGroup, Write } from './control-group.js';
import type { ControlGroupLog, GatewayCgroup } from './gateway-cgroup.js';
import { findDelegatedCgroup } from './own-cgroup.js';

export interface ControlGroupsOptions {
  readonly clock: Clock;
  readonly logger: ControlGroupLog;
  /** Ends what is in the groups if the gateway is killed. */
  readonly guard: {
    guardControlGroups(folder: string): void;
    releaseControlGroups(): void;
  };
  /** The folder of the group that was given to this process. A test has one of its own. */
  readonly findOwn?: () => string | undefined;
  readonly write?: Write;
}

/** The control group that holds a server, for the status. */
export interface HoldingGroup {
  readonly folder: string;
  /** The limits that the kernel enforces. */
  readonly enforced: ResourceLimits;
}

interface OpenGroup {
  readonly group: ControlGroup;
  readonly limits: () => ResourceLimits;
}

/**
 * Makes a control group (cgroup v2) for each launch of a server, on Linux and only if the group that Trunkline was started in
 * was given to it. Otherwise it does nothing, and the code that makes groups is not even loaded.
 */
export class ControlGroups {
  readonly #options: ControlGroupsOptions;
  readonly #open = new Set<OpenGroup>();
  #gateway: Promise<GatewayCgroup | undefined> | undefined;

  constructor(options: ControlGroupsOptions) {
    this.#options = options;
  }

  /** Finds out whether there are groups to be had. The first process of a server then gets one sooner. Never rejects. */
  async prepare(): Promise<void> {
    await this.#find();
  }

  /** A new group for one launch of a server; `undefined` if there is none to be had. Never rejects. */
  async open(key: string, limits: () => ResourceLimits): Promise<ControlGroup | undefined> {
    const gateway = await this.#find();
    const group = await gateway?.makeGroup(key, () => this.#open.delete(open));
    if (gateway === undefined || group === undefined) return undefined;
    const open: OpenGroup = { group, limits };
    this.#open.add(open);
    // Not waited for: the sooner the group holds the server, the better.
    void gateway.enforce(group, limits());
    return group;
  }

  /** The group that holds the server whose first process has this pid. */
  of(pid: number): HoldingGroup | undefined {
    return [...this.#open].find(({ group }) => group.leader === pid)?.group;
  }

  /** The limits of some servers may be different from now on. Never rejects. */
  async limitsChanged(): Promise<void> {
    const gateway = await this.#gateway;
    await Promise.all([...this.#open].map(({ group, limits }) => gateway?.enforce(group, limits())));
  }

  /** Ends what killed gateways left in their groups. Never rejects. */
  async sweep(): Promise<void> {
    await (await this.#find())?.sweep();
  }

  /** Call this when all servers have ended. Never rejects. */
  async close(): Promise<void> {
    await (await this.#gateway)?.close();
    this.#options.guard.releaseControlGroups();
  }

  #find(): Promise<GatewayCgroup | undefined> {
    this.#gateway ??= this.#findDelegated();
    return this.#gateway;
  }

  async #findDelegated(): Promise<GatewayCgroup | undefined> {
    const { logger, guard, findOwn = findOwnCgroup } = this.#options;
    try {
      const own = findOwn();
      if (own === undefined) return undefined;
      const { GatewayCgroup } = await import('./gateway-cgroup.js');
      return await GatewayCgroup.open({
        ...this.#options,
        own,
        onMade: (folder) => guard.guardControlGroups(folder),
      });
    } catch (err) {
      logger.debug({ err }, 'no control groups');
      return undefined;
    }
  }
}

function findOwnCgroup(): string | undefined {
  const uid = process.getuid?.();
  if (process.platform !== 'linux' || uid === undefined) return undefined;
  return findDelegatedCgroup({ proc: '/proc', pid: process.pid, uid });
}
