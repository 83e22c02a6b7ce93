import { createHash } from 'node:crypto';
import type { Config } from '../config/resolve/config.js';
import type { CallFeed } from '../gateway/call-feed.js';
import type { Gateway } from '../gateway/gateway.js';
import type { MessageFeed } from '../io/message-feed.js';
import { LATEST_LEGACY_REVISION } from '../mcp/revisions.js';
import type { FindSecrets, Redact } from '../observe/redact.js';
import { callLogFile } from '../state/user-files.js';
import type { Clock } from '../timing/clock.js';
import { VERSION } from '../version.js';
import { CallLog, openCallFile } from './call-log.js';
import { serverOf } from './format.js';
import { Recorder, type RecorderOptions } from './recorder.js';
import { createRecording, DEFAULT_MAX_BYTES, largestMessage } from './recording-file.js';

/** The parts of a running gateway that recordings need. */
export interface RecordedGateway {
  readonly platform: { readonly messages: MessageFeed; readonly clock: Clock };
  readonly calls: CallFeed;
  readonly gateway: Pick<Gateway, 'pool'>;
  readonly config: Pick<Config, 'servers'>;
  readonly secrets: { readonly find: FindSecrets; readonly redact: Redact };
}

/** The recorded gateway, and the logger that reports a file which cannot be written. */
export interface RecordingContext {
  readonly composition: RecordedGateway;
  readonly logger: { warn(facts: object, text: string): void };
}

/** Records all messages of this process to a file, until the recorder is closed. Rejects if the file cannot be written. */
export async function recordTo(
  file: string,
  maxBytes: number = DEFAULT_MAX_BYTES,
  { composition, logger }: RecordingContext,
): Promise<Recorder> {
  const { config, secrets } = composition;
  const sink = await createRecording(file, maxBytes, {
    version: VERSION,
    configDigest: digestOf(config, secrets.redact),
    servers: config.servers.map(({ key }) => key),
    revision: LATEST_LEGACY_REVISION,
  });
  const onFault = (err: unknown) =>
    logger.warn({ err, file }, 'the recording cannot be written; messages are missing in it');
  return showMessages(composition, { sink, onFault, maxMessageBytes: largestMessage(maxBytes) });
}

/** Passes all messages on to a sink as the lines of a recording. */
export function showMessages(
  { platform, secrets }: Pick<RecordedGateway, 'platform' | 'secrets'>,
  options: Pick<RecorderOptions, 'sink' | 'server' | 'onFault' | 'maxMessageBytes'>,
): Recorder {
  const { messages, clock } = platform;
  return new Recorder({ ...options, feed: messages, findSecrets: secrets.find, now: () => clock.now() });
}

/** Writes the call log until the returned function is called. */
export async function logCalls(
  wantsContent: boolean,
  { composition, logger }: RecordingContext,
): Promise<() => Promise<void>> {
  const { calls, gateway, secrets } = composition;
  const file = callLogFile();
  const log = new CallLog({
    sink: await openCallFile(file),
    wantsContent,
    redact: secrets.redact,
    generationOf: (instance) =>
      gateway.pool.of(serverOf(instance)).find(({ id }) => id === instance)?.dispatcher.availability.generation,
    onFault: (err) => logger.warn({ err, file }, 'the call log cannot be written; calls are missing in it'),
  });
  calls.observer = log;
  return async () => {
    calls.observer = undefined;
    await log.close();
  };
}

/** The variables of the servers are left out: a digest of few possible values tells the value. */
function digestOf({ servers }: Pick<Config, 'servers'>, redact: Redact): string {
  const programs = servers.map(({ key, child }) => [key, child?.command, child?.args, Object.keys(child?.env ?? {})]);
  return createHash('sha256')
    .update(redact(JSON.stringify(programs)))
    .digest('hex')
    .slice(0, 16);
}
