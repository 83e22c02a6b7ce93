import { type Composition, compose } from '../compose/compose.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/config-error.js';
import { emptyConfig } from '../config/empty-config.js';
import { openStdioFront } from '../front/stdio.js';
import { LegacySession } from '../gateway/legacy-session.js';
import { createLogger, type Logger } from '../observe/logger.js';
import type { StopLadder } from '../supervision/launcher.js';
import { VERSION } from '../version.js';
import { EXIT, type ExitCode, readConfig, type Settings } from './settings.js';

/** A gateway must not be narrower than a direct connection. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** The host gives us a few seconds at most, and what we leave behind nobody ends. */
const FINAL_LADDER: StopLadder = { termAfterMs: 1_000, killAfterMs: 2_500 };
const AT_ONCE: StopLadder = { termAfterMs: 0, killAfterMs: 0 };
const EXIT_WITHIN_MS = 3_000;

/** Serves one client over stdin and stdout until it leaves or a signal comes. */
export async function serve(settings: Settings): Promise<ExitCode> {
  const logger = createLogger({
    verbosity: settings.verbosity,
    ...(settings.logFile === undefined ? {} : { file: settings.logFile }),
  });
  const { config, fault } = usableConfig(settings, logger);
  if (fault !== undefined && process.stdin.isTTY) {
    process.stderr.write(`${fault}\n`);
    return EXIT.usage;
  }
  const composition = compose({
    config,
    logger,
    environment: process.env,
    ...(fault === undefined ? {} : { configFault: fault }),
  });
  const { gateway, clock, scan, flow } = composition;
  const ended = untilToldToEnd(composition, logger, (onEnd) =>
    openStdioFront({
      input: process.stdin,
      output: process.stdout,
      flow,
      maxLineBytes: MAX_LINE_BYTES,
      openSession: (sink) =>
        new LegacySession({
          clock,
          scan,
          gateway,
          sink,
          serverInfo: { name: 'trunkline', title: 'Trunkline', version: VERSION },
          notice: fault === undefined ? ABOUT : `${ABOUT}\n\nThe configuration cannot be used:\n${fault}`,
        }),
      onEnd,
    }),
  );
  composition.start();
  return await ended;
}

const ABOUT =
  'Trunkline shows the tools of several MCP servers as one; a tool name begins with the key of its server and "__". If a tool is missing or fails, call trunkline__status: it tells how each server is and what to do.';

/**
 * The configuration, or none and what is wrong with it.
 *
 * A client that is attached already is better served by a gateway that can say what is wrong than by none.
 */
function usableConfig(settings: Settings, logger: Logger): { config: Config; fault?: string } {
  try {
    const config = readConfig(settings);
    for (const warning of config.warnings) logger.warn(warning);
    for (const { key, problem } of config.servers) if (problem !== undefined) logger.error({ server: key, ...problem });
    return { config };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (!process.stdin.isTTY) logger.error({ code: error.code }, error.report);
    return { config: emptyConfig(error.file), fault: error.report };
  }
}

/**
 * Resolves with the exit code once everything has been ended, whatever the cause: the client's end of file, a signal,
 * or an error of our own. A second signal ends what is left at once.
 */
function untilToldToEnd(
  composition: Composition,
  logger: Logger,
  openFront: (onEnd: () => void) => void,
): Promise<ExitCode> {
  return new Promise((resolve) => {
    let isEnding = false;
    const end = (cause: string, code: ExitCode) => {
      if (isEnding) {
        void composition.stop(AT_ONCE);
        return;
      }
      isEnding = true;
      logger.info({ cause }, 'ending');
      // Whatever a process stuck in the kernel does to the orderly way.
      setTimeout(() => resolve(code), EXIT_WITHIN_MS).unref();
      void composition.stop(FINAL_LADDER).then(() => resolve(code));
    };
    openFront(() => end('the client closed the connection', EXIT.ok));
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => end(signal, EXIT.ok));
    const onBug = (error: unknown) => {
      logger.fatal({ err: error }, 'a bug in Trunkline');
      end('a bug in Trunkline', EXIT.internal);
    };
    process.on('uncaughtException', onBug);
    process.on('unhandledRejection', onBug);
  });
}
