import type { Config } from '../../config/resolve/config.js';
import { logCalls } from './call-log.js';
import type { RecordingContext } from './record-to.js';

export interface ObserversOptions extends RecordingContext {
  readonly composition: RecordingContext['composition'] & {
    readMetrics(): Promise<string>;
    readonly notices: Map<string, string>;
  };
  /** The options of the command line: the file to record to, and its size limit in bytes. */
  readonly settings: { readonly record?: string | undefined; readonly recordMax?: number | undefined };
  readonly logger: RecordingContext['logger'] & {
    info(facts: object, text: string): void;
    error(facts: object, text: string): void;
  };
}

/** A running recording, call log or endpoint: what it is for, and how to end it. */
interface Running {
  readonly key: string;
  readonly close: () => Promise<void>;
}

/**
 * The recording, the call log and the address of the metrics that the configuration or the command line asks for. The code of
 * recordings and of the address is loaded only if they are wanted.
 */
export class Observers {
  readonly #options: ObserversOptions;
  #recording: Running | undefined;
  #callLog: Running | undefined;
  #metrics: Running | undefined;
  /** The latest change. Each change waits for the change before it. */
  #changes: Promise<void> = Promise.resolve();

  constructor(options: ObserversOptions) {
    this.#options = options;
  }

  /** Follows the configuration. Never rejects, because a failed recording must not end the gateway. */
  apply(config: Config): Promise<void> {
    this.#changes = this.#changes.then(() => this.#apply(config));
    return this.#changes;
  }

  async close(): Promise<void> {
    await this.#changes;
    await Promise.all([this.#recording?.close(), this.#callLog?.close(), this.#metrics?.close()]);
  }

  async #apply({ gateway }: Config): Promise<void> {
    const { settings, composition, logger } = this.#options;
    const file = settings.record ?? gateway.record;
    this.#recording = await renew(this.#recording, file, async (key) => {
      const { recordTo } = await import('./record-to.js');
      const recorder = await recordTo(key, settings.recordMax, this.#options);
      logger.info({ file: key }, 'recording all messages');
      return { key, close: () => recorder.close() };
    }).catch((err: unknown) => {
      logger.error({ err }, 'the recording cannot be written; calls are served as usual');
      return undefined;
    });
    if (this.#recording === undefined) composition.platform.messages.letGo();
    const mode = gateway.callLog === 'off' ? undefined : gateway.callLog;
    this.#callLog = await renew(this.#callLog, mode, async (key) => {
      return { key, close: logCalls(key === 'full', this.#options) };
    });
    this.#metrics = await renew(this.#metrics, gateway.metrics.listen, async (key) => {
      return { key, close: await this.#serveMetrics(key) };
    });
  }

  async #serveMetrics(address: string): Promise<() => Promise<void>> {
    const { composition, logger } = this.#options;
    const { platform, notices } = composition;
    const { MetricsEndpoint } = await import('../metrics/endpoint.js');
    const endpoint = new MetricsEndpoint({
      address,
      clock: platform.clock,
      read: () => composition.readMetrics(),
      onFault: (fault) => {
        if (fault === undefined) logger.info({ address }, 'serving metrics');
        else if (notices.get('metrics') !== fault) logger.warn({ address }, fault);
        if (fault === undefined) notices.delete('metrics');
        else notices.set('metrics', fault);
      },
    });
    await endpoint.open();
    return async () => {
      notices.delete('metrics');
      await endpoint.close();
    };
  }
}

/** Ends the running observer if another one is wanted, and begins that one. */
async function renew(
  running: Running | undefined,
  wanted: string | undefined,
  begin: (wanted: string) => Promise<Running>,
): Promise<Running | undefined> {
  if (running?.key === wanted) return running;
  await running?.close();
  return wanted === undefined ? undefined : await begin(wanted);
}
