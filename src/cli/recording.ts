import { resolve } from 'node:path';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import { BYTES_FORM, parseBytes } from '../config/units.js';
import { notFor } from './usage-errors.js';

/** The options of these commands, as they were given. */
export interface RecordingValues {
  readonly out?: string | undefined;
  readonly record?: string | undefined;
  readonly max?: string | undefined;
  readonly server?: string | undefined;
  readonly follow?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly 'as-server'?: string | undefined;
  readonly 'as-client'?: boolean | undefined;
  readonly ignore?: readonly string[] | undefined;
}

/** What `serve --record` means. */
export function recordingOptions({ record, max }: RecordingValues): Pick<GlobalOptions, 'record' | 'recordMax'> {
  if (record === undefined) throw new UsageError('`--max` works only with `--record`', 'add `--record FILE`');
  return { record: resolve(record), recordMax: readSize(max) };
}

/** Runs one of the commands that show, record and replay messages. */
export async function recordingCommand(
  settings: GlobalOptions,
  command: 'activity' | 'record' | 'inspect' | 'replay',
  [file, ...excess]: readonly string[],
  values: RecordingValues,
): Promise<number> {
  const takesFile = command === 'inspect' || command === 'replay';
  if (excess.length > 0 || (file !== undefined && !takesFile)) throw notFor(command, 'further arguments');
  if (values.json === true && command !== 'activity') throw notFor(command, '`--json`');
  const { server, follow: isFollowed = false } = values;
  switch (command) {
    case 'activity': {
      const { activity } = await import('./activity.js');
      return await activity({ server, isFollowed, isJson: values.json === true });
    }
    case 'record': {
      if (values.out === undefined)
        throw new UsageError('`trunkline record` needs a file', 'write `trunkline record -o FILE`');
      const { record } = await import('./record.js');
      return await record(settings, { file: values.out, maxBytes: readSize(values.max) });
    }
    case 'inspect': {
      const { inspect } = await import('./inspect.js');
      return await inspect(settings, { file, server, isFollowed });
    }
    case 'replay':
      return await replay(settings, file, values);
  }
}

async function replay(settings: GlobalOptions, file: string | undefined, values: RecordingValues): Promise<number> {
  const { 'as-server': server, 'as-client': isClient = false, ignore } = values;
  if (file === undefined) throw new UsageError('`trunkline replay` needs a recording', 'write `trunkline replay FILE`');
  if ((server !== undefined) === isClient) {
    const hint = 'write `--as-server NAME` to stand in for a server, or `--as-client` to test the servers';
    throw new UsageError('`trunkline replay` needs to know what to replay', hint);
  }
  if (server !== undefined && ignore !== undefined) throw notFor('replay --as-server', '`--ignore`');
  const { replayClient, replayServer } = await import('./replay.js');
  return server === undefined ? await replayClient(settings, file, ignore ?? []) : await replayServer(file, server);
}

/** The smallest recording: a part of it has room for some messages. */
const MIN_BYTES = 64 * 1024;

function readSize(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  try {
    const bytes = parseBytes(text);
    if (bytes >= MIN_BYTES) return bytes;
  } catch {
    // Not a size.
  }
  throw new UsageError(`\`--max ${text}\` is no size of a recording`, `write ${BYTES_FORM}; at least 64KiB`);
}
