import { ConfigError } from '../config/file/config-error.js';
import { EXIT, UsageError } from '../errors/usage-error.js';
import { createRedactor } from '../observe/redact.js';
import { tell } from './output.js';

/** Reports an error that prevented a command, and returns the exit code. */
export function reportFault(error: unknown): number {
  if (error instanceof ConfigError) {
    tell(error.report);
    return EXIT.usage;
  }
  if (error instanceof UsageError) {
    tell(`trunkline: ${error.message}; ${error.hint}`);
    return EXIT.usage;
  }
  // The message or the stack can contain secrets.
  const redact = createRedactor([]);
  tell(
    redact(
      `trunkline: internal error, please report this bug: ${error instanceof Error ? error.stack : String(error)}`,
    ),
  );
  return EXIT.internal;
}
