import type { ChildSpec } from '../../../src/spec/server-spec.js';

/** A child with the default timeouts and restart policy. */
export function sampleSpec(key = 'files'): ChildSpec {
  return {
    key,
    command: 'server',
    args: [],
    cwd: '/',
    env: {},
    timeouts: { startMs: 60_000, stopGraceMs: 2_000, killAfterMs: 3_000 },
    restart: {
      firstDelayMs: 500,
      maxDelayMs: 30_000,
      budget: 5,
      stableAfterMs: 300_000,
      parkedProbeMs: 300_000,
      parkedProbeMaxMs: 3_600_000,
      demandEveryMs: 60_000,
    },
    leaveRunning: false,
  };
}

/** A child whose package has yet to be installed. */
export function missingSpec(key = 'files'): ChildSpec {
  const missing = {
    shown: 'pkg',
    name: 'pkg',
    version: undefined,
    bin: undefined,
    installScripts: false,
    foreignDependencies: false,
    isConfined: false,
    env: {},
    budgetMs: 300_000,
  };
  return { ...sampleSpec(key), missing };
}
