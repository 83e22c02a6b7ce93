/** What the processes of one server use together. */
export interface GroupUsage {
  /** Resident memory; where it was looked at closely, memory that several of the processes share counts once. */
  readonly memoryBytes: number;
  /** Processes that run. */
  readonly processes: number;
  /** Processor time of the processes that run, in milliseconds. */
  readonly cpuMs: number;
}

/** What the processes of one server may use together. Absent members have no limit. */
export interface ResourceLimits {
  readonly memoryBytes?: number;
  readonly processes?: number;
}

export const NO_LIMITS: ResourceLimits = {};

/** Which limits the usage exceeds. */
export function exceeded({ memoryBytes, processes }: GroupUsage, limits: ResourceLimits): (keyof ResourceLimits)[] {
  const over: (keyof ResourceLimits)[] = [];
  if (memoryBytes > (limits.memoryBytes ?? Number.POSITIVE_INFINITY)) over.push('memoryBytes');
  if (processes > (limits.processes ?? Number.POSITIVE_INFINITY)) over.push('processes');
  return over;
}

/** One process of the machine. */
export interface ProcessRow {
  readonly pid: number;
  readonly ppid: number;
  readonly pgid: number;
  readonly cpuMs: number;
}

/**
 * Finds the processes of each group: its members, and their descendants that have left the group. A process that has
 * left the group belongs to nobody once its parent has ended.
 */
export function membersOf<Row extends ProcessRow>(
  pgids: ReadonlySet<number>,
  rows: readonly Row[],
): ReadonlyMap<number, readonly Row[]> {
  const byPid = new Map(rows.map((row) => [row.pid, row]));
  const groups = new Map<number, Row[]>([...pgids].map((pgid) => [pgid, []]));
  for (const row of rows) groups.get(groupOf(row, pgids, byPid) ?? -1)?.push(row);
  return groups;
}

/** The innermost of the groups that the process or one of its ancestors is in. */
function groupOf(
  row: ProcessRow,
  pgids: ReadonlySet<number>,
  byPid: ReadonlyMap<number, ProcessRow>,
): number | undefined {
  const seen = new Set<number>();
  // The table is not read at one instant, so a reused pid can close a circle.
  for (let each: ProcessRow | undefined = row; each !== undefined && !seen.has(each.pid); each = byPid.get(each.ppid)) {
    if (pgids.has(each.pgid)) return each.pgid;
    seen.add(each.pid);
  }
  return undefined;
}
