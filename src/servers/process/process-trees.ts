import { HAS_GROUPS, type ListedProcess } from '../../host/process/processes.js';
import type { RunProcess } from '../../host/process/run-file.js';

export interface TreeMember {
  readonly pid: number;
  /** A time at which it ran, in milliseconds since 1970: its start if `startTime` is known. 0 if `startedAtMs` is 0, as on POSIX. */
  readonly seenAtMs: number;
  startTime?: string;
  startedAtMs?: number;
}

/**
 * Brings a tree up to date with a list of processes, and returns those of the tree that run. Adds the children of its processes,
 * and the groups of these. It needs lists while the parents run, because a process whose parent has ended is lost. On Windows, its
 * `ppid` remains, but only the times tell its parent from a later process with the same pid. `nowMs` is the time at which the list
 * was complete. The guardian gets the text of this function, so it uses nothing from outside.
 */
export function growTree<P extends ListedProcess>(tree: TreeMember[], processes: readonly P[], nowMs: number): P[] {
  const isSame = (it: TreeMember, each: P) => it.pid === each.pid && it.startTime === each.startTime;
  const has = (each: P) => tree.some((it) => isSame(it, each));
  for (const member of tree) {
    // The clock of the list may be a little ahead. A later process with this pid has begun long after.
    const first = processes.find(({ pid, startTime, startedAtMs }) => {
      return (
        pid === member.pid && startTime === (member.startTime ?? startTime) && startedAtMs <= member.seenAtMs + 100
      );
    });
    if (first === undefined) continue;
    member.startTime = first.startTime;
    member.startedAtMs = first.startedAtMs;
  }
  for (let isGrown = true; isGrown; ) {
    isGrown = false;
    const groups = new Set(processes.filter(has).map(({ pgid }) => pgid));
    for (const each of processes) {
      const { pid, ppid, pgid, startTime, startedAtMs } = each;
      const parent = tree.find((it) => it.pid === ppid && (it.startedAtMs ?? it.seenAtMs - 1_000) <= startedAtMs);
      if ((parent === undefined && !groups.has(pgid)) || startedAtMs > nowMs || has(each)) continue;
      // The pid of the parent may belong to a later process, which has started this one.
      const current = processes.find((it) => it.pid === ppid);
      const isForeign = current !== undefined && !has(current) && current.startedAtMs <= startedAtMs;
      if (isForeign && !groups.has(pgid)) continue;
      tree.push({ pid, seenAtMs: startedAtMs, startTime, startedAtMs });
      isGrown = true;
    }
  }
  const running = processes.filter(has);
  // Those that have ended start no others.
  tree.splice(0, tree.length, ...tree.filter((member) => running.some((each) => isSame(member, each))));
  return running;
}

/**
 * The processes that servers have started, as trees below their leaders, as far as lists of processes have shown them while they
 * ran. Finds those that hide the mark of their family, and replaces groups and marks on Windows, which has neither.
 */
export class ProcessTrees {
  readonly #timeOf: (startTime?: string) => number;
  readonly #trees = new Map<string, { readonly leader: number; readonly tree: TreeMember[] }>();

  /** `timeOf` gives a start time, or else now, on the scale of `startedAtMs`. */
  constructor(timeOf: (startTime?: string) => number) {
    this.#timeOf = timeOf;
  }

  /** Call this when the leader of a family runs. `known` are processes of the family, with the leader if its start time is known. */
  follow(mark: string, leader: number, known: readonly RunProcess[] = []): void {
    const tree: TreeMember[] = known.map(({ pid, startTime }) => ({
      pid,
      startTime,
      seenAtMs: this.#timeOf(startTime),
    }));
    if (known.length === 0) tree.push({ pid: leader, seenAtMs: this.#timeOf() });
    this.#trees.set(mark, { leader, tree });
  }

  /** Call this when no process of the family is left, or when they may outlive the gateway. */
  forget(mark: string): void {
    this.#trees.delete(mark);
  }

  /** The mark of the family with this leader, if it is followed. */
  markOf(leader: number | undefined): string | undefined {
    return [...this.#trees].find(([, each]) => each.leader === leader)?.[0];
  }

  /** The processes of a family among all that are `listed`, as they are now; none if it is not followed. */
  family(mark: string | undefined, listed: readonly ListedProcess[]): readonly ListedProcess[] {
    const followed = this.#trees.get(mark ?? '');
    return followed === undefined ? [] : growTree(followed.tree, listed, this.#timeOf());
  }
}

export const processTrees = new ProcessTrees((startTime) => (HAS_GROUPS ? 0 : Number(startTime ?? Date.now())));
