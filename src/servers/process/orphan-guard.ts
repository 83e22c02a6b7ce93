import { randomBytes } from 'node:crypto';
import { hostIdentity, identify, isRunning } from '../../host/process/processes.js';
import { findRuns, type Run, RunFile, type RunProcess, removeRun } from '../../host/process/run-file.js';
import type { Clock } from '../../wire/timing/clock.js';
import { endGroup } from './end-group.js';
import { familyVariable } from './environment.js';
import { endFamily, findFamily } from './family.js';
import { Guardian } from './guardian.js';
import { processTrees } from './process-trees.js';
import { closedStreams } from './spawn-child.js';

/** Registers the process groups and families that must not outlive the gateway. */
export interface GroupGuard {
  /**
   * Call this right before the leader of a group is spawned, and put the `familyVariable` of the mark into the leader's
   * environment. Each mark is new and cannot be guessed. Call `add` or `release` in the same tick.
   */
  announce(): string;
  /** The leader was spawned. With a mark, its family must not outlive the gateway either. */
  add(pgid: number, mark?: string): void;
  /** No member of the group is left, so the system can reuse its id from then on. */
  remove(pgid: number): void;
  /** No member of the family is left, or its members may outlive the gateway. */
  release(mark: string): void;
}

/** Log of the guard; a `Logger` fits. */
interface OrphanGuardLog {
  warn(facts: object, message: string): void;
  debug(facts: object, message: string): void;
}

interface OrphanGuardOptions {
  readonly clock: Clock;
  readonly logger: OrphanGuardLog;
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
  readonly #groupsOfMarks = new Map<string, number>();

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
      this.#groupsOfMarks.set(mark, pgid);
      processTrees?.follow(mark, pgid);
    }
    this.#guardian.add(pgid);
    void identify(pgid).then(
      (leader) => {
        if (leader !== undefined && this.#groups.has(pgid))
          this.#runFile.add({ pid: pgid, startTime: leader.startTime, ...(mark && { mark }) });
      },
      (err) => this.#options.logger.debug({ err, pgid }, 'not in the run file'),
    );
  }

  remove(pgid: number): void {
    const hasFamily = [...this.#groupsOfMarks.values()].includes(pgid);
    // A guardian that follows trees finds the family by its leader, not by the mark.
    if (!hasFamily || processTrees === undefined) this.#guardian.remove(pgid);
    if (!hasFamily) this.#forget(pgid);
  }

  release(mark: string): void {
    this.#guardian.removeFamily(mark);
    processTrees?.forget(mark);
    const pgid = this.#groupsOfMarks.get(mark);
    this.#groupsOfMarks.delete(mark);
    if (pgid === undefined) return;
    if (processTrees !== undefined) this.#guardian.remove(pgid);
    this.#forget(pgid);
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

  async #endRun({ gateway, groups }: Run): Promise<void> {
    const { clock, logger } = this.#options;
    const leaders = await Promise.all(groups.map(async (leader) => ((await exists(leader)) ? [leader.pid] : [])));
    const pgids = leaders.flat();
    const marks = groups.flatMap(({ mark }) => mark ?? []);
    for (const { mark, pid, startTime } of groups)
      if (mark !== undefined) processTrees?.follow(mark, pid, Number(startTime));
    const families = await Promise.all(marks.map((mark) => findFamily(mark)));
    const pids = families.flat().map(({ pid }) => pid);
    if (pgids.length + pids.length > 0) {
      logger.warn({ pgids, pids, gateway: gateway.pid }, 'ending what a killed Trunkline left behind');
    }
    const exit = Promise.resolve({ code: null, signal: null });
    await Promise.all(pgids.map((pid) => endGroup({ ...closedStreams(), pid, exit }, ORPHAN_LADDER, clock)));
    await Promise.all(marks.map((mark) => endFamily(mark, ORPHAN_LADDER.killAfterMs, clock)));
  }

  /** Resolves when the guardian and the run file are gone, or at once if groups are left. */
  async close(): Promise<void> {
    await Promise.all([this.#guardian.close(), this.#runFile.settled()]);
  }
}

/** Whether the process exists, even as a zombie. A group can outlive its leader, and keeps the leader's pid taken. */
async function exists({ pid, startTime }: RunProcess): Promise<boolean> {
  return (await identify(pid))?.startTime === startTime;
}

/** Whether this process has inherited a mark. */
function bears(mark: string): boolean {
  return Object.keys(familyVariable(mark)).some((name) => name in process.env);
}

/** Times for ending the groups and families of a killed gateway, the same as in the guardian. */
const ORPHAN_LADDER = { termAfterMs: 0, killAfterMs: 2_000 };
