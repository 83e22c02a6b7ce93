import { growTree, type TreeMember, type WindowsProcess, windowsProcesses } from '../../host/process/windows.js';

/**
 * The processes that servers have started, as trees below their leaders. Stands for process groups and for the marks of families on
 * Windows, which has neither.
 */
export class ProcessTrees {
  readonly #list: () => Promise<readonly WindowsProcess[]>;
  readonly #trees = new Map<number, TreeMember[]>();
  readonly #leaders = new Map<string, number>();

  constructor(list: () => Promise<readonly WindowsProcess[]>) {
    this.#list = list;
  }

  /** Call this when the leader of a family runs. Its start time, in milliseconds since 1970, is found in the next list if absent. */
  follow(mark: string, pid: number, startedAtMs?: number): void {
    this.#leaders.set(mark, pid);
    this.#trees.set(pid, [{ pid, seenAtMs: startedAtMs ?? Date.now(), ...(startedAtMs && { startedAtMs }) }]);
  }

  /** Call this when no process of the family is left, or when they may outlive the gateway. */
  forget(mark: string): void {
    this.#trees.delete(this.#leaders.get(mark) ?? 0);
    this.#leaders.delete(mark);
  }

  has(pid: number | undefined): boolean {
    return pid !== undefined && this.#trees.has(pid);
  }

  /** The processes below a leader, and the leader, that run now; none if it is not followed. Rejects if they cannot be listed. */
  async below(pid: number): Promise<readonly WindowsProcess[]> {
    const tree = this.#trees.get(pid);
    if (tree === undefined) return [];
    const processes = await this.#list();
    return growTree(tree, processes, Date.now());
  }

  /** `below`, by the mark of the family. */
  async family(mark: string): Promise<readonly WindowsProcess[]> {
    return await this.below(this.#leaders.get(mark) ?? 0);
  }
}

/** The trees on Windows; `undefined` where the system has process groups. */
export const processTrees = process.platform === 'win32' ? new ProcessTrees(() => windowsProcesses.list()) : undefined;
