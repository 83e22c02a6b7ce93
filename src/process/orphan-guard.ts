import type { Clock } from '../timing/clock.js';
import { isGroupAlive, signalGroup } from './end-group.js';
import { Guardian } from './guardian.js';
import { hostIdentity, identify, isRunning } from './process-identity.js';
import { findRuns, RunFile, type RunProcess, removeRun } from './run-file.js';

/** Registers the process groups that must not outlive the gateway. */
export interface GroupGuard {
  /**
   * Call this right before the leader of a group is spawned, and put the result into the leader's environment. Call
   * `retract` or `add` in the same tick.
   */
  announce(): Readonly<Record<string, string>>;
  /** The announced leader could not be spawned. */
  retract(): void;
  /** The leader was spawned. */
  add(pgid: number): void;
  /** No member of the group is left. */
  remove(pgid: number): void;
}

/** What the guard logs; a `Logger` fits. */
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
 * Ends the process groups that a killed gateway leaves behind. The guardian ends them at once. If the guardian was
 * killed too, the next gateway finds the groups in the run file and ends them. No error here stops or delays the gateway.
 */
export class OrphanGuard implements GroupGuard {
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

  announce(): Readonly<Record<string, string>> {
    return this.#guardian.announce();
  }

  retract(): void {
    this.#guardian.retract();
  }

  add(pgid: number): void {
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

  remove(pgid: number): void {
    this.#groups.delete(pgid);
    this.#guardian.remove(pgid);
    this.#runFile.remove(pgid);
  }

  /** Ends the groups of gateways that were killed together with their guardians. Never rejects. */
  async sweep(): Promise<void> {
    const runs = await findRuns({
      folder: this.#options.runFolder,
      host: this.#host,
      onIgnored: (file, reason) =>
        this.#options.logger.warn(
          { file, reason },
          'a run file is ignored: what its Trunkline left behind may still run',
        ),
    });
    await Promise.all(
      runs.map(async ({ file, run }) => {
        if (await isRunning(run.gateway)) return;
        const remains = await Promise.all(
          run.groups.map(async (leader) => ((await exists(leader)) ? [leader.pid] : [])),
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

  /** Resolves when the guardian and the run file are gone, or at once if groups are left. */
  async close(): Promise<void> {
    await Promise.all([this.#guardian.close(), this.#runFile.settled()]);
  }
}

/** Whether the process exists, even as a zombie. A group can outlive its leader, and keeps the leader's pid taken. */
async function exists({ pid, startTime }: RunProcess): Promise<boolean> {
  return (await identify(pid))?.startTime === startTime;
}

/** From SIGTERM to SIGKILL for what a killed gateway left behind, the same as in the guardian. */
const ORPHAN_KILL_AFTER_MS = 2_000;
/** How often the groups are polled. */
const PAUSE_MS = 100;

/** Ends process groups of a gateway that was killed: SIGTERM, SIGKILL after two seconds. Resolves when all have ended or SIGKILL was sent. */
async function endOrphans(pgids: readonly number[], clock: Clock): Promise<void> {
  const alive = () => pgids.filter((pgid) => isGroupAlive(pgid));
  const killAt = clock.now() + ORPHAN_KILL_AFTER_MS;
  for (const pgid of pgids) signalGroup(pgid, 'SIGTERM');
  while (alive().length > 0 && clock.now() < killAt) {
    await new Promise<void>((resolve) => clock.schedule(PAUSE_MS, resolve));
  }
  for (const pgid of alive()) signalGroup(pgid, 'SIGKILL');
}
