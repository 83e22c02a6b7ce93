import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Config } from '../../config/resolve/config.js';
import { type CallFeed, serverOf } from '../../gateway/call-feed.js';
import { withFile } from '../../host/errors/file-error.js';
import type { FindSecrets, Redact } from '../../host/observe/redact.js';
import { VERSION } from '../../version.js';
import type { MessageFeed, MessageObserver, PassingMessage } from '../../wire/io/message-feed.js';
import { asText } from '../../wire/json/json-value.js';
import { splice, splicedLength } from '../../wire/json/splice.js';
import { LATEST_LEGACY_REVISION } from '../../wire/mcp/revisions.js';
import type { Clock } from '../../wire/timing/clock.js';
import { createCleaner } from './clean-message.js';
import { describeGap, type Entry } from './format.js';
import { type LineOutput, LineQueue } from './line-queue.js';
import { createRecording, DEFAULT_MAX_BYTES, largestMessage, MAX_MESSAGE_BYTES } from './recording-file.js';

export interface RecordedGateway {
  readonly platform: { readonly messages: MessageFeed; readonly clock: Clock };
  readonly calls: CallFeed;
  readonly config: Config;
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
    logger.warn({ err: withFile(err, file), file }, 'the recording cannot be written; messages are missing in it');
  return showMessages(composition, { sink, onFault, maxMessageBytes: largestMessage(maxBytes) });
}

/** Passes all messages to a sink as the lines of a recording. */
export function showMessages({ platform, secrets }: RecordedGateway, options: ShownMessages): Recorder {
  const { messages, clock } = platform;
  return new Recorder({ ...options, feed: messages, findSecrets: secrets.find, now: () => clock.now() });
}

/** Leaves out the values of variables, because the digest of one of few possible values would reveal the value. */
function digestOf({ servers }: Config, redact: Redact): string {
  const programs = servers.map(({ key, spec }) =>
    spec?.kind === 'remote'
      ? [key, spec.url, Object.keys(spec.headers)]
      : [key, spec?.command, spec?.args, Object.keys(spec?.env ?? {})],
  );
  return createHash('sha256')
    .update(redact(JSON.stringify(programs)))
    .digest('hex')
    .slice(0, 16);
}

interface RecorderOptions extends ShownMessages {
  readonly feed: { observe(observer: MessageObserver): () => void };
  readonly findSecrets: FindSecrets;
  /** Returns milliseconds on the monotonic clock. */
  readonly now: () => number;
}

interface ShownMessages {
  readonly sink: LineOutput;
  /** Key of the server whose messages are shown; all messages if absent. */
  readonly server?: string | undefined;
  /** Limit of a message in bytes; `MAX_MESSAGE_BYTES` if absent. */
  readonly maxMessageBytes?: number | undefined;
  readonly onFault: (error: unknown) => void;
}

const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Limits of the characters of a client's name and version that are searched for secrets, and that are shown. */
const MAX_READ_CHARACTERS = 16 * 1024;
const MAX_NAME_CHARACTERS = 200;
/** Estimated bytes of an entry besides the message. */
const ENTRY_BYTES = 200;

/** Writes all messages to a sink, until it is closed. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #queue: LineQueue;
  readonly #clean: (text: string) => string;
  readonly #stop: () => void;
  /** Difference between milliseconds since 1970 and milliseconds on the clock. */
  readonly #epoch: number;

  constructor(options: RecorderOptions) {
    this.#options = options;
    const { feed, findSecrets, sink, now, onFault } = options;
    this.#queue = new LineQueue({ sink, maxBytes: MAX_WAITING_BYTES, describeGap, onFault });
    this.#clean = createCleaner(findSecrets);
    this.#epoch = Date.now() - now();
    this.#stop = feed.observe((passing) => this.#passed(passing));
  }

  get counts(): { readonly written: number; readonly dropped: number } {
    return this.#queue;
  }

  async close(): Promise<void> {
    this.#stop();
    await this.#queue.close();
  }

  #passed({ at, direction: dir, message, connection }: PassingMessage): void {
    const { server: only, maxMessageBytes = MAX_MESSAGE_BYTES } = this.#options;
    const instance = connection.server;
    if (only !== undefined && (instance === undefined || serverOf(instance) !== only)) return;
    const length = splicedLength(message);
    const isOmitted = length > maxMessageBytes;
    this.#queue.offer(ENTRY_BYTES + (isOmitted ? 0 : length), () => {
      const bytes = isOmitted ? undefined : splice(message);
      return () => {
        const { generation, number, client } = connection;
        const entry: Entry = {
          t: Math.round((this.#epoch + at) * 1_000) / 1_000,
          dir,
          ...(instance !== undefined && { server: serverOf(instance) }),
          ...(instance?.includes('~') && { instance }),
          ...(generation !== undefined && { gen: generation }),
          conn: number,
          ...(client?.() !== undefined && { client: nameOf(client(), this.#clean) }),
          ...(bytes === undefined ? { omitted: length } : contentOf(bytes, this.#clean)),
        };
        return JSON.stringify(entry);
      };
    });
  }
}

/** Returns name and version of a client. Searches more characters for secrets than it shows, so that a secret at the cut is recognized. */
function nameOf(
  { name, version }: { name?: unknown; version?: unknown } = {},
  clean: (text: string) => string,
): string {
  const text = clean([name, version].map((each) => asText(each).slice(0, MAX_READ_CHARACTERS)).join('/'));
  return text.length > MAX_NAME_CHARACTERS ? `${text.slice(0, MAX_NAME_CHARACTERS)}…` : text;
}

/** Returns the content of an entry. Bytes that are not UTF-8 are passed to `clean` as Latin 1, which shows all bytes. */
function contentOf(
  bytes: Uint8Array,
  clean: (text: string) => string,
): { readonly raw?: string; readonly base64?: string } {
  if (isUtf8(bytes)) return { raw: clean(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')) };
  const text = clean(Buffer.from(bytes).toString('latin1'));
  return { base64: Buffer.from(text, 'latin1').toString('base64') };
}
