import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { FileWatch } from '../files/watch-files.js';
import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';
import type { Logger } from '../observe/logger.js';
import type { Cancel, Clock } from '../timing/clock.js';
import { ApprovalFile } from './approval-file.js';
import { CacheFolder } from './cache-folder.js';
import { ServerApprovals, type WithheldTool } from './server-approvals.js';

/** Folders of the approvals, and how this process uses them. */
export interface ApprovalPlaces {
  readonly approvalsFolder: string;
  /** Folder of withheld tools: gateways write it, and `trunkline approve` reads it. */
  readonly withheldFolder: string;
  /**
   * `serve` follows changes of the approvals and stores which tools it withholds; `once` does neither; `review` reads
   * the stored tools and does not approve the first tools of a server.
   */
  readonly purpose: 'serve' | 'once' | 'review';
}

export interface ApprovalsOptions {
  readonly places: ApprovalPlaces;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when another process has changed the approvals of a server. */
  readonly onChange: (key: string) => void;
}

interface Known {
  readonly key: string;
  readonly file: ApprovalFile;
  readonly approvals: ServerApprovals;
}

/** Watching starts after the first answers: loading the watcher would delay them. */
const FOLLOW_AFTER_MS = 1_000;
const MAX_WITHHELD_BYTES = 8 * 1024 * 1024;
const MAX_WITHHELD_FILES = 256;
const DIGEST_LENGTH = 16;

/** The approvals of all servers, one file for each pair of configuration file and server key. */
export class Approvals {
  readonly #options: ApprovalsOptions;
  /** By the path of the approval file. */
  readonly #known = new Map<string, Known>();
  readonly #withheld: CacheFolder;
  #cancel: Cancel = () => {};
  #isFollowing = false;
  #watch: Promise<FileWatch> | undefined;

  constructor(options: ApprovalsOptions) {
    const { places, logger } = options;
    this.#options = options;
    this.#withheld = new CacheFolder({
      folder: places.withheldFolder,
      maxFileBytes: MAX_WITHHELD_BYTES,
      maxFiles: MAX_WITHHELD_FILES,
      onIgnored: (file, reason) => logger.debug({ file, reason }, 'a file of withheld tools is ignored'),
      onFault: (err) =>
        logger.warn({ err }, 'withheld tools cannot be stored, so `trunkline approve` may not show all of them'),
    });
  }

  of(key: string, configFile: string): ServerApprovals {
    const name = `${createHash('sha256').update(configFile).digest('hex').slice(0, DIGEST_LENGTH)}-${key}`;
    const { places, logger } = this.#options;
    const path = join(places.approvalsFolder, `${name}.json`);
    const known = this.#known.get(path);
    if (known !== undefined) return known.approvals;
    const file = new ApprovalFile(path);
    const approvals = new ServerApprovals({
      file,
      command: `trunkline approve ${key} --config ${quotedPath(configFile)}`,
      trustsFirstUse: places.purpose !== 'review',
      onFirstUse: (tools) =>
        logger.warn(
          { server: key, tools },
          'approved the first tools of this server; later changes need `trunkline approve`',
        ),
      onFault: (fault) => logger.error({ server: key, fault }, 'the approvals of this server cannot be used'),
      onWithheld: (withheld) => {
        logger.warn(
          { server: key, tools: withheld.map(({ name: tool }) => tool) },
          'tools wait for approval; `trunkline approve` shows them',
        );
        if (places.purpose === 'serve') this.#withheld.write(name, new TextEncoder().encode(JSON.stringify(withheld)));
      },
    });
    this.#known.set(path, { key, file, approvals });
    if (places.purpose === 'review') for (const tool of this.#readWithheld(name)) approvals.note(tool);
    if (this.#isFollowing) this.#openWatch();
    return approvals;
  }

  /** Applies what other processes approve, from a second after the call on. */
  follow(): void {
    if (this.#options.places.purpose !== 'serve') return;
    this.#cancel = this.#options.clock.schedule(FOLLOW_AFTER_MS, () => {
      this.#isFollowing = true;
      if (this.#known.size > 0) this.#openWatch();
    });
  }

  /** Stops watching. Resolves when all files are written. */
  async close(): Promise<void> {
    this.#cancel();
    this.#isFollowing = false;
    const watch = this.#watch;
    this.#watch = undefined;
    await Promise.all([watch?.then((each) => each.close()), this.#withheld.settled()]);
  }

  #openWatch(): void {
    const { clock, logger } = this.#options;
    const before = this.#watch;
    const onError = (err: unknown) =>
      logger.warn({ err }, 'the approvals cannot be watched; restart Trunkline to apply new ones');
    const open = async () => {
      const { watchFiles } = await import('../files/watch-files.js');
      const files = [...this.#known.keys()];
      const watch = watchFiles({ files, clock, onChange: () => this.#reread(), onError });
      // The approvals may have changed before the watcher was ready.
      void watch.ready.then(() => this.#reread());
      void before?.then((each) => each.close());
      return watch;
    };
    this.#watch = open();
  }

  #reread(): void {
    if (!this.#isFollowing) return;
    for (const { key, approvals } of this.#known.values()) {
      if (!approvals.reread()) continue;
      this.#options.logger.info({ server: key }, 'the approvals of this server have changed');
      this.#options.onChange(key);
    }
  }

  #readWithheld(name: string): readonly WithheldTool[] {
    const bytes = this.#withheld.read(name);
    if (bytes === undefined) return [];
    const value = parseJson(new TextDecoder().decode(bytes));
    // A damaged file does no harm: the server lists its tools again when it starts.
    return Array.isArray(value) ? value.filter(isWithheldTool) : [];
  }
}

function isWithheldTool(value: unknown): value is WithheldTool {
  return isRecord(value) && typeof value.name === 'string' && typeof value.definition === 'string';
}

/** Quotes a path for a shell. */
export function quotedPath(path: string): string {
  if (/^[\w./:\\@+-]+$/.test(path)) return path;
  return process.platform === 'win32' ? `"${path}"` : `'${path.replaceAll("'", `'\\''`)}'`;
}
