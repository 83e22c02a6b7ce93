import type { ControlCommands, ControlContext } from '../hub/server/control-connection.js';
import { suggest } from '../json/suggest.js';
import type { LineSink } from '../record/line-queue.js';
import type { Composition } from './composition.js';
import type { RunningHub } from './serve-hub.js';

/** An event of the command `record`, and its result. */
export interface RecordCounts {
  readonly written: number;
  readonly dropped: number;
  /** Why the file cannot be written at the moment. */
  readonly fault?: string | undefined;
}

/** The answer to a command about a server that the hub does not have. */
export function noServerText(server: string, keys: readonly string[]): string {
  const nearest = suggest(server, keys);
  const hint = nearest === undefined ? `The servers of the hub are: ${keys.join(', ')}.` : `Did you mean "${nearest}"?`;
  return `There is no server "${server}". ${hint}`;
}

/** Time between two events of a recording. */
const TELL_EVERY_MS = 1_000;

/** The commands that record and show messages, whose code is loaded at the first of them. */
export function recordingCommands(running: Promise<Pick<RunningHub, 'composition'>>): ControlCommands {
  const recordings = new Map<string, AbortController>();
  return {
    /** Records all messages to a file until the connection is closed, or until `stopRecording`. */
    record: async ({ file, max }, { emit, signal }) => {
      const name = String(file);
      if (recordings.has(name)) throw new Error(`The hub records to ${name} already.`);
      const stopped = new AbortController();
      recordings.set(name, stopped);
      try {
        const { composition } = await running;
        // The connection may be closed already.
        const until = AbortSignal.any([signal, stopped.signal]);
        return await record(composition, { file: name, max, emit, until });
      } finally {
        recordings.delete(name);
      }
    },
    /** The command `record` has its result then. */
    stopRecording: ({ file }) => recordings.get(String(file))?.abort(),
    /** Shows all messages, or those of one server, until the connection is closed. */
    messages: async ({ server }, { emit, signal }) => {
      const { composition } = await running;
      const { showMessages } = await import('./record-to.js');
      const only = typeof server === 'string' ? server : undefined;
      const keys = composition.config.servers.map(({ key }) => key);
      if (only !== undefined && !keys.includes(only)) throw new Error(noServerText(only, keys));
      const shown = showMessages(composition, { sink: toPerson(emit), server: only, onFault: () => {} });
      emit({ begun: true });
      await aborted(signal);
      await shown.close();
      return null;
    },
  };
}

interface RecordRequest {
  readonly file: string;
  readonly max: unknown;
  readonly emit: ControlContext['emit'];
  readonly until: AbortSignal;
}

async function record(composition: Composition, { file, max, emit, until }: RecordRequest): Promise<RecordCounts> {
  const { recordTo } = await import('./record-to.js');
  let fault: string | undefined;
  const warn = ({ err }: { readonly err?: unknown }) => {
    fault = String(err);
  };
  const logger = { warn };
  const recorder = await recordTo(file, typeof max === 'number' ? max : undefined, { composition, logger });
  const counts = (): RecordCounts => ({
    written: recorder.counts.written,
    dropped: recorder.counts.dropped,
    fault,
  });
  const timer = setInterval(() => emit(counts()), TELL_EVERY_MS);
  emit(counts());
  await aborted(until);
  clearInterval(timer);
  await recorder.close();
  return counts();
}

/** Each line is an event. The next one after a gap says how many are missing. */
function toPerson(emit: ControlContext['emit']): LineSink {
  let missing = 0;
  return {
    write: async (text) => {
      for (const line of text.split('\n')) {
        if (line === '') continue;
        if (missing > 0 && emit({ missing })) missing = 0;
        if (missing > 0 || !emit({ line })) missing += 1;
      }
    },
    close: async () => {},
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
