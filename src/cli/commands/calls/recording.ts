import { resolve } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import { NOTATIONS } from '../../../config/schema/settings.js';
import { UsageError } from '../../../errors/usage-error.js';
import { type Recording, readRecording } from '../../../record/recording-file.js';

/** The options of `serve` that record messages, as they were given. */
interface RecordingValues {
  readonly record?: string | undefined;
  readonly max?: string | undefined;
}

/** Reads the options of `serve --record`. Throws a `UsageError` for options that make no sense. */
export function recordingOptions({ record, max }: RecordingValues): Pick<GlobalOptions, 'record' | 'recordMax'> {
  if (record === undefined) throw new UsageError('`--max` needs `--record`', 'name the file of the recording');
  return { record: resolve(record), recordMax: readSize(max) };
}

/** The smallest recording: a part of it has room for some messages. */
const MIN_BYTES = 64 * 1024;

/** The size of a recording in bytes. Throws a `UsageError` for what is no size. */
export function readSize(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  try {
    const bytes = NOTATIONS.bytes.parse(text);
    if (bytes >= MIN_BYTES) return bytes;
  } catch {
    // Not a size.
  }
  throw new UsageError(`\`--max ${text}\` is no size of a recording`, `write ${NOTATIONS.bytes.form}; at least 64KiB`);
}

/** Reads the recording that a command was given. Throws a `UsageError` for a file that cannot be read or is none. */
export async function openRecording(file: string): Promise<Recording> {
  try {
    return await readRecording(file);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`cannot read the recording: ${reason}`, 'name a file that Trunkline has recorded', { cause });
  }
}
