import { randomBytes } from 'node:crypto';
import { HAS_GROUPS, hostIdentity, identify, isRunning, listProcesses } from '../../host/process/processes.js';
import {
  findRuns,
  type GatewayRun,
  RunFile,
  type RunGroup,
  type RunProcess,
  removeRun,
} from '../../host/process/run-file.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { endGroup } from './end-group.js';
import { familyVariable } from './environment.js';
import { endFamily, findFamily } from './family.js';
import { Guardian, LOOK_AFTER_MS } from './guardian.js';
import { processTrees } from './process-trees.js';
import { closedStreams } from './spawn-child.js';

/** Registers the process groups and families that must not outlive the gateway. */
export interface GroupGuard {
  /**
   * Returns a new mark. Call this right before the leader of a group is spawned, and put the `familyVariable` of the mark into the
   * leader's environment. A mark cannot be guessed. Call `add` or `release` in the same tick.
   */
  announce(): string;
  /** The leader was spawned. With a mark, its family must not outlive the gateway either. */
  add(pgid: number, mark?: string): void;
  /** No member of the group is left, so the system can reuse its id from then on. */
  remove(pgid: number): void;
  /** No member of the family is left, or its members may outlive the gateway. */
  release(mark: string): void;
}

interface Family {
  /** The first process. The start time is empty until it is known. */
  leader: RunProcess;
  /** The processes outside of its group, as the guardian knows them. */
  others: readonly RunProcess[];
}

interface OrphanGuardOptions {
  readonly clock: Clock;
  readonly logger: { warn(facts: object, message: string): void; debug(facts: object, message: string): void };
  /** The folder in which each gateway lists its process groups. */
  readonly runFolder: string;
}

/**
 * Ends the process groups and families that a killed gateway leaves behind. The guardian ends them at once. If the guardian was
 * killed too, the next gateway finds them in the run file and ends them. No error here stops or delays the gateway.
 */
export class OrphanGuard implements GroupGuard {
  readonly #options: OrphanGuardOptions;
  readonly #host = hostIdentity();
  readonly #guardian: Guardian;
  readonly #runFile: RunFile;
  /** The groups that were added. A group stays until it is removed or, if it has a family, until the family is released. */
  readonly #groups = new Set<number>();
  readonly #families = new Map<string, Family>();
  #cancelLook: Cancel | undefined;
  #looks = 0;

  constructor(options: OrphanGuardOptions) {
    const { clock, logger, runFolder } = options;
    this.#options = options;
    this.#guardian = new Guardian({
      clock,
      onTrouble: (trouble) =>
        logger.warn({ trouble }, 'the guardian does not run: what Trunkline starts may outlive it if it is killed'),
    });
    const onFault = (err: unknown) =>
      logger.warn({ err }, 'the run file cannot be written: the next start will not know what runs now');
    const owner = async () => {
      const identity = await identify(process.pid);
      return identity && { host: this.#host, gateway: { pid: process.pid, startTime: identity.startTime } };
    };
    this.#runFile = new RunFile({ folder: runFolder, owner, onFault });
  }

  announce(): string {
    const mark = randomBytes(16).toString('hex');
    this.#guardian.addFamily(mark);
    return mark;
  }

  add(pgid: number, mark?: string): void {
    this.#groups.add(pgid);
    if (mark !== undefined) {
      this.#families.set(mark, { leader: { pid: pgid, startTime: '' }, others: [] });
      processTrees.follow(mark, pgid);
      this.#looks = 0;
      this.#planLook();
    }
    this.#guardian.add(pgid);
    void identify(pgid).then(
      (leader) => {
        if (leader === undefined || !this.#groups.has(pgid)) return;
        const found = { pid: pgid, startTime: leader.startTime };
        this.#runFile.add({ ...found, ...(mark && { mark }) });
        const family = this.#families.get(mark ?? '');
        if (family !== undefined) family.leader = found;
      },
      (err) => this.#options.logger.debug({ err, pgid }, 'not in the run file'),
    );
  }

  /** Plans the next list of the processes, for those that bear no mark. On Windows, the guardian lists them itself. */
  #planLook(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    if (!HAS_GROUPS || this.#families.size === 0) return;
    const pauseMs = LOOK_AFTER_MS[Math.min(this.#looks, LOOK_AFTER_MS.length - 1)] ?? 0;
    this.#cancelLook = this.#options.clock.schedule(pauseMs, () => {
      this.#looks += 1;
      void this.#look().finally(() => this.#planLook());
    });
  }

  /** Tells the guardian and the run file which processes run outside of the groups. Never rejects. */
  async #look(): Promise<void> {
    const listed = await listProcesses().catch(() => undefined);
    if (listed === undefined) return;
    for (const [mark, family] of this.#families) {
      const { pid: pgid } = family.leader;
      const found = processTrees.family(mark, listed);
      const before = family.others;
      family.others = found.filter((each) => each.pgid !== pgid).map(({ pid, startTime }) => ({ pid, startTime }));
      const gone = missing(before, family.others);
      const come = missing(family.others, before);
      for (const each of gone) this.#guardian.removeProcess(each);
      for (const each of come) this.#guardian.addProcess(each);
      const { leader, others } = family;
      if (gone.length + come.length > 0 && leader.startTime !== '') this.#runFile.add({ ...leader, mark, others });
    }
  }

  remove(pgid: number): void {
    const hasFamily = [...this.#families.values()].some(({ leader }) => leader.pid === pgid);
    // A guardian that follows trees finds the family by its leader, not by the mark.
    if (!hasFamily || HAS_GROUPS) this.#guardian.remove(pgid);
    if (!hasFamily) this.#forget(pgid);
  }

  release(mark: string): void {
    this.#guardian.removeFamily(mark);
    processTrees.forget(mark);
    const family = this.#families.get(mark);
    this.#families.delete(mark);
    if (family === undefined) return;
    for (const other of family.others) this.#guardian.removeProcess(other);
    if (!HAS_GROUPS) this.#guardian.remove(family.leader.pid);
    this.#forget(family.leader.pid);
    if (this.#families.size === 0) this.#planLook();
  }

  #forget(pgid: number): void {
    this.#groups.delete(pgid);
    this.#runFile.remove(pgid);
  }

  /** Ends the processes of gateways that were killed together with their guardians. Never rejects. */
  async sweep(): Promise<void> {
    const { logger, runFolder } = this.#options;
    const runs = await findRuns({
      folder: runFolder,
      host: this.#host,
      onIgnored: (file, reason) =>
        logger.warn({ file, reason }, 'a run file is ignored: what its Trunkline left behind may still run'),
    });
    await Promise.all(
      runs.map(async ({ file, run }) => {
        const isOwn = run.groups.some(({ mark }) => mark !== undefined && bears(mark));
        // This gateway descends from a server of that run. It must not end its ancestors; another gateway has to.
        if (isOwn || (await isRunning(run.gateway))) return;
        await this.#endRun(run);
        await removeRun(file);
      }),
    ).catch((err) => logger.warn({ err }, 'what a killed Trunkline left behind may still run'));
  }

  async #endRun({ gateway, groups }: GatewayRun): Promise<void> {
    const { clock, logger } = this.#options;
    const leaders = await Promise.all(groups.map(async (leader) => ((await exists(leader)) ? [leader.pid] : [])));
    const pgids = leaders.flat();
    const marks = groups.flatMap(({ mark }) => mark ?? []);
    const families = await Promise.all(groups.map(findLeftFamily));
    const pids = families.flat().map(({ pid }) => pid);
    if (pgids.length + pids.length > 0) {
      logger.warn({ pgids, pids, gateway: gateway.pid }, 'ending what a killed Trunkline left behind');
    }
    const exit = Promise.resolve({ code: null, signal: null });
    await Promise.all(pgids.map((pid) => endGroup({ ...closedStreams(), pid, exit }, ORPHAN_LADDER, clock)));
    await Promise.all(marks.map((mark) => endFamily(mark, ORPHAN_LADDER.killAfterMs, clock)));
    for (const mark of marks) processTrees.forget(mark);
  }

  /** Resolves when the run file is up to date, and the guardian has ended or still ends groups. */
  async close(): Promise<void> {
    this.#cancelLook?.();
    await Promise.all([this.#guardian.close(), this.#runFile.settled()]);
  }
}

/** Whether the process exists, even as a zombie. A group can outlive its leader, and keeps the leader's pid taken. */
async function exists({ pid, startTime }: RunProcess): Promise<boolean> {
  return (await identify(pid))?.startTime === startTime;
}

/** The processes that a killed gateway has left of a family; none if the family may outlive it. */
export async function findLeftFamily({ mark, pid, startTime, others = [] }: RunGroup): Promise<readonly RunProcess[]> {
  if (mark === undefined) return [];
  processTrees.follow(mark, pid, [{ pid, startTime }, ...others]);
  return await findFamily(mark);
}

function missing(from: readonly RunProcess[], among: readonly RunProcess[]): readonly RunProcess[] {
  return from.filter((each) => !among.some((it) => it.pid === each.pid && it.startTime === each.startTime));
}

/** Whether this process has inherited a mark. */
function bears(mark: string): boolean {
  return Object.keys(familyVariable(mark)).some((name) => name in process.env);
}

/** Times for ending the groups and families of a killed gateway, the same as in the guardian. */
const ORPHAN_LADDER = { termAfterMs: 0, killAfterMs: 2_000 };
