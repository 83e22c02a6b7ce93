import type { ApprovalFacts, ApprovalVerdict, ToolApprovals } from '../gateway/catalog/tool-approval.js';
import { type ApprovalFile, ApprovalFileError, type Approved, digestOf, withApproved } from './approval-file.js';

export interface ServerApprovalsOptions {
  readonly file: ApprovalFile;
  /** What a person types to see what is withheld. */
  readonly command: string;
  /** Whether the first tools of a server are approved as they are; otherwise all of them wait for a person. */
  readonly trustsFirstUse: boolean;
  /** The first tools were approved. */
  readonly onFirstUse: (tools: number) => void;
  /** What is wrong with the file; told once for each fault. */
  readonly onFault: (fault: string) => void;
  /** Told what is withheld now, whenever something was withheld that was not before. */
  readonly onWithheld: (withheld: readonly WithheldTool[]) => void;
}

/** A tool that waits for approval. */
export interface WithheldTool {
  readonly name: string;
  readonly definition: string;
}

/** More than any server has at once; those that were seen longest ago go first. */
const MAX_WITHHELD = 2_000;

/** What is approved of the tools of one server, for all its processes. */
export class ServerApprovals implements ToolApprovals {
  readonly #options: ServerApprovalsOptions;
  /** `undefined` as long as nothing ever was. */
  #approved: Approved | undefined;
  #isFirstUse = false;
  #fault: string | undefined;
  #isUnreadable = false;
  /** By digests. */
  readonly #withheld = new Map<string, WithheldTool>();
  /** The digests of what was listed last, by names. */
  readonly #listed = new Map<string, string>();

  constructor(options: ServerApprovalsOptions) {
    this.#options = options;
    this.reread();
  }

  get facts(): ApprovalFacts {
    const { file, command } = this.#options;
    const advice = this.#isUnreadable
      ? `That is for the person who runs Trunkline to mend: ${file.path}.`
      : `That is for the person who runs Trunkline to decide: \`${command}\` shows what is new or changed.`;
    return { tools: this.#approved?.size ?? 0, isFirstUse: this.#isFirstUse, fault: this.#fault, advice };
  }

  /** What was seen and is not approved. */
  get withheld(): readonly WithheldTool[] {
    return [...this.#withheld.values()].filter(
      ({ name, definition }) => this.#verdictOn(name, definition) !== 'approved',
    );
  }

  /** Whether nothing was ever approved or refused. */
  get isUntouched(): boolean {
    return this.#approved === undefined && !this.#isUnreadable;
  }

  /** The file is there and says nothing that can be used, so nothing is approved. */
  get isUnreadable(): boolean {
    return this.#isUnreadable;
  }

  hasListed(name: string): boolean {
    return this.#listed.has(name);
  }

  /** Whether the server offers the tool in this run; otherwise it did to a client of a gateway. */
  isOffered({ name, definition }: WithheldTool): boolean {
    return this.#listed.get(name) === digestOf(definition);
  }

  judge(definitions: ReadonlyMap<string, string>): ReadonlyMap<string, ApprovalVerdict> {
    // A list that is still empty says nothing; some servers fill theirs later.
    if (this.isUntouched && this.#options.trustsFirstUse && definitions.size > 0) this.#begin(definitions);
    const verdicts = new Map<string, ApprovalVerdict>();
    let isNews = false;
    for (const [name, definition] of definitions) {
      this.#listed.set(name, digestOf(definition));
      const verdict = this.#verdictOn(name, definition);
      verdicts.set(name, verdict);
      if (verdict !== 'approved') isNews = this.note({ name, definition }) || isNews;
    }
    if (isNews) this.#options.onWithheld(this.withheld);
    return verdicts;
  }

  /** Remembers a tool that may be withheld. Returns whether that is news. */
  note(tool: WithheldTool): boolean {
    const digest = digestOf(tool.definition);
    const isNews = !this.#withheld.delete(digest);
    this.#withheld.set(digest, tool);
    const [oldest = digest] = this.#withheld.keys();
    if (this.#withheld.size > MAX_WITHHELD) this.#withheld.delete(oldest);
    return isNews;
  }

  /** How it stands with a tool that is withheld: whether there is an approved one of its name, and the last one's text. */
  earlier({ name }: WithheldTool): { readonly isThere: boolean; readonly definition: string | undefined } {
    const last = this.#approved?.get(name)?.at(-1);
    return { isThere: last !== undefined, definition: last?.text };
  }

  /** Approves these, besides what is approved already; none at all says that a person has looked. Throws what writing throws. */
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

  /** What the file says may be different. Returns whether it is. */
  reread(): boolean {
    const before = { approved: this.#approved, isUnreadable: this.#isUnreadable };
    try {
      const now = this.#options.file.read();
      // Who removes the file means the next start; here it is known what was approved.
      if (now === undefined && !before.isUnreadable) return false;
      this.#isUnreadable = false;
      this.#fault = undefined;
      this.#approved = now ?? before.approved;
    } catch (error) {
      if (!(error instanceof ApprovalFileError)) throw error;
      this.#isUnreadable = true;
      this.#tellFault(error.message);
    }
    return before.isUnreadable !== this.#isUnreadable || digestsOf(before.approved) !== digestsOf(this.#approved);
  }

  #begin(definitions: ReadonlyMap<string, string>): void {
    const { file, onFirstUse } = this.#options;
    const first = withApproved(new Map(), definitions);
    try {
      if (!file.create(first)) {
        // Another process was quicker.
        this.reread();
        return;
      }
    } catch (error) {
      this.#tellFault(`what is approved cannot be kept, so the next run begins anew: ${String(error)}`);
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

  #tellFault(fault: string): void {
    if (this.#fault === fault) return;
    this.#fault = fault;
    this.#options.onFault(fault);
  }
}

function digestsOf(approved: Approved | undefined): string {
  const digests = [...(approved ?? [])].map(([name, definitions]) => [name, definitions.map(({ digest }) => digest)]);
  return JSON.stringify(digests);
}
