import { EXIT } from '../app/exit-codes.js';
import { UsageError } from '../app/usage-error.js';
import { ConfigError } from '../config/config-error.js';
import { createRedactor } from '../observe/redact.js';
import { tell } from './output.js';

/** Says on stderr why a command could not even begin, and returns what to exit with. */
export function reportFault(error: unknown): number {
  if (error instanceof ConfigError) {
    tell(error.report);
    return EXIT.usage;
  }
  if (error instanceof UsageError) {
    tell(`trunkline: ${error.message}; ${error.hint}`);
    return EXIT.usage;
  }
  // What was at hand when it happened may be in the message.
  const redact = createRedactor([]);
  tell(redact(`trunkline: a bug in Trunkline: ${error instanceof Error ? error.stack : String(error)}`));
  return EXIT.internal;
}
