// The facts of a status, without processes: one server `a` with chosen facts, and a server `b` that never started.

import type { ChildSnapshot } from '../../src/spec/server-state.js';
import { reportStatus, type StatusReport } from '../../src/status/status.js';
import type { ServerFacts, StatusFacts } from '../../src/status/status-facts.js';
import { FairMemory, SharedLimit } from '../../src/wire/io/shared-limit.js';
import { type ServerScript, scriptGateway, startGateway } from '../support/scripted-gateway.js';

/** A server that runs for a minute. */
export const READY: ChildSnapshot = {
  state: 'ready',
  pid: 4711,
  generation: 1,
  restarts: 0,
  consecutiveFailures: 0,
  readySince: 40_000,
  retryAt: undefined,
  missing: undefined,
  installingSince: undefined,
  lastExit: undefined,
  lastFailure: undefined,
};

/** A list without entries. */
export const NOTHING = {
  exposed: [],
  quarantined: [],
  repaired: [],
  denied: [],
  truncated: null,
  unchanged: 0,
  failure: null,
  hiding: [],
};

/** A configuration file that is in force. */
export const SOUND = { file: '/etc/trunkline.yaml', fault: undefined, reloads: 0, needsRestart: [] };

export const FAULT = { report: 'trunkline.yaml:3:1: no servers', since: 88_000, isPreviousInForce: false };

/** The view of a client without servers. */
export const NOTHING_SEEN = { backends: new Map(), catalogs: scriptGateway({ servers: {} }).gateway.catalogs };

interface Given {
  readonly script?: ServerScript;
  readonly lifecycle?: Partial<ChildSnapshot> | undefined;
  readonly problem?: ServerFacts['problem'];
  readonly isRemote?: boolean;
  readonly logLines?: readonly string[];
  readonly cause?: readonly string[];
  readonly sandboxRemarks?: readonly string[];
  readonly facts?: Partial<StatusFacts>;
  readonly isStarted?: boolean;
}

/** Facts about a backend with nothing but its process. */
export function factsOf(backend: ServerFacts['backend'], lifecycle: ServerFacts['lifecycle'] = READY): ServerFacts {
  return { backend, lifecycle, problem: undefined, logLines: [], cause: [], droppedLogBytes: 0, instances: [] };
}

/** One server `a`, by default started, and the facts about it 100 s after the start. */
export async function given({
  script = { tools: ['read'] },
  lifecycle,
  problem,
  isRemote = false,
  logLines = [],
  cause = [],
  sandboxRemarks,
  facts,
  isStarted = true,
}: Given = {}) {
  const world = scriptGateway({ servers: { a: script, b: {} } });
  if (isStarted) await world.server('a').start();
  const make = (): StatusFacts => ({
    now: 100_000,
    startedAt: 0,
    version: '1.2.3',
    config: SOUND,
    catalogs: world.gateway.catalogs,
    canRestart: false,
    redact: (text) => text.replaceAll('canary', '[redacted]'),
    waiting: new SharedLimit(1_024),
    partialFrames: new FairMemory(1_000),
    requestBodies: new FairMemory(1_000),
    internalErrorCount: 0,
    eventLoop: { p99Ms: 0, maxMs: 0 },
    usageOf: () => undefined,
    servers: [
      {
        ...factsOf(world.server('a').backend, { ...READY, ...lifecycle }),
        problem,
        isRemote,
        logLines,
        cause,
        sandboxRemarks,
      },
      { ...factsOf(world.server('b').backend), lifecycle: undefined },
    ],
    ...facts,
  });
  const report = () => reportStatus(make());
  return { ...world, make, report, one: () => report().servers[0] };
}

/** The report about servers that all run, each with the same tools. */
export async function manyReady(keys: readonly string[], tools: readonly string[] = ['read']): Promise<StatusReport> {
  const world = await startGateway({ servers: Object.fromEntries(keys.map((key) => [key, { tools }])) });
  const { make } = await given();
  const servers = keys.map((key): ServerFacts => {
    const { backend } = world.server(key);
    return { ...factsOf(backend), instances: [{ backend, lifecycle: READY, isUnclaimed: false }] };
  });
  return reportStatus({ ...make(), catalogs: world.gateway.catalogs, servers });
}
