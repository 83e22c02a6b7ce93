import { readlinkSync } from 'node:fs';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorMessage } from '../errors/error-text.js';
import type { ResourceLimits } from '../supervision/resource-limits.js';
import type { Clock } from '../timing/clock.js';
import {
  ControlGroup,
  type Controller,
  groupsIn,
  isEmpty,
  killAll,
  membersOf,
  readPids,
  removeTree,
  type Write,
  write,
} from './control-group.js';
import { identify, isRunning, statFields } from './process-identity.js';

export interface GatewayCgroupOptions {
  /** The control group that the gateway was started in. */
  readonly own: string;
  readonly clock: Clock;
  readonly logger: ControlGroupLog;
  /** Called with the folder that holds the groups of all servers, before the first of them holds a process. */
  readonly onMade: (folder: string) => void;
  /** A test refuses what the kernel would refuse. */
  readonly write?: Write;
}

/** What is logged about control groups; a `Logger` fits. */
export interface ControlGroupLog {
  warn(facts: object, message: string): void;
  debug(facts: object, message: string): void;
}

const WALLS: readonly Controller[] = ['memory', 'pids'];

/**
 * The control groups of this gateway, below the one that it was started in:
 *
 * - `trunkline-servers-…` with one group for each launch of a server
 * - `trunkline-gateway-…` with the gateway itself, only if it had to make room
 *
 * The names end in the namespace of pids, the pid and the start time of the gateway, so that the next one knows what is left
 * over.
 */
export class GatewayCgroup {
  readonly #options: GatewayCgroupOptions;
  readonly #owner: string;
  readonly #folder: string;
  readonly #write: Write;
  #home: string;
  #made: Promise<void> | undefined;
  #controllers: Promise<ReadonlySet<Controller>> | undefined;
  #latestMove: Promise<void> = Promise.resolve();
  #count = 0;

  private constructor(options: GatewayCgroupOptions, owner: string) {
    this.#options = options;
    this.#owner = owner;
    this.#folder = join(options.own, `trunkline-servers-${owner}`);
    this.#write = options.write ?? write;
    this.#home = options.own;
  }

  /** Makes nothing yet. `undefined` if this process cannot be named. */
  static async open(options: GatewayCgroupOptions): Promise<GatewayCgroup | undefined> {
    const identity = await identify(process.pid);
    if (identity === undefined) return undefined;
    return new GatewayCgroup(options, `${pidNamespace()}-${process.pid}-${identity.startTime}`);
  }

  /** Makes a group for one launch. `undefined` if the system refuses. Never rejects. */
  async makeGroup(key: string, onRemoved: (group: ControlGroup) => void): Promise<ControlGroup | undefined> {
    this.#count += 1;
    const folder = join(this.#folder, `${this.#count}-${key.replaceAll(/[^\w.-]/g, '_').slice(0, 64)}`);
    try {
      this.#made ??= this.#make();
      await this.#made;
      await mkdir(folder);
    } catch (err) {
      this.#options.logger.debug({ err, server: key }, 'no control group for this server');
      return undefined;
    }
    const { clock } = this.#options;
    const group = new ControlGroup({
      ...{ folder, clock },
      home: () => this.#home,
      inTurn: (move) => this.#inTurn(move),
      onRemoved: () => onRemoved(group),
      write: this.#write,
    });
    return group;
  }

  async #inTurn(move: () => Promise<void>): Promise<void> {
    const moved = this.#latestMove.then(move);
    this.#latestMove = moved.catch(() => {});
    await moved;
  }

  async #make(): Promise<void> {
    await mkdir(this.#folder);
    this.#options.onMade(this.#folder);
  }

  /** Lets the kernel enforce the limits of a group, where it can. Never rejects. */
  async enforce(group: ControlGroup, limits: ResourceLimits): Promise<void> {
    const hasLimits = limits.memoryBytes !== undefined || limits.processes !== undefined;
    if (hasLimits) this.#controllers ??= this.#enableControllers();
    // Without limits so far, nothing was changed for their sake.
    if (this.#controllers !== undefined) await group.enforce(limits, await this.#controllers);
  }

  /**
   * Enables the controllers for the groups of the servers. The kernel does that only for a group without processes of its
   * own. If nobody else is there, the gateway therefore moves to a group below, with all that it has started.
   */
  async #enableControllers(): Promise<ReadonlySet<Controller>> {
    const { own, logger } = this.#options;
    try {
      const available = new Set((await readFile(join(own, 'cgroup.controllers'), 'utf8')).trim().split(' '));
      const wanted = WALLS.filter((controller) => available.has(controller));
      if (wanted.length === 0) throw new Error('the control group of Trunkline has no controllers');
      if (!(await this.#enable(own, wanted))) {
        await this.#inTurn(() => this.#makeRoom());
        if (!(await this.#enable(own, wanted))) throw new Error('the system refused to enable the controllers');
      }
      if (!(await this.#enable(this.#folder, wanted))) throw new Error('the system refused to enable the controllers');
      return new Set(wanted);
    } catch (error) {
      logger.debug({ reason: errorMessage(error) }, 'limits are checked, but not enforced by the system');
      return new Set();
    }
  }

  async #enable(folder: string, controllers: readonly Controller[]): Promise<boolean> {
    const words = controllers.map((controller) => `+${controller}`);
    return await this.#write(join(folder, 'cgroup.subtree_control'), words.join(' '));
  }

  async #makeRoom(): Promise<void> {
    const { own } = this.#options;
    if (!(await readPids(own)).every(isOurs)) throw new Error('other programs are in the control group of Trunkline');
    this.#home = join(own, `trunkline-gateway-${this.#owner}`);
    await mkdir(this.#home, { recursive: true });
    // What is started meanwhile is found in the next round.
    for (let round = 0; round < 5; round += 1) {
      const pids = await readPids(own);
      if (pids.length === 0) return;
      for (const pid of pids) await this.#write(join(this.#home, 'cgroup.procs'), String(pid));
    }
  }

  /**
   * Ends what killed gateways have left in groups beside ours, and removes the groups: SIGTERM at once, SIGKILL two seconds
   * later. Never rejects.
   */
  async sweep(): Promise<void> {
    await Promise.all((await groupsIn(this.#options.own)).map((folder) => this.#sweepOne(folder)));
  }

  async #sweepOne(folder: string): Promise<void> {
    const { clock, logger } = this.#options;
    const [, kind, namespace, pid, startTime = ''] = NAME.exec(basename(folder)) ?? [];
    if (kind === undefined || namespace !== pidNamespace()) return;
    if (await isRunning({ pid: Number(pid), startTime })) return;
    if ((await stat(folder).catch(() => undefined))?.uid !== process.getuid?.()) return;
    if (kind === 'servers') {
      const pids = (await membersOf(folder)).map((member) => member.pid);
      if (pids.length > 0) logger.warn({ pids, gateway: Number(pid) }, 'ending what a killed Trunkline left behind');
      await endAll(folder, clock);
    }
    if (!(await removeTree(folder, clock))) logger.debug({ folder }, 'a control group of a killed Trunkline stays');
  }

  /** Removes the folder of the groups. Never rejects. */
  async close(): Promise<void> {
    await this.#made?.catch(() => {});
    await removeTree(this.#folder, this.#options.clock);
  }
}

const NAME = /^trunkline-(servers|gateway)-(\d+)-(\d+)-(\d+)$/;

/** The number of the namespace in which our pids are valid. */
function pidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
  } catch {
    return '0';
  }
}

/** Whether a process is this one, or a descendant of it. */
function isOurs(pid: number): boolean {
  for (let each = pid; each > 1; each = Number(statFields(String(each))[1] ?? 0)) {
    if (each === process.pid) return true;
  }
  return pid === process.pid;
}

/** From SIGTERM to SIGKILL, as for the process groups that a killed gateway left behind. */
const KILL_AFTER_MS = 2_000;
const PAUSE_MS = 100;

async function endAll(folder: string, clock: Clock): Promise<void> {
  const killAt = clock.now() + KILL_AFTER_MS;
  const told = new Set<number>();
  while (!(await isEmpty(folder))) {
    if (clock.now() >= killAt) {
      await killAll(folder);
      return;
    }
    for (const { pid } of await membersOf(folder)) {
      if (told.has(pid)) continue;
      told.add(pid);
      terminate(pid);
    }
    await new Promise<void>((resolve) => clock.schedule(PAUSE_MS, resolve));
  }
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It has ended, or belongs to another user: SIGKILL of the whole group follows.
  }
}
