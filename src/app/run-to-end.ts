import { explain, fileErrorIn } from '../host/errors/file-error.js';
import { END_SIGNALS, type EndSignal, EXIT } from '../host/errors/usage-error.js';
import type { Logger } from '../host/observe/logger.js';
import type { StopLadder } from '../spec/launch.js';
import { stopReading } from '../wire/io/streams/read-into.js';

/** Ends the servers within three seconds, because MCP hosts wait only a few seconds before they kill Trunkline. */
export const FINAL_LADDER: StopLadder = { termAfterMs: 1_000, killAfterMs: 2_500 };
const AT_ONCE: StopLadder = { termAfterMs: 0, killAfterMs: 0 };
/** Limit for the whole shutdown, in case a process is stuck in the kernel. */
const EXIT_WITHIN_MS = 3_000;

export interface RunToEndOptions {
  readonly composition: { stop(ladder: StopLadder): Promise<void> };
  readonly logger: Logger;
  /** Resolves with the exit code. Once `ending` is aborted, the result is ignored, and `work` must print nothing. */
  readonly work: (ending: AbortSignal) => Promise<number>;
  readonly onSignal: (signal: EndSignal) => number;
  /** Finishes the calls in flight, after the first SIGTERM and before the servers stop. Absent if that has to be quick. */
  readonly drain?: () => Promise<void>;
  /** Whether SIGHUP, which comes when a terminal closes or a login ends, is ignored. */
  readonly ignoresHangup?: boolean;
  /** Called when the signal handlers are installed. */
  readonly onListening?: () => void;
  /** Closes everything outside of the composition, while the servers stop. */
  readonly close?: () => Promise<void>;
  /** Whether to wait without limit for a slow reader of stdout. */
  readonly isOutputAwaited: boolean;
}

/**
 * Runs a command, stops all servers, and resolves with the exit code.
 *
 * The shutdown is the same for every cause: the work is done, a signal came, or an internal error or an error of
 * the system occurred. A second signal kills the remaining servers at once, also during a drain. The end of the work does not
 * count as a first signal, because hosts close stdin and send SIGTERM together.
 */
export async function runToEnd(run: RunToEndOptions): Promise<number> {
  const { composition, logger } = run;
  const ending = new AbortController();
  let isStopped = false;
  let killNow = () => {};
  const killRequested = new Promise<void>((resolve) => {
    killNow = resolve;
  });

  const { cause, code } = await new Promise<{ cause: string; code: number }>((resolve) => {
    const end = (why: string, exitCode: number) => {
      resolve({ cause: why, code: exitCode });
      ending.abort();
    };
    const onBug = (error: unknown) => {
      stopReading();
      if (fileErrorIn(error) === undefined) {
        logger.fatal({ err: error }, 'internal error: Trunkline shuts down; please report this bug');
        end('internal error', EXIT.internal);
      } else {
        logger.fatal(`${explain(error)}; Trunkline shuts down`);
        end('error of the system', EXIT.failed);
      }
    };
    let signals = 0;
    for (const signal of END_SIGNALS) {
      process.on(signal, () => {
        if (signal === 'SIGHUP' && run.ignoresHangup === true) return;
        signals += 1;
        if (signals > 1 || isStopped) killNow();
        const endNow = () => end(signal, run.onSignal(signal));
        if (signal !== 'SIGTERM' || signals > 1 || run.drain === undefined) endNow();
        else run.drain().then(endNow, onBug);
      });
    }
    run.onListening?.();
    process.on('uncaughtException', onBug);
    process.on('unhandledRejection', onBug);
    run.work(ending.signal).then(
      (exitCode) => end('done', exitCode),
      // After a signal, an error of the interrupted work is expected.
      (error) => ending.signal.aborted || onBug(error),
    );
  });

  logger.info({ cause }, 'shutting down');
  const tooLate = new Promise<void>((resolve) => setTimeout(resolve, EXIT_WITHIN_MS));
  void killRequested.then(() => composition.stop(AT_ONCE));
  await Promise.race([Promise.all([composition.stop(FINAL_LADDER), run.close?.()]), tooLate]);
  isStopped = true;
  await Promise.race([outputRead(), killRequested, ...(run.isOutputAwaited ? [] : [tooLate])]);
  return code;
}

/** Resolves when stdout is flushed or broken. An exit before that would cut off the output. */
function outputRead(): Promise<void> {
  return new Promise((resolve) => void process.stdout.write('', () => resolve()));
}

/** Longest wait for the last file operations, in milliseconds. */
const FILES_END_WITHIN_MS = 500;
const POLL_MS = 20;

/**
 * Ends this process, with the exit code unless a file operation hangs. The caller must have ended the servers.
 *
 * `process.exit` waits for the file operations in Node's thread pool. An operation can hang without end, as on a network file
 * system that does not answer. The process then ends itself with SIGKILL.
 */
export async function endProcess(code: number): Promise<never> {
  await fileOperationsEnd();
  if (isFileOperationPending()) {
    // The listeners of `exit` write the rest of the log.
    process.emit('exit', code);
    process.stderr.write('trunkline: a file operation hangs, so Trunkline ends itself with SIGKILL\n');
    process.kill(process.pid, 'SIGKILL');
  }
  process.exit(code);
}

/** Resolves when no file operation is pending, or after half a second. */
export async function fileOperationsEnd(): Promise<void> {
  for (let waitedMs = 0; isFileOperationPending() && waitedMs < FILES_END_WITHIN_MS; waitedMs += POLL_MS) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function isFileOperationPending(): boolean {
  return process
    .getActiveResourcesInfo()
    .some((resource) => resource.startsWith('FSReq') || resource === 'FileHandleCloseReq');
}
