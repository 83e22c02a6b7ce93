import { instanceStateOf, type StatusFacts } from './status-facts.js';
import type { ServerReport } from './status-report.js';

/** One instance of a server, and what its processes use. What is not known is null. */
export interface ProcessReport {
  readonly server: string;
  /** Unique, also among the instances of one server. */
  readonly id: string;
  readonly state: ServerReport['state'];
  readonly pid: number | null;
  /** The revision of MCP that the process speaks. Absent in answers of older versions. */
  readonly revision?: string | null;
  readonly memoryBytes: number | null;
  /** Present share of one processor. */
  readonly cpuPercent: number | null;
  readonly processes: number | null;
  readonly calls: number;
  readonly inFlight: number;
  readonly clients: number;
}

/** All instances of all servers, in the order of the configuration. */
export function listProcesses({ servers, usageOf }: StatusFacts): ProcessReport[] {
  return servers.flatMap(({ backend: { key }, instances }) =>
    instances.map(({ backend, lifecycle }) => {
      const { counters, connection } = backend.dispatcher;
      const pid = lifecycle?.pid;
      const usage = pid === undefined ? undefined : usageOf(pid);
      return {
        server: key,
        id: backend.id,
        state: instanceStateOf({ backend, lifecycle }),
        pid: pid ?? null,
        revision: connection?.revision ?? null,
        memoryBytes: usage?.memoryBytes ?? null,
        cpuPercent: usage?.cpuShare === undefined ? null : Math.round(usage.cpuShare * 100),
        processes: usage?.processes ?? null,
        calls: counters.calls,
        inFlight: connection?.inFlight ?? 0,
        clients: backend.clients.size,
      };
    }),
  );
}
