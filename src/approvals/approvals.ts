import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { CacheFolder } from '../cache/cache-folder.js';
import type { FileWatch } from '../files/watch-files.js';
import type { Logger } from '../observe/logger.js';
import type { Cancel, Clock } from '../timing/clock.js';
import { ApprovalFile } from './approval-file.js';
import { ServerApprovals, type WithheldTool } from './server-approvals.js';

/** Where it is kept what is approved, and what whoever is composed does about it. */
export interface ApprovalPlaces {
  readonly approvalsFolder: string;
  /** Where it is noted what gateways withhold, for the command that approves it. */
  readonly withheldFolder: string;
  /**
   * `serve` takes over what is approved meanwhile, and notes what it withholds; `once` does neither; `review` does not
   * even approve the first tools of a server.
   */
  readonly purpose: 'serve' | 'once' | 'review';
}

export interface ApprovalsOptions {
  readonly places: ApprovalPlaces;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Something else is approved of this server, by another process. */
  readonly onChange: (key: string) => void;
}

interface Known {
  readonly key: string;
  readonly file: ApprovalFile;
  readonly approvals: ServerApprovals;
}

/** Nobody approves anything while a client waits for its first answers. */
const FOLLOW_AFTER_MS = 1_000;
const MAX_WITHHELD_BYTES = 8 * 1024 * 1024;
const MAX_WITHHELD_FILES = 256;
const DIGEST_LENGTH = 16;

/** What is approved of the servers, each in a file of its own that goes by the configuration file and the server's key. */
export class Approvals {
  readonly #options: ApprovalsOptions;
  /** By the paths of their files. */
  readonly #known = new Map<string, Known>();
  readonly #noted: CacheFolder;
  #cancel: Cancel = () => {};
  #isFollowing = false;
  #watch: Promise<FileWatch> | undefined;

  constructor(options: ApprovalsOptions) {
    const { places, logger } = options;
    this.#options = options;
    this.#noted = new CacheFolder({
      folder: places.withheldFolder,
      maxFileBytes: MAX_WITHHELD_BYTES,
      maxFiles: MAX_WITHHELD_FILES,
      onIgnored: (file, reason) => logger.debug({ file, reason }, 'not used: a note of withheld tools'),
      onFault: (err) => logger.warn({ err }, '`trunkline approve` will not see what only this client is offered'),
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
      command: `trunkline approve ${key} --config ${quoted(configFile)}`,
      trustsFirstUse: places.purpose !== 'review',
      onFirstUse: (tools) =>
        logger.warn({ server: key, tools }, 'the tools of this server are approved: they are the first'),
      onFault: (fault) => logger.error({ server: key, fault }, 'approvals'),
      onWithheld: (withheld) => {
        logger.warn({ server: key, tools: withheld.map(({ name: tool }) => tool) }, 'tools wait for approval');
        if (places.purpose === 'serve') this.#noted.write(name, new TextEncoder().encode(JSON.stringify(withheld)));
      },
    });
    this.#known.set(path, { key, file, approvals });
    if (places.purpose === 'review') for (const tool of this.#readNote(name)) approvals.note(tool);
    if (this.#isFollowing) this.#openWatch();
    return approvals;
  }

  /** From soon on, takes over what other processes approve. */
  follow(): void {
    if (this.#options.places.purpose !== 'serve') return;
    this.#cancel = this.#options.clock.schedule(FOLLOW_AFTER_MS, () => {
      this.#isFollowing = true;
      if (this.#known.size > 0) this.#openWatch();
    });
  }

  /** Resolves when nothing is followed any more and all notes are written. */
  async close(): Promise<void> {
    this.#cancel();
    this.#isFollowing = false;
    const watch = this.#watch;
    this.#watch = undefined;
    await Promise.all([watch?.then((each) => each.close()), this.#noted.settled()]);
  }

  #openWatch(): void {
    const { clock, logger } = this.#options;
    const before = this.#watch;
    const onError = (err: unknown) => logger.warn({ err }, 'approvals may go unnoticed until the next start');
    const open = async () => {
      const { watchFiles } = await import('../files/watch-files.js');
      const files = [...this.#known.keys()];
      const watch = watchFiles({ files, clock, onChange: () => this.#reread(), onError });
      // Something may have been approved before.
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
      this.#options.logger.info({ server: key }, 'what is approved of this server has changed');
      this.#options.onChange(key);
    }
  }

  #readNote(name: string): readonly WithheldTool[] {
    const bytes = this.#noted.read(name);
    if (bytes === undefined) return [];
    try {
      const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
      return Array.isArray(value) ? value.filter(isWithheldTool) : [];
    } catch {
      // It is only a note; what the server says when it is started counts as well.
      return [];
    }
  }
}

function isWithheldTool(value: unknown): value is WithheldTool {
  if (typeof value !== 'object' || value === null) return false;
  const { name, definition } = value as Partial<Record<keyof WithheldTool, unknown>>;
  return typeof name === 'string' && typeof definition === 'string';
}

/** As it can be typed into a shell. */
function quoted(path: string): string {
  if (/^[\w./:\\@+-]+$/.test(path)) return path;
  return process.platform === 'win32' ? `"${path}"` : `'${path.replaceAll("'", `'\\''`)}'`;
}
