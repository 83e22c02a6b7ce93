import type { Logger } from '../observe/logger.js';
import { endOrphans } from '../process/end-orphans.js';
import { Guardian } from '../process/guardian.js';
import { hostIdentity, identify } from '../process/process-identity.js';
import { findRuns, RunFile, type RunProcess, removeRun } from '../process/run-file.js';
import type { Clock } from '../timing/clock.js';

export interface OrphanGuardOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where gateways say what runs for them. */
  readonly runFolder: string;
}

/**
 * Ends what we leave behind when we are killed: the guardian does it at once, and should that be killed too, the
 * gateway that starts next, which finds our groups in the run file. Nothing of this can fail or delay anything else.
 */
export class OrphanGuard {
  readonly #options: OrphanGuardOptions;
  readonly #host = hostIdentity();
  readonly #guardian: Guardian;
  readonly #runFile: RunFile;
  readonly #groups = new Set<number>();

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

  /** To be called right before a group's leader is spawned, with what is returned in its environment. */
  beginning(): Readonly<Record<string, string>> {
    return this.#guardian.announce();
  }

  /** What was to begin could not be spawned. */
  notBegun(): void {
    this.#guardian.retract();
  }

  /** To be called in the tick in which a group's leader was spawned. */
  begun(pgid: number): void {
    this.#groups.add(pgid);
    this.#guardian.add(pgid);
    void identify(pgid).then(
      (leader) => {
        if (leader !== undefined && this.#groups.has(pgid))
          this.#runFile.add({ pid: pgid, startTime: leader.startTime });
      },
      (err) => this.#options.logger.debug({ err, pgid }, 'not in the run file'),
    );
  }

  /** To be called when no member of the group is left. */
  gone(pgid: number): void {
    this.#groups.delete(pgid);
    this.#guardian.remove(pgid);
    this.#runFile.remove(pgid);
  }

  /** Ends what gateways left behind that were killed together with their guardians. Never rejects. */
  async sweep(): Promise<void> {
    const runs = await findRuns(this.#options.runFolder, this.#host);
    await Promise.all(
      runs.map(async ({ file, run }) => {
        if (await isRunning(run.gateway)) return;
        const remains = await Promise.all(
          run.groups.map(async (leader) => ((await isThere(leader)) ? [leader.pid] : [])),
        );
        const pgids = remains.flat();
        if (pgids.length > 0) {
          this.#options.logger.warn({ pgids, gateway: run.gateway.pid }, 'ending what a killed Trunkline left behind');
        }
        await endOrphans(pgids, this.#options.clock);
        await removeRun(file);
      }),
    ).catch((err) => this.#options.logger.warn({ err }, 'what a killed Trunkline left behind may still run'));
  }

  /** Resolves, soon, when guardian and run file are gone, unless groups are left. */
  async close(): Promise<void> {
    await Promise.all([this.#guardian.close(), this.#runFile.settled()]);
  }
}

/** Whether it is there, dead or alive: a group can outlive its leader, whose pid nobody else gets meanwhile. */
async function isThere({ pid, startTime }: RunProcess): Promise<boolean> {
  return (await identify(pid))?.startTime === startTime;
}

/** Whether it is that process, and not ended. */
export async function isRunning({ pid, startTime }: RunProcess): Promise<boolean> {
  const identity = await identify(pid);
  return identity?.startTime === startTime && !identity.isZombie;
}
