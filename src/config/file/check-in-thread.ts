import { Worker } from 'node:worker_threads';
import { errorCode } from '../../errors/error-text.js';
import type { CheckedFile } from './checked-file.js';
import { ConfigError, type ConfigErrorCode, type ConfigProblem } from './config-error.js';

/** What the thread gets. */
export interface CheckTask {
  readonly text: string;
  readonly file: string;
}

/** What it answers: the checked file, or the content of a `ConfigError`. */
export type CheckOutcome =
  | { readonly checked: CheckedFile }
  | { readonly code: ConfigErrorCode; readonly problems: ConfigError['problems'] };

/** The built file of `check-thread.ts`, next to the one of this module. */
const THREAD = new URL('./check-thread.js', import.meta.url);

/**
 * `checkFile` in a thread of its own, so that calls go on meanwhile: a file of 1 MiB takes seconds. A thread costs more time
 * than the check of a small file.
 */
export async function checkInThread(text: string, file: string, thread: URL = THREAD): Promise<CheckedFile> {
  const outcome = await outcomeOf(new Worker(thread, { workerData: { text, file } satisfies CheckTask }), file);
  if ('checked' in outcome) return outcome.checked;
  throw new ConfigError(outcome.code, file, outcome.problems);
}

async function outcomeOf(worker: Worker, file: string): Promise<CheckOutcome> {
  return await new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', (cause) => {
      reject(errorCode(cause) === 'ERR_WORKER_OUT_OF_MEMORY' ? tooMuchMemory(file, cause) : cause);
    });
    // After a message, this has no effect.
    worker.once('exit', (code) => reject(new Error(`The thread that checks ${file} has ended with code ${code}`)));
  });
}

function tooMuchMemory(file: string, cause: unknown): ConfigError {
  const problem: ConfigProblem = { message: 'the file takes too much memory to check; make it smaller' };
  return new ConfigError('config-unreadable', file, [problem], { cause });
}
