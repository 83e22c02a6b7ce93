import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { watchFiles } from '../host/files/watch-files.js';
import { createFileSync, privateFile, readRegularFileSync, replaceFileSync } from '../host/files/whole-file.js';
import type { Logger } from '../host/observe/logger.js';
import type { ApprovalFacts, ApprovalVerdict, ApprovedKind, ToolApprovals } from '../spec/tool-approvals.js';
import { NewestMap } from '../wire/io/newest-map.js';
import { isRecord, parseJson } from '../wire/json/json-value.js';
import { quotedPath } from '../wire/json/printable.js';
import type { Cancel, Clock } from '../wire/timing/clock.js';
import { CacheFolder } from './cache-folder.js';

/** The folders of the approvals, and the purpose for which this process opens them. */
export interface ApprovalFolders {
  readonly approvalsFolder: string;
  /** Folder of withheld tools, which gateways write and `trunkline approve` reads. */
  readonly withheldFolder: string;
  /**
   * `serve` follows changes of the approvals and stores the tools that it withholds; `once` does neither; `review` reads
   * the stored tools and does not approve the first tools of a server.
   */
  readonly purpose: 'serve' | 'once' | 'review';
}

interface ApprovalsOptions {
  readonly folders: ApprovalFolders;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called when another process has changed the approvals of a server. */
  readonly onChange: (key: string) => void;
}

const MAX_WITHHELD_BYTES = 8 * 1024 * 1024;
const MAX_WITHHELD_FILES = 256;
const DIGEST_LENGTH = 16;

/** The approvals of all servers, one file for each pair of configuration file and server key. */
export class Approvals {
  readonly #options: ApprovalsOptions;
  /** Approvals by the path of their file. */
  readonly #known = new Map<
    string,
    { readonly key: string; readonly file: ApprovalFile; readonly approvals: ServerApprovals }
  >();
  readonly #withheld: CacheFolder;
  #isFollowing = false;
  #unwatch: Cancel = () => {};

  constructor(options: ApprovalsOptions) {
    const { folders, logger } = options;
    this.#options = options;
    this.#withheld = new CacheFolder({
      folder: folders.withheldFolder,
      maxFileBytes: MAX_WITHHELD_BYTES,
      maxFiles: MAX_WITHHELD_FILES,
      onIgnored: (file, reason) => logger.debug({ file, reason }, 'a file of withheld tools is ignored'),
      onFault: (err) =>
        logger.warn({ err }, 'withheld tools cannot be stored, so `trunkline approve` may not show all of them'),
    });
  }

  /** Returns the approvals of a server. Reads their file at the first call for the server. */
  of(key: string, configFile: string): ServerApprovals {
    const name = `${createHash('sha256').update(configFile).digest('hex').slice(0, DIGEST_LENGTH)}-${key}`;
    const { folders, logger } = this.#options;
    const path = join(folders.approvalsFolder, `${name}.json`);
    const known = this.#known.get(path);
    if (known !== undefined) return known.approvals;
    const file = new ApprovalFile(path);
    const approvals = new ServerApprovals({
      file,
      command: `trunkline approve ${key} --config ${quotedPath(configFile, process.platform)}`,
      trustsFirstUse: folders.purpose !== 'review',
      onFirstUse: (count, kind) =>
        logger.warn(
          { server: key, [kind]: count },
          `approved the first ${kind} of this server; later changes need \`trunkline approve\``,
        ),
      onFault: (fault) => logger.error({ server: key, fault }, 'the approvals of this server cannot be used'),
      onWithheld: (withheld) => {
        logger.warn(
          { server: key, tools: withheld.map(({ name: tool }) => tool) },
          'tools wait for approval; `trunkline approve` shows them',
        );
        if (folders.purpose === 'serve') this.#withheld.write(name, new TextEncoder().encode(JSON.stringify(withheld)));
      },
    });
    this.#known.set(path, { key, file, approvals });
    if (folders.purpose === 'review') for (const tool of this.#readWithheld(name)) approvals.note(tool);
    if (this.#isFollowing) this.#watch();
    return approvals;
  }

  /** Starts to apply the approvals of other processes. */
  follow(): void {
    if (this.#options.folders.purpose !== 'serve') return;
    this.#isFollowing = true;
    this.#watch();
    // The approvals may have changed since they were read.
    this.#reread();
  }

  /** Stops watching. Resolves when all files are written. */
  async close(): Promise<void> {
    this.#isFollowing = false;
    this.#unwatch();
    await this.#withheld.settled();
  }

  #watch(): void {
    this.#unwatch();
    const files = [...this.#known.keys()];
    this.#unwatch = watchFiles({ files, clock: this.#options.clock, onChange: () => this.#reread() });
  }

  #reread(): void {
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
    // A damaged file is ignored, because the server lists its tools again when it starts.
    return Array.isArray(value) ? value.filter(isWithheldTool) : [];
  }
}

function isWithheldTool(value: unknown): value is WithheldTool {
  return isRecord(value) && typeof value.name === 'string' && typeof value.definition === 'string';
}

interface ApprovedDefinition {
  readonly digest: string;
  /**
   * The definition, to show the difference to a later one. Absent if the definition is too long to store, or if the file has no
   * room left for it beside the texts of later approvals.
   */
  readonly text?: string;
}

/**
 * Approved definitions by tool name, in the order of approval. A tool can have several definitions, because a server may
 * describe it differently to different clients.
 */
type Approved = ReadonlyMap<string, readonly ApprovedDefinition[]>;

/** Thrown for an approval file that cannot be used. Ignoring the file would approve all tools as first use. */
export class ApprovalFileError extends Error {
  override readonly name = 'ApprovalFileError';
}

const FORMAT = 1;
const MAX_FILE_BYTES = 32 * 1024 * 1024;
/** Limit on the entries in a file. All lists of a server together have fewer. The oldest approvals are dropped first. */
const MAX_TOOLS = 5_000;
/** Limit on the definitions of one tool. */
const MAX_DEFINITIONS = 8;
/** Limit on the text of one definition, the same as that of a schema. Longer definitions are stored as digests only. */
const MAX_TEXT_LENGTH = 64 * 1024;
/** Limit on all texts of a file together. The oldest approvals lose their texts first. */
const MAX_TEXTS_LENGTH = 4 * 1024 * 1024;

/** SHA-256 of a definition, by which approvals are compared. */
export function digestOf(definition: string): string {
  return createHash('sha256').update(definition).digest('hex');
}

/** Adds definitions, given as pairs of tool name and definition. */
export function withApproved(before: Approved, definitions: Iterable<readonly [string, string]>): Approved {
  const after = new Map(before);
  for (const [name, text] of definitions) {
    const digest = digestOf(text);
    const others = (after.get(name) ?? []).filter((other) => other.digest !== digest);
    after.delete(name);
    after.set(name, [...others, { digest, text }].slice(-MAX_DEFINITIONS));
  }
  return bounded(after);
}

/** The file with the approvals of one server. Only this user can read or write it. */
export class ApprovalFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Reads the approvals; `undefined` when there is no file. Throws an `ApprovalFileError`. */
  read(): Approved | undefined {
    const found = readRegularFileSync(this.path, privateFile(MAX_FILE_BYTES));
    if (found.kind === 'absent') return undefined;
    if (found.kind === 'unusable') throw new ApprovalFileError(`${this.path} is not used: ${found.reason}`);
    const approved = parse(found.bytes.toString());
    if (approved === undefined)
      throw new ApprovalFileError(`${this.path} is not used: it is damaged or has another format`);
    return approved;
  }

  /** Creates the file. Returns false, and changes nothing, if the file exists. */
  create(approved: Approved): boolean {
    return createFileSync(this.path, serialize(approved), { flush: true });
  }

  replace(approved: Approved): void {
    replaceFileSync(this.path, serialize(approved), { flush: true });
  }
}

function serialize(approved: Approved): string {
  return `${JSON.stringify({ format: FORMAT, tools: [...approved] })}\n`;
}

function bounded(approved: Approved): Approved {
  let freeSpace = MAX_TEXTS_LENGTH;
  const latest = [...approved].slice(-MAX_TOOLS).reverse();
  const fitting = latest.map(([name, definitions]) => {
    const each = definitions.toReversed().map(({ digest, text = '' }): ApprovedDefinition => {
      const fits = text !== '' && text.length <= Math.min(MAX_TEXT_LENGTH, freeSpace);
      if (fits) freeSpace -= text.length;
      return fits ? { digest, text } : { digest };
    });
    return [name, each.reverse()] as const;
  });
  return new Map(fitting.reverse());
}

function parse(text: string): Approved | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || value.format !== FORMAT || !Array.isArray(value.tools)) return undefined;
  const { tools } = value;
  return tools.every(isTool) ? new Map(tools) : undefined;
}

function isTool(value: unknown): value is readonly [string, readonly ApprovedDefinition[]] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [name, definitions] = value;
  return typeof name === 'string' && Array.isArray(definitions) && definitions.every(isDefinition);
}

function isDefinition(value: unknown): value is ApprovedDefinition {
  if (!isRecord(value) || typeof value.digest !== 'string') return false;
  return value.text === undefined || typeof value.text === 'string';
}

interface ServerApprovalsOptions {
  readonly file: ApprovalFile;
  readonly command: string;
  /** Whether the first tools of a server are approved without review. */
  readonly trustsFirstUse: boolean;
  /** Called when the first list of a kind was approved, with its number of entries. */
  readonly onFirstUse: (count: number, kind: ApprovedKind) => void;
  /** Called once for each different fault of the file. */
  readonly onFault: (fault: string) => void;
  /** Called with all withheld tools when another one is withheld. */
  readonly onWithheld: (withheld: readonly WithheldTool[]) => void;
}

/** A tool that waits for approval; or a prompt, a resource, a template or the instructions, whose names begin with the kind. */
export interface WithheldTool {
  readonly name: string;
  readonly definition: string;
}

/** Matches the names of stored approvals that are not of tools, but of entries of the other lists or of the instructions. */
const OTHER_KINDS = /^(?:(?:prompts|resources|templates) |instructions$)/;

/** Limit on withheld tools. All lists of a server together have fewer. The least recently seen tools are dropped first. */
const MAX_WITHHELD = 5_000;

/** Decides which tools of one server are approved, for all its processes. */
export class ServerApprovals implements ToolApprovals {
  readonly #options: ServerApprovalsOptions;
  /** `undefined` until the first approval. */
  #approved: Approved | undefined;
  #isFirstUse = false;
  /** The kinds whose first list was approved in this run. */
  readonly #begun = new Set<ApprovedKind>();
  #fault: string | undefined;
  #isUnreadable = false;
  /** Withheld tools by digest. */
  readonly #withheld = new NewestMap<string, WithheldTool>(MAX_WITHHELD);
  /** Digest of the definition that the server listed last, by tool name. Names of earlier lists stay. */
  readonly #listed = new Map<string, string>();

  constructor(options: ServerApprovalsOptions) {
    this.#options = options;
    this.reread();
  }

  get facts(): ApprovalFacts {
    const { file, command } = this.#options;
    const advice = this.#isUnreadable
      ? `The person who runs Trunkline has to repair or remove this file: ${file.path}.`
      : `The person who runs Trunkline has to decide: \`${command}\` shows what is new or changed.`;
    const tools = [...(this.#approved?.keys() ?? [])].filter((name) => !OTHER_KINDS.test(name)).length;
    return { tools, isFirstUse: this.#isFirstUse, fault: this.#fault, advice };
  }

  get withheld(): readonly WithheldTool[] {
    return [...this.#withheld.values()].filter(
      ({ name, definition }) => this.#verdictOn(name, definition) !== 'approved',
    );
  }

  /** Whether no tool of this server was ever approved or reviewed. */
  get isUntouched(): boolean {
    return this.#approved === undefined && !this.#isUnreadable;
  }

  /** Whether the file exists and cannot be used. No tool is approved then. */
  get isUnreadable(): boolean {
    return this.#isUnreadable;
  }

  hasListed(name: string): boolean {
    return this.#listed.has(name);
  }

  /**
   * Whether this is the definition that the server listed last in this run. If not, it comes from the stored tools, which a
   * running gateway withholds.
   */
  isOffered({ name, definition }: WithheldTool): boolean {
    return this.#listed.get(name) === digestOf(definition);
  }

  judge(byName: ReadonlyMap<string, string>, kind: ApprovedKind = 'tools'): ReadonlyMap<string, ApprovalVerdict> {
    const labelOf = (name: string) => (kind === 'tools' ? name : `${kind} ${name}`.trim());
    const definitions = new Map([...byName].map(([name, definition]) => [labelOf(name), definition]));
    // An empty list does not count as first use, because some servers add their tools later.
    const isFirst = (this.isUntouched || this.#isFirstUse) && !this.#begun.has(kind);
    if (isFirst && this.#options.trustsFirstUse && definitions.size > 0) this.#begin(definitions, kind);
    const verdicts = new Map<string, ApprovalVerdict>();
    let hasNew = false;
    for (const [name, definition] of definitions) {
      this.#listed.set(name, digestOf(definition));
      const verdict = this.#verdictOn(name, definition);
      verdicts.set(name, verdict);
      if (verdict !== 'approved') hasNew = this.note({ name, definition }) || hasNew;
    }
    if (hasNew) this.#options.onWithheld(this.withheld);
    return new Map([...byName.keys()].map((name) => [name, verdicts.get(labelOf(name)) ?? 'new']));
  }

  /** Notes a tool that may be withheld. Returns whether the definition is new. */
  note(tool: WithheldTool): boolean {
    const digest = digestOf(tool.definition);
    const isNew = !this.#withheld.has(digest);
    this.#withheld.set(digest, tool);
    return isNew;
  }

  /** Whether an earlier definition of a withheld tool was approved, and the text of the latest one, if it is stored. */
  earlier({ name }: WithheldTool): { readonly wasApproved: boolean; readonly definition: string | undefined } {
    const last = this.#approved?.get(name)?.at(-1);
    return { wasApproved: last !== undefined, definition: last?.text };
  }

  /** Adds approvals. An empty list records that the user has reviewed the tools. Throws if the file cannot be written. */
  approve(tools: readonly WithheldTool[]): void {
    const { file } = this.#options;
    const before = file.read() ?? new Map();
    const after = withApproved(
      before,
      tools.map(({ name, definition }) => [name, definition] as const),
    );
    file.replace(after);
    this.#approved = after;
  }

  /** Reads the file again. Returns whether the approvals have changed. */
  reread(): boolean {
    const before = { approved: this.#approved, isUnreadable: this.#isUnreadable };
    try {
      const now = this.#options.file.read();
      // If the file was removed, the known approvals stay valid until the next start.
      if (now === undefined && !before.isUnreadable) return false;
      this.#isUnreadable = false;
      this.#fault = undefined;
      this.#approved = now ?? before.approved;
    } catch (error) {
      if (!(error instanceof ApprovalFileError)) throw error;
      this.#isUnreadable = true;
      this.#reportFault(error.message);
    }
    return before.isUnreadable !== this.#isUnreadable || digestsOf(before.approved) !== digestsOf(this.#approved);
  }

  /** Approves the first list of a kind as a whole. Call it only if nothing of this server was approved before this run. */
  #begin(definitions: ReadonlyMap<string, string>, kind: ApprovedKind): void {
    const { file, onFirstUse } = this.#options;
    this.#begun.add(kind);
    const first = withApproved(this.#approved ?? new Map(), definitions);
    try {
      if (this.#isFirstUse) file.replace(first);
      else if (!file.create(first)) {
        // Another process has created the file first.
        this.reread();
        return;
      }
    } catch (error) {
      this.#reportFault(`the approvals cannot be stored, so the next run starts without them: ${String(error)}`);
    }
    this.#approved = first;
    this.#isFirstUse = true;
    onFirstUse(definitions.size, kind);
  }

  #verdictOn(name: string, definition: string): ApprovalVerdict {
    if (this.#isUnreadable) return 'unreadable';
    const known = this.#approved?.get(name);
    if (known === undefined) return 'new';
    const digest = digestOf(definition);
    return known.some((one) => one.digest === digest) ? 'approved' : 'changed';
  }

  #reportFault(fault: string): void {
    if (this.#fault === fault) return;
    this.#fault = fault;
    this.#options.onFault(fault);
  }
}

function digestsOf(approved: Approved | undefined): string {
  const digests = [...(approved ?? [])].map(([name, definitions]) => [name, definitions.map(({ digest }) => digest)]);
  return JSON.stringify(digests);
}
