import type { ControlCommands, ControlContext } from '../hub/server/control-connection.js';
import type { LineSink } from '../record/line-queue.js';
import type { RunningHub } from './serve-hub.js';

/** An event of the command `record`, and its result. */
export interface RecordCounts {
  readonly written: number;
  readonly dropped: number;
  /** Why the file cannot be written at the moment. */
  readonly fault?: string | undefined;
}

/** Time between two events of a recording. */
const TELL_EVERY_MS = 1_000;

/** The commands that record and show messages, whose code is loaded at the first of them. */
export function recordingCommands(running: Promise<Pick<RunningHub, 'composition'>>): ControlCommands {
  const recordings = new Map<string, () => Promise<RecordCounts>>();
  return {
    /** Records all messages to a file until the connection is closed, or until `stopRecording`. */
    record: async ({ file, max }, { emit, signal }) => {
      const { composition } = await running;
      const { recordTo } = await import('./record-to.js');
      const name = String(file);
      if (recordings.has(name)) throw new Error(`The hub records to ${name} already.`);
      let fault: string | undefined;
      const logger = {
        warn: ({ err }: { err?: unknown }) => {
          fault = String(err);
        },
        info: () => {},
        error: () => {},
      };
      const recorder = await recordTo(name, typeof max === 'number' ? max : undefined, { composition, logger });
      const counts = (): RecordCounts => {
        const { written, dropped } = recorder.counts;
        return { written, dropped, fault };
      };
      const stopped = new AbortController();
      recordings.set(name, async () => {
        stopped.abort();
        recordings.delete(name);
        await recorder.close();
        return counts();
      });
      const over = AbortSignal.any([signal, stopped.signal]);
      const timer = setInterval(() => emit(counts()), TELL_EVERY_MS);
      emit(counts());
      await aborted(over);
      clearInterval(timer);
      await recordings.get(name)?.();
      return null;
    },
    stopRecording: async ({ file }) => await recordings.get(String(file))?.(),
    /** Shows all messages, or those of one server, until the connection is closed. */
    messages: async ({ server }, { emit, signal }) => {
      const { composition } = await running;
      const { showMessages } = await import('./record-to.js');
      const only = typeof server === 'string' ? server : undefined;
      const shown = showMessages(composition, { sink: toPerson(emit), server: only, onFault: () => {} });
      await aborted(signal);
      await shown.close();
      return null;
    },
  };
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
