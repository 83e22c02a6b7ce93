import type { Gateway } from '../gateway/gateway.js';
import type { EventSource } from '../observe/events/event-bus.js';
import type { Logger } from '../observe/logger.js';
import type { Cancel, Clock } from '../timing/clock.js';
import type { StdioClient } from './stdio-client.js';

/** How long a client that has closed stdin still gets answers. Its host may send SIGTERM after two seconds, too. */
const DRAIN_MS = 2_000;
/** The first check whether somebody still reads stdout. Each further check comes after twice the time. */
const FIRST_PROBE_MS = 100;

export interface DrainOptions {
  readonly clock: Clock;
  readonly events: EventSource;
  readonly gateway: Pick<Gateway, 'isReady' | 'pool'>;
  /** How long requests wait for servers that are starting. The drain begins that much later at most. */
  readonly startupWaitMs: number;
  readonly logger: Pick<Logger, 'warn'>;
  /** Aborted at a signal, which ends the drain. */
  readonly ending: AbortSignal;
}

/**
 * Resolves when the client has left. A client that closes stdin still gets the answers that come within the drain. The
 * drain begins when no server is starting any more. It ends at once when all requests are answered, when stdout has no
 * reader, or at a signal, because the signal also ends the servers.
 */
export async function drainClient(client: StdioClient, options: DrainOptions): Promise<void> {
  void client.inputEnded.then(() => {
    const close = () => client.close();
    if (options.ending.aborted) close();
    options.ending.addEventListener('abort', close);
    const cancel = [limitDrain(client, options), probeRepeatedly(client, options.clock, FIRST_PROBE_MS)];
    void client.left.then(() => {
      for (const each of cancel) each();
    });
  });
  await client.left;
}

/** Closes the client when the drain is over. `end` says what ends then. */
export function limitDrain(
  client: Pick<StdioClient, 'inFlight' | 'close'>,
  { clock, events, gateway, startupWaitMs, logger }: DrainOptions,
  end = 'Trunkline ends',
): Cancel {
  let cancelDrain: Cancel | undefined;
  let isWaitOver = false;
  const giveUp = () => {
    const unanswered = client.inFlight;
    const what = unanswered > 0 ? 'its last requests were not answered' : 'it did not read its last answers';
    logger.warn({ unanswered }, `the client closed stdin, and ${what} within ${DRAIN_MS / 1_000} s: ${end}`);
    client.close();
  };
  const update = () => {
    const isPostponed = !isWaitOver && isStarting(gateway);
    if (isPostponed) cancelDrain?.();
    cancelDrain = isPostponed ? undefined : (cancelDrain ?? clock.schedule(DRAIN_MS, giveUp));
  };
  const unsubscribe = events.subscribe('server.changed', update);
  const cancelWait = clock.schedule(startupWaitMs, () => {
    isWaitOver = true;
    update();
  });
  update();
  return () => {
    unsubscribe();
    cancelWait();
    cancelDrain?.();
  };
}

/** Whether a server starts for the first time, so that a list may wait for it, or starts for a call. */
function isStarting({ isReady, pool }: DrainOptions['gateway']): boolean {
  if (!isReady) return true;
  const backends = [...pool.keys].flatMap((key) => pool.of(key));
  return backends.some(
    ({ dispatcher }) => dispatcher.admission.isAwaited && dispatcher.availability.state === 'starting',
  );
}

function probeRepeatedly(client: StdioClient, clock: Clock, delayMs: number): Cancel {
  let cancelNext: Cancel = () => {};
  const cancel = clock.schedule(delayMs, () => {
    client.probe();
    cancelNext = probeRepeatedly(client, clock, delayMs * 2);
  });
  return () => {
    cancel();
    cancelNext();
  };
}
