import { statSync } from 'node:fs';
import { errorCode } from '../errors/error-text.js';

/** The host is out of file descriptors, processes or memory. A later attempt can succeed. */
const HOST_FAULTS = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM']);

/** A process that could not be started. `code` is the name of the system error, such as `ENOENT`. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError';
  readonly code: string;
  /** The host is out of resources; the command and its configuration are not the cause. */
  readonly isHostFault: boolean;

  constructor(code: string, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
    this.isHostFault = HOST_FAULTS.has(code);
  }
}

interface Attempt {
  readonly command: string;
  readonly label?: string;
  readonly cwd: string;
}

/** Explains why a process could not be started. The system reports a missing working folder as a missing command. */
export function toSpawnError(cause: unknown, { command, label = command, cwd }: Attempt): SpawnError {
  const code = errorCode(cause) ?? 'UNKNOWN';
  const prefix = `Cannot start "${label}"`;
  if (!isDirectory(cwd))
    return new SpawnError(code, `${prefix}: the folder to run it in does not exist (${code})`, cause);
  return new SpawnError(code, `${prefix}: ${explain(code, cause)} (${code})`, cause);
}

function explain(code: string, cause: unknown): string {
  switch (code) {
    case 'ENOENT':
      // The system reports the same error for a script whose interpreter is missing.
      return 'the command, or the interpreter it needs, was not found';
    case 'EACCES':
    case 'EPERM':
      return 'it may not be executed';
    case 'EMFILE':
    case 'ENFILE':
      return 'too many files are open';
    case 'EAGAIN':
      return 'too many processes are running';
    case 'ENOMEM':
      return 'the system is out of memory';
    default:
      return cause instanceof Error ? cause.message : 'the system refused';
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Missing, or not accessible.
    return false;
  }
}
