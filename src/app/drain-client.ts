import type { Gateway } from '../gateway/gateway.js';
import type { EventSource } from '../host/observe/events/events.js';
import type { Cancel, Clock } from '../wire/timing/clock.js';

/** Time for the last answers to a client that has closed stdin. Its host may send SIGTERM after two seconds, too. */
const DRAIN_MS = 2_000;
/** Delay of the first check whether stdout still has a reader. The delay doubles with each check. */
const FIRST_PROBE_MS = 100;

export interface DrainedClient {
  readonly inFlight: number;
  /** Whether the client has sent something after it could read an answer. */
  readonly isLive: boolean;
  /** Resolves when the client has closed stdin. It may still wait for answers. */
  readonly inputEnded: Promise<void>;
  /** Resolves when the client has closed stdin and has all answers, or when stdout has no reader any more. */
  readonly left: Promise<void>;
  /** Writes to stdout, which fails if stdout has no reader. */
  readonly probe: () => void;
  readonly close: () => void;
}

export interface ClientDrainOptions {
  readonly clock: Clock;
  readonly events: EventSource;
  readonly gateway: Gateway;
  /** Longest wait of requests for servers that are starting, and so the longest time before the drain begins. */
  readonly startupWaitMs: number;
  readonly logger: { warn(facts: object, text: string): void };
  /** Aborted at a signal, which ends the drain. */
  readonly ending: AbortSignal;
}

/**
 * Resolves when the client has left. A live client that closes stdin still gets the answers that come within the drain. The
 * drain begins when no server is starting any more. It ends at once when all requests are answered, when stdout has no
 * reader, or at a signal, because the signal also ends the servers.
 */
export async function drainClient(client: DrainedClient, options: ClientDrainOptions): Promise<void> {
  void client.inputEnded.then(() => {
    const close = () => client.close();
    if (options.ending.aborted) close();
    options.ending.addEventListener('abort', close);
    const cancel = [limitDrain(client, close, options), probeRepeatedly(client, options.clock, FIRST_PROBE_MS)];
    void client.left.then(() => {
      for (const each of cancel) each();
    });
  });
  await client.left;
}

/**
 * Calls `close` when the time for the drain is over. `end` is the clause of the log record that says which session or process ends then. A
 * client that has sent all its messages before an answer (`printf … | trunkline`) has no such time, because its requests have timeouts.
 */
export function limitDrain(
  client: { readonly inFlight: number; readonly isLive: boolean },
  close: () => void,
  { clock, events, gateway, startupWaitMs, logger }: ClientDrainOptions,
  end = 'Trunkline ends',
): Cancel {
  if (!client.isLive) return () => {};
  let cancelDrain: Cancel | undefined;
  let isWaitOver = false;
  const giveUp = () => {
    const unanswered = client.inFlight;
    const what = unanswered > 0 ? 'its last requests were not answered' : 'it did not read its last answers';
    logger.warn({ unanswered }, `the client closed stdin, and ${what} within ${DRAIN_MS / 1_000} s: ${end}`);
    close();
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
function isStarting({ isReady, pool }: ClientDrainOptions['gateway']): boolean {
  if (!isReady) return true;
  const backends = [...pool.keys].flatMap((key) => pool.of(key));
  return backends.some(
    ({ dispatcher }) => dispatcher.admission.isAwaited && dispatcher.availability.state === 'starting',
  );
}

function probeRepeatedly(client: DrainedClient, clock: Clock, delayMs: number): Cancel {
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
