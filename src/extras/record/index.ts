import { type CreateFeature, Switch } from '../feature.js';
import { logCalls } from './call-log.js';

/** The options of the command line: the file to record to, and its size limit in bytes. */
interface RecordOptions {
  readonly record?: string | undefined;
  readonly recordMax?: number | undefined;
}

/** Makes the feature that records all messages to a file, and writes the call log, as the configuration or the options want. */
export function recording({ record, recordMax }: RecordOptions = {}): CreateFeature {
  return (host) => {
    const { logger } = host;
    const recordings = new Switch(async (file) => {
      try {
        const { recordTo } = await import('./record-to.js');
        const recorder = await recordTo(file, recordMax, { composition: host, logger });
        logger.info({ file }, 'recording all messages');
        return () => recorder.close();
      } catch (err) {
        logger.error({ err }, 'the recording cannot be written; calls are served as usual');
        return undefined;
      }
    });
    const callLog = new Switch(async (mode) => logCalls(mode === 'full', { composition: host, logger }));
    return {
      apply: async ({ gateway }) => {
        const mode = gateway.callLog === 'off' ? undefined : gateway.callLog;
        await Promise.all([recordings.set(record ?? gateway.record), callLog.set(mode)]);
      },
      close: async () => {
        await Promise.all([recordings.close(), callLog.close()]);
      },
      preload: () => import('./record-to.js'),
    };
  };
}
