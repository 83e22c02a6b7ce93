import { once } from 'node:events';
import { resolve } from 'node:path';
import { NOTATIONS } from '../../../config/schema/settings.js';
import { type Recording, readRecording } from '../../../extras/record/recording-file.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import type { RecordCounts } from '../../../hub/server/hub-commands.js';
import { plural } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { printJson, tell } from '../../output.js';
import { ProgressLine } from '../../terminal.js';
import { withGateway } from '../hub/hub-access.js';
import { configurationText, nameOf } from '../hub/running.js';

/** `trunkline record`: records all messages of the running gateway until Ctrl-C. The gateway writes the file. */
export async function record({ settings, options, isJson }: Invocation<{ out: string; max: string }>): Promise<number> {
  const { out = '', max } = options;
  const path = resolve(out);
  const maxBytes = readSize(max);
  return await withGateway(settings, async ({ control, gateway }) => {
    const progress = new ProgressLine(process.stderr);
    let last: RecordCounts = { written: 0, dropped: 0 };
    let isFirst = true;
    const recording = control.request('record', { file: path, max: maxBytes }, (event) => {
      last = event as RecordCounts;
      if (isFirst)
        tell(
          `Recording all messages of ${nameOf(gateway)} of ${configurationText(gateway)} to ${path}. Ctrl-C ends this.`,
        );
      isFirst = false;
      progress.show(countsText(last));
    });
    void interrupted()
      .then(() => control.request('stopRecording', { file: path }))
      .catch(() => {});
    try {
      last = (await recording) as RecordCounts;
    } finally {
      progress.clear();
    }
    const { written, dropped, fault = null } = last;
    if (isJson) await printJson({ file: path, written, dropped, fault });
    else tell(`${path} has ${countsText(last)}.`);
    return last.dropped > 0 ? EXIT.failed : EXIT.ok;
  });
}

export function countsText({ written, dropped, fault }: RecordCounts): string {
  const missing = `; ${dropped} ${dropped === 1 ? 'is' : 'are'} missing, because the disk was too slow or full`;
  const reason = fault === undefined ? '' : ` (${fault})`;
  return `${plural(written, 'message')}${dropped === 0 ? '' : missing}${reason}`;
}

async function interrupted(): Promise<void> {
  await Promise.race(['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => once(process, signal)));
}

/** Reads the options `--record` and `--max` of `serve`. Throws a `UsageError` for wrong options. */
export function recordingOptions(record: string | undefined, max: string | undefined) {
  if (record === undefined) throw new UsageError('`--max` needs `--record`', 'name the file of the recording');
  return { record: resolve(record), recordMax: readSize(max) };
}

/** Size of the smallest recording, whose parts have room for some messages. */
const MIN_BYTES = 64 * 1024;

/** Reads the size of a recording in bytes. Throws a `UsageError` for other text. */
function readSize(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  try {
    const bytes = NOTATIONS.bytes.parse(text);
    if (bytes >= MIN_BYTES) return bytes;
  } catch {
    // The error below covers this text.
  }
  throw new UsageError(`\`--max ${text}\` is no size of a recording`, `write ${NOTATIONS.bytes.form}; at least 64KiB`);
}

/** Reads the recording that a user has named. Throws a `UsageError` for a file that cannot be read or is not a recording. */
export async function openRecording(file: string): Promise<Recording> {
  try {
    return await readRecording(file);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`cannot read the recording: ${reason}`, 'name a file that Trunkline has recorded', { cause });
  }
}
