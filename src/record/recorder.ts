import type { MessageFeed, PassingMessage } from '../io/message-feed.js';
import { asText } from '../json/json-value.js';
import { splice, splicedLength } from '../json/splice.js';
import type { FindSecrets } from '../observe/redact.js';
import { createCleaner } from './clean-message.js';
import { contentOf, describeGap, type Entry, serverOf } from './format.js';
import { LineQueue, type LineSink } from './line-queue.js';

export interface RecorderOptions {
  readonly feed: Pick<MessageFeed, 'observe'>;
  readonly findSecrets: FindSecrets;
  readonly sink: LineSink;
  /** Shows only the messages to and from this server. */
  readonly server?: string | undefined;
  /** The size of the largest message that has room; `MAX_MESSAGE_BYTES` if absent. */
  readonly maxMessageBytes?: number | undefined;
  /** Milliseconds on the monotonic clock. */
  readonly now: () => number;
  readonly onFault: (error: unknown) => void;
}

/** Data that waits for the disk. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** A larger message is not recorded: removing its secrets would hold the event loop. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Of what a client calls itself, so much is read, and so much of that is shown. */
const MAX_READ_CHARACTERS = 16 * 1024;
const MAX_NAME_CHARACTERS = 200;
/** Members of an entry besides the message. */
const ENTRY_BYTES = 200;

/** Writes the messages that pass to a sink, from now until it is closed. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #queue: LineQueue;
  readonly #clean: (text: string) => string;
  readonly #stop: () => void;
  /** From milliseconds on the clock to milliseconds since 1970. */
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

/** A client may call itself anything, at any length. What is left at a cut is no half of a secret: more than that was read. */
function nameOf(
  { name, version }: { name?: unknown; version?: unknown } = {},
  clean: (text: string) => string,
): string {
  const text = clean([name, version].map((each) => asText(each).slice(0, MAX_READ_CHARACTERS)).join('/'));
  return text.length > MAX_NAME_CHARACTERS ? `${text.slice(0, MAX_NAME_CHARACTERS)}…` : text;
}
