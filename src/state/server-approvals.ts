import type { ApprovalFacts, ApprovalVerdict, ToolApprovals } from '../gateway/catalog/tool-approval.js';
import { type ApprovalFile, ApprovalFileError, type Approved, digestOf, withApproved } from './approval-file.js';

export interface ServerApprovalsOptions {
  readonly file: ApprovalFile;
  /** The command that shows the withheld tools. */
  readonly command: string;
  /** Whether the first tools of a server are approved without review. */
  readonly trustsFirstUse: boolean;
  /** Called when the first tools were approved, with their number. */
  readonly onFirstUse: (tools: number) => void;
  /** Called once for each different fault of the file. */
  readonly onFault: (fault: string) => void;
  /** Called with all withheld tools when another one is withheld. */
  readonly onWithheld: (withheld: readonly WithheldTool[]) => void;
}

/** A tool that waits for approval. */
export interface WithheldTool {
  readonly name: string;
  readonly definition: string;
}

/** More than any server has at once; the least recently seen tools are dropped first. */
const MAX_WITHHELD = 2_000;

/** Decides which tools of one server are approved, for all its processes. */
export class ServerApprovals implements ToolApprovals {
  readonly #options: ServerApprovalsOptions;
  /** `undefined` until the first approval. */
  #approved: Approved | undefined;
  #isFirstUse = false;
  #fault: string | undefined;
  #isUnreadable = false;
  /** By digest. */
  readonly #withheld = new Map<string, WithheldTool>();
  /** Digests of the latest list by tool name. */
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
    return { tools: this.#approved?.size ?? 0, isFirstUse: this.#isFirstUse, fault: this.#fault, advice };
  }

  /** Tools that were listed and are not approved. */
  get withheld(): readonly WithheldTool[] {
    return [...this.#withheld.values()].filter(
      ({ name, definition }) => this.#verdictOn(name, definition) !== 'approved',
    );
  }

  /** Whether no tool of this server was ever approved or reviewed. */
  get isUntouched(): boolean {
    return this.#approved === undefined && !this.#isUnreadable;
  }

  /** The file exists and cannot be used, so no tool is approved. */
  get isUnreadable(): boolean {
    return this.#isUnreadable;
  }

  hasListed(name: string): boolean {
    return this.#listed.has(name);
  }

  /** Whether the server lists this definition in this run; otherwise a running gateway has seen it. */
  isOffered({ name, definition }: WithheldTool): boolean {
    return this.#listed.get(name) === digestOf(definition);
  }

  judge(definitions: ReadonlyMap<string, string>): ReadonlyMap<string, ApprovalVerdict> {
    // An empty list does not count as first use: some servers add their tools later.
    if (this.isUntouched && this.#options.trustsFirstUse && definitions.size > 0) this.#begin(definitions);
    const verdicts = new Map<string, ApprovalVerdict>();
    let hasNew = false;
    for (const [name, definition] of definitions) {
      this.#listed.set(name, digestOf(definition));
      const verdict = this.#verdictOn(name, definition);
      verdicts.set(name, verdict);
      if (verdict !== 'approved') hasNew = this.note({ name, definition }) || hasNew;
    }
    if (hasNew) this.#options.onWithheld(this.withheld);
    return verdicts;
  }

  /** Remembers a tool that may be withheld. Returns whether it is a new one. */
  note(tool: WithheldTool): boolean {
    const digest = digestOf(tool.definition);
    const isNew = !this.#withheld.delete(digest);
    this.#withheld.set(digest, tool);
    const [oldest = digest] = this.#withheld.keys();
    if (this.#withheld.size > MAX_WITHHELD) this.#withheld.delete(oldest);
    return isNew;
  }

  /** Whether an earlier definition of a withheld tool was approved, and the text of the latest one if it is stored. */
  earlier({ name }: WithheldTool): { readonly wasApproved: boolean; readonly definition: string | undefined } {
    const last = this.#approved?.get(name)?.at(-1);
    return { wasApproved: last !== undefined, definition: last?.text };
  }

  /** Adds approvals; an empty list records that a person has reviewed the tools. Throws when the file cannot be written. */
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
      // A removed file counts from the next start on; until then the known approvals stay valid.
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

  #begin(definitions: ReadonlyMap<string, string>): void {
    const { file, onFirstUse } = this.#options;
    const first = withApproved(new Map(), definitions);
    try {
      if (!file.create(first)) {
        // Another process has created the file first.
        this.reread();
        return;
      }
    } catch (error) {
      this.#reportFault(`the approvals cannot be stored, so the next run starts without them: ${String(error)}`);
    }
    this.#approved = first;
    this.#isFirstUse = true;
    onFirstUse(first.size);
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
