import { join, resolve } from 'node:path';
import { ConfigError } from '../config/file/config-error.js';
import { currentFolder } from '../config/file/find-config.js';
import { explain } from '../host/errors/file-error.js';
import { UsageError } from '../host/errors/usage-error.js';
import { createLogger, type Logger } from '../host/observe/logger.js';
import { KnownSecrets } from '../host/observe/redact.js';
import { createSeals, readSealSecret } from '../state/seal.js';
import { approvalFolders, packageFolders, runFolder } from '../state/user-files.js';
import { reportStatus } from '../status/status.js';
import { toBytes } from '../wire/json/json-text.js';
import type { ConfigurationError, openTrunkline as Declaration, OpenOptions, Transport } from './embed-types.js';
import { GatewayProcess } from './gateway-process.js';
import { type ClientConnection, openPipe } from './open-pipe.js';
import { createPlatform } from './platform.js';
import { logConfig, readConfigFile, readConfigObject, requireView } from './read-config.js';
import { reloadOnChange } from './reload-config.js';
import { FINAL_LADDER } from './run-to-end.js';
import { commonFeatures, openCaches } from './serve-clients.js';

/** The name of an object in its folder, in messages and where the name of the file decides. */
const OBJECT_NAME = 'openTrunkline';

/**
 * Opens a gateway for the program that imports this package. It writes to no stream of the program but that of `log`, listens to no
 * signal and ends no process but its own, because all that belongs to the program.
 */
export const openTrunkline: typeof Declaration = async (configuration, options = {}) => {
  const { folder = currentFolder() } = options;
  const isFile = typeof configuration === 'string';
  const secrets = new KnownSecrets();
  const logger = createLog(options, secrets);
  const platform = createPlatform();
  const caches = openCaches(await readSealSecret(logger), platform, logger);
  const { checkedFiles, catalogues } = caches;
  const config = isFile
    ? await asPrinted(readConfigFile(resolve(configuration), checkedFiles))
    : await asPrinted(readConfigObject(configuration, join(resolve(folder), OBJECT_NAME)));
  logConfig(config, logger);
  const composition = new GatewayProcess({
    config,
    logger,
    secrets,
    platform,
    catalogues,
    environment: process.env,
    features: commonFeatures(),
    seals: createSeals(caches),
    runFolder: runFolder(),
    approvals: approvalFolders('serve'),
    packages: packageFolders(),
  });
  const transports = new Set<InMemoryTransport>();
  let unfollow = () => {};
  const stop = async () => {
    unfollow();
    for (const transport of transports) transport.end();
    await composition.stop(FINAL_LADDER);
  };
  try {
    await composition.prepared;
    await composition.start();
  } catch (error) {
    await stop();
    throw error;
  }
  if (isFile && config.gateway.watch) {
    const settings = { config: configuration, verbosity: 0, logFile: undefined };
    unfollow = reloadOnChange({ settings, composition, logger, read: config, checkedFiles });
  }
  let closed: Promise<void> | undefined;
  return {
    transport: ({ view } = {}) => {
      if (closed !== undefined) throw new Error('this Trunkline was closed; open another one with openTrunkline');
      refuseUnknownView(composition, view);
      const transport: InMemoryTransport = new InMemoryTransport(
        (receive) => {
          transports.add(transport);
          return openPipe(composition, receive, view);
        },
        () => transports.delete(transport),
      );
      return transport;
    },
    status: () => reportStatus(composition.status()),
    close: () => {
      closed ??= stop();
      return closed;
    },
  };
};

const LEVELS = ['warn', 'info', 'debug'] as const;

/** Makes the log of the program. A `log` that throws must not stop the gateway, so its errors are dropped. */
function createLog({ log, logLevel = 'warn' }: OpenOptions, { redact }: KnownSecrets): Logger {
  const write = (line: string) => {
    try {
      if (typeof log === 'function') log(line.trimEnd());
      else log?.write(line);
    } catch {
      // The record is lost.
    }
  };
  const logger = createLogger({ verbosity: LEVELS.indexOf(logLevel), redact, to: { write } });
  if (log === undefined) logger.level = 'silent';
  return logger;
}

/** Rejects with an error whose message is the printed report, in place of a `ConfigError`, whose message has the first mistake alone. */
async function asPrinted<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw error instanceof ConfigError ? configurationError(error.report, error.code, error) : error;
  }
}

function refuseUnknownView({ config }: GatewayProcess, view: string | undefined): void {
  try {
    requireView(config, view);
  } catch (error) {
    throw error instanceof UsageError ? configurationError(explain(error), 'view-not-found', error) : error;
  }
}

function configurationError(message: string, code: string, cause: Error): ConfigurationError {
  return Object.assign(new Error(message, { cause }), { code }) as ConfigurationError;
}

/** Opens the session of a client. `receive` takes the messages for it. */
type OpenSession = (receive: (message: Uint8Array) => void) => ClientConnection;

const TEXT = new TextDecoder();

/** The two ends of one session: messages as objects for the client, and as bytes for the gateway. */
class InMemoryTransport implements Transport {
  onclose: (() => void) | undefined;
  onerror: ((error: Error) => void) | undefined;
  onmessage: ((message: object) => void) | undefined;
  readonly #open: OpenSession;
  readonly #onEnd: () => void;
  #session: ClientConnection | undefined;
  #isEnded = false;

  constructor(open: OpenSession, onEnd: () => void) {
    this.#open = open;
    this.#onEnd = onEnd;
  }

  async start(): Promise<void> {
    if (this.#session !== undefined || this.#isEnded)
      throw new Error('this transport was used before; each client needs one of its own: call transport() again');
    // The client gets no message while it sends one, as with a pipe.
    this.#session = this.#open((message) => queueMicrotask(() => this.#deliver(message)));
  }

  async send(message: object): Promise<void> {
    if (this.#session === undefined || this.#isEnded) throw new Error('this transport is not open');
    this.#session.send(toBytes(JSON.stringify(message)));
  }

  async close(): Promise<void> {
    this.end();
  }

  /** Closes the session once, and tells the client. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#session?.close();
    this.#onEnd();
    this.#tell(() => this.onclose?.());
  }

  #deliver(message: Uint8Array): void {
    if (this.#isEnded) return;
    this.#tell(() => this.onmessage?.(JSON.parse(TEXT.decode(message))));
  }

  /** Calls a function of the client. An error of it must not stop the gateway, or its end. */
  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
