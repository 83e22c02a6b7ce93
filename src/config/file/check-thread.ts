// The thread that checks one large configuration file, and ends.
import { parentPort, workerData } from 'node:worker_threads';
import { checkFile } from './check-file.js';
import type { CheckOutcome, CheckTask } from './check-in-thread.js';
import { ConfigError } from './config-error.js';

const { text, file } = workerData as CheckTask;
parentPort?.postMessage(check());

function check(): CheckOutcome {
  try {
    return { checked: checkFile(text, file) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // An error loses its class and its members on the way to another thread.
    return { code: error.code, problems: error.problems };
  }
}
