import { UsageError } from '../../../errors/usage-error.js';
import { type Recording, readRecording } from '../../../record/recording-file.js';

/** Reads the recording that a command was given. Throws a `UsageError` for a file that cannot be read or is none. */
export async function openRecording(file: string): Promise<Recording> {
  try {
    return await readRecording(file);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`cannot read the recording: ${reason}`, 'name a file that Trunkline has recorded', { cause });
  }
}
