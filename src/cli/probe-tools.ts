import { compose } from '../app/compose.js';
import { LocalClient } from '../app/local-client.js';
import { FINAL_LADDER } from '../app/run-to-end.js';
import { approvalPlaces, runFolder } from '../app/user-files.js';
import type { Config, ServerConfig } from '../config/config.js';
import { reportStatus } from '../gateway/status/status.js';
import type { Logger } from '../observe/logger.js';
import type { KnownSecrets } from '../observe/redact.js';
import type { StopLadder } from '../supervision/launcher.js';
import { type Diagnosis, diagnose } from './diagnosis.js';
import { FirstStarts } from './first-starts.js';
import { triedOnce } from './run-once.js';
import type { Tools } from './tool-changes.js';
import { listAllTools } from './tools.js';

export interface ProbeOptions {
  readonly config: Config;
  readonly server: ServerConfig;
  readonly logger: Logger;
  readonly secrets: KnownSecrets;
  readonly ending: AbortSignal;
  readonly stoppers: Set<(ladder: StopLadder) => Promise<void>>;
}

export type Probed = { readonly tools: Tools } | { readonly fault: Diagnosis; readonly log: readonly string[] };

/** Starts a server once, lists its tools under their original names, and stops it. */
export async function probeTools({ config, server, logger, secrets, ending, stoppers }: ProbeOptions): Promise<Probed> {
  const { key } = server;
  const whole = triedOnce({ ...server, prefix: '', tools: { deny: [] }, approval: 'off' });
  const starts = new FirstStarts({ keys: [key], now: () => performance.now(), onSettled: () => {} });
  const composition = compose({
    config: { ...config, servers: [whole] },
    logger,
    secrets,
    environment: process.env,
    runFolder: runFolder(),
    approvals: approvalPlaces('once'),
  });
  composition.platform.events.subscribe('server.changed', ({ instance, snapshot }) => starts.moved(instance, snapshot));
  const stop = (ladder: StopLadder) => composition.stop(ladder);
  stoppers.add(stop);
  try {
    const client = await LocalClient.open(composition);
    composition.start();
    await starts.settled;
    ending.throwIfAborted();
    const [report] = reportStatus(composition.status(), key).servers;
    const fault = report && diagnose(config.file, whole, report);
    if (fault !== undefined) return { fault, log: report?.log ?? [] };
    const { tools } = JSON.parse(await listAllTools(client)) as { tools: { name: string }[] };
    const own = tools.filter(({ name }) => !name.startsWith(OWN_PREFIX));
    return { tools: new Map(own.map((tool) => [tool.name, { ...tool }])) };
  } finally {
    await stop(FINAL_LADDER);
    stoppers.delete(stop);
  }
}

const OWN_PREFIX = 'trunkline__';
