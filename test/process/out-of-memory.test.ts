import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createPlatform } from '../../src/app/platform.js';
import { FloodQueue } from '../../src/io/streams/flood-bound.js';
import type { ControlGroup } from '../../src/process/control-group.js';
import type { ChildSpec } from '../../src/supervision/child-spec.js';
import { legacyDialect } from '../../src/upstream/legacy/legacy-dialect.js';
import type { UpstreamListener } from '../../src/upstream/port.js';
import { ServerEra } from '../../src/upstream/server-era.js';
import { StdioDialer } from '../../src/upstream/stdio/stdio-dialer.js';
import { SILENT_LISTENER } from '../support/in-memory-upstream.js';
import { until } from '../support/processes.js';

const LAB = fileURLToPath(new URL('../fixtures/servers/lab.mjs', import.meta.url));
const REASON = 'it needed more memory than its limit of 1 GiB, and the system killed it';

/** A running server whose control group says why the kernel killed it. */
async function connect(listener: Partial<UpstreamListener>) {
  let isAdopted = false;
  const group = {
    folder: '/cgroup/1-lab',
    adopt: async () => {
      isAdopted = true;
    },
    members: async () => [],
    isEmpty: async () => true,
    kill: async () => {},
    outOfMemory: () => REASON,
    remove: async () => {},
  };
  const platform = createPlatform();
  const dialer = new StdioDialer({
    ...platform,
    dialect: legacyDialect,
    floods: new FloodQueue(platform.clock),
    orphanGuard: { announce: () => '0'.repeat(32), add: () => {}, remove: () => {}, release: () => {} },
    controlGroups: { open: async () => group as unknown as ControlGroup },
    headStart: undefined,
    resources: { add: () => () => {} },
    logger: { debug: () => {}, info: () => {}, error: () => {} },
    environment: process.env,
    hasManyConnections: false,
    onInternalError: (error) => {
      throw error;
    },
  });
  const spec: ChildSpec = {
    ...{ key: 'lab', command: process.execPath, args: [LAB], cwd: process.cwd(), env: {}, leaveRunning: false },
    timeouts: { startMs: 30_000, stopGraceMs: 0, killAfterMs: 0 },
    restart: {
      ...{ firstDelayMs: 1, maxDelayMs: 1, budget: 1, stableAfterMs: 1 },
      ...{ parkedProbeMs: 1, parkedProbeMaxMs: 1, demandEveryMs: 1 },
    },
  };
  const stderr = { freeSpace: new Uint8Array(1024), filled: () => {} };
  const log = { add: () => {}, addJunk: () => {}, stderr, end: () => {} };
  const dialed = dialer.dial(
    {
      ...{ spec, generation: 1, log, maxFrameBytes: 1024 ** 2, maxUnwrittenBytes: 1024 ** 2 },
      era: new ServerEra('legacy'),
      profile: Promise.resolve({ clientInfo: { name: 'test', version: '1' }, capabilities: {} }),
    },
    { ...SILENT_LISTENER, ...listener },
  );
  const outcome = await dialed.connection;
  if (outcome.kind === 'failed') throw new Error(outcome.reason);
  await until('the control group has it', () => isAdopted);
  return { dialed, connection: outcome.connection };
}

describe.runIf(process.platform !== 'win32')('a server that the kernel killed for its memory', () => {
  it('F92: is restarted for that reason, which its calls in flight get, too', async () => {
    const seen: string[] = [];
    const { dialed, connection } = await connect({
      unfit: (reason) => seen.push(reason),
      closed: ({ signal }) => seen.push(`closed by ${signal}`),
    });
    const call = connection.request(
      'tools/call',
      { name: 'wait', arguments: { delayMs: 60_000 } },
      {
        idleMs: 60_000,
        maxMs: 60_000,
      },
    );
    process.kill(dialed.pid ?? 0, 'SIGKILL');
    expect(await call).toMatchObject({ kind: 'failed', reason: 'exited', because: REASON });
    expect(seen).toEqual([REASON, 'closed by SIGKILL']);
    await dialed.end({ termAfterMs: 0, killAfterMs: 0 });
  });
});
