import { stopReading } from '../io/streams/read-into.js';
import type { Logger } from '../observe/logger.js';
import type { StopLadder } from '../supervision/launcher.js';
import type { Composition } from './compose.js';
import { EXIT } from './exit.js';

/** A host gives us a few seconds at most, and what we leave behind nobody ends. */
export const FINAL_LADDER: StopLadder = { termAfterMs: 1_000, killAfterMs: 2_500 };
const AT_ONCE: StopLadder = { termAfterMs: 0, killAfterMs: 0 };
/** Whatever a process that is stuck in the kernel does to the orderly way. */
const EXIT_WITHIN_MS = 3_000;

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
type Signal = (typeof SIGNALS)[number];

export interface Run {
  readonly composition: Pick<Composition, 'stop'>;
  readonly logger: Logger;
  /** Resolves with the exit code. Once `ending` is aborted, the outcome counts no more and nothing is to be printed. */
  readonly work: (ending: AbortSignal) => Promise<number>;
  /** What to exit with after a signal. */
  readonly onSignal: (signal: Signal) => number;
  /** Called once the signals are ours, for whoever has listened to them until then. */
  readonly onListening?: () => void;
  /** Ends what is not the composition's, at the same time as that. */
  readonly close?: () => Promise<void>;
  /** Whether a reader who is slow may take as long as it likes to read the last of our output. */
  readonly isOutputAwaited: boolean;
}

/**
 * Does the work of a command, then ends all children, and resolves with the exit code.
 *
 * There is one end, whatever its cause: the work is done, a signal came, or we have a bug. A second signal ends what
 * is left at once; the end of the work is not counted as one, since hosts close our stdin and send SIGTERM together.
 */
export async function runToEnd(run: Run): Promise<number> {
  const { composition, logger } = run;
  const ending = new AbortController();
  let isStopped = false;
  let hurry = () => {};
  const hurried = new Promise<void>((resolve) => {
    hurry = resolve;
  });

  const { cause, code } = await new Promise<{ cause: string; code: number }>((resolve) => {
    const end = (why: string, exitCode: number) => {
      resolve({ cause: why, code: exitCode });
      ending.abort();
    };
    let signals = 0;
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        signals += 1;
        if (signals > 1 || isStopped) hurry();
        end(signal, run.onSignal(signal));
      });
    }
    run.onListening?.();
    const onBug = (error: unknown) => {
      stopReading();
      logger.fatal({ err: error }, 'a bug in Trunkline');
      end('a bug in Trunkline', EXIT.internal);
    };
    process.on('uncaughtException', onBug);
    process.on('unhandledRejection', onBug);
    run.work(ending.signal).then(
      (exitCode) => end('done', exitCode),
      // What the work says about being interrupted is no news.
      (error) => ending.signal.aborted || onBug(error),
    );
  });

  logger.info({ cause }, 'ending');
  const tooLate = new Promise<void>((resolve) => setTimeout(resolve, EXIT_WITHIN_MS));
  void hurried.then(() => composition.stop(AT_ONCE));
  await Promise.race([Promise.all([composition.stop(FINAL_LADDER), run.close?.()]), tooLate]);
  isStopped = true;
  await Promise.race([outputRead(), hurried, ...(run.isOutputAwaited ? [] : [tooLate])]);
  return code;
}

/** Resolves when everything written to stdout was taken, or cannot be any more: exiting would cut off the rest. */
function outputRead(): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write('', () => resolve());
  });
}
