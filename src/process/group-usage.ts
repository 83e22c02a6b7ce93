import { type GroupUsage, membersOf } from '../supervision/resource-limits.js';
import { type MemoryKind, memoryOf, readProcessTable, type TableRow } from './process-table.js';

/** A process group whose usage is wanted. */
export interface UsageRequest {
  /** The pid of the leader, which is the id of the group. */
  readonly pid: number;
  /**
   * If several processes together have more resident memory than this, what they share is counted once. That costs up
   * to 30 ms of processor time for each GiB.
   */
  readonly lookCloselyAboveBytes: number;
}

/** Reads what some process groups use; `undefined` on a system that does not tell. A group that has ended is left out. */
export async function readUsage(
  requests: readonly UsageRequest[],
): Promise<ReadonlyMap<number, GroupUsage> | undefined> {
  const table = await readProcessTable();
  if (table === undefined) return undefined;
  const members = membersOf(new Set(requests.map(({ pid }) => pid)), table);
  const usages = new Map<number, GroupUsage>();
  for (const { pid, lookCloselyAboveBytes } of requests) {
    const usage = await usageOf(members.get(pid) ?? [], lookCloselyAboveBytes);
    if (usage.processes > 0) usages.set(pid, usage);
  }
  return usages;
}

async function usageOf(members: readonly TableRow[], lookCloselyAboveBytes: number): Promise<GroupUsage> {
  const resident = await memoryOfAll(members, 'resident');
  const isShared = members.length > 1 && resident > lookCloselyAboveBytes;
  return {
    memoryBytes: isShared ? await memoryOfAll(members, 'proportional') : resident,
    processes: members.length,
    cpuMs: members.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
  };
}

async function memoryOfAll(members: readonly TableRow[], kind: MemoryKind): Promise<number> {
  let sum = 0;
  for (const { pid, residentBytes } of members) {
    sum += residentBytes ?? (await memoryOf(pid, kind)) ?? (await memoryOf(pid, 'resident')) ?? 0;
  }
  return sum;
}
