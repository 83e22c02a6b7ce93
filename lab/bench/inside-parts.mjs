/** The parts of a run in their order: what is said of each, and how long in a full and in a short run. */
export const PARTS = {
  calls: {
    title: ({ rounds, calls, inFlight }, runs) =>
      `Small calls, ${inFlight} in flight; ${runs} × ${rounds} rounds of ${calls}:`,
    full: { rounds: 40, calls: 10_000, inFlight: 64 },
    short: { rounds: 2, calls: 1_000, inFlight: 64 },
  },
  scan: {
    title: ({ rounds, scans }, runs) =>
      `The scan of a message with 1 MiB of text; ${runs} × ${rounds} rounds of ${scans}:`,
    full: { rounds: 40, scans: 10 },
    short: { rounds: 2, scans: 2 },
  },
  plainScan: {
    title: ({ rounds, scans }, runs) => `The same without WebAssembly; ${runs} × ${rounds} rounds of ${scans}:`,
    full: { rounds: 40, scans: 10 },
    short: { rounds: 2, scans: 2 },
  },
  lines: {
    title: ({ rounds, mib }, runs) =>
      `Lines, read in pieces of 64 KiB at most; ${runs} × ${rounds} rounds of ${mib} MiB:`,
    full: { rounds: 20, mib: 40 },
    short: { rounds: 2, mib: 20 },
  },
};
