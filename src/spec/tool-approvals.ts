/** Reason why a tool is not approved. `unreadable`: the file with the approvals cannot be read. */
export type Unapproved = 'changed' | 'new' | 'unreadable';

/** Approval state of a listed tool, if the tools of its server need approval. */
export type ApprovalVerdict = Unapproved | 'approved';

/** The kinds of texts that need approval: the entries of lists, and those of the handshake. */
export type ApprovedKind = 'tools' | 'prompts' | 'resources' | 'templates' | 'instructions';

export interface ToolApprovals {
  /**
   * Judges definitions by original name or URI. In the first run that uses this server, the first list of each kind that has
   * entries is approved as a whole.
   */
  judge(definitions: ReadonlyMap<string, string>, kind: ApprovedKind): ReadonlyMap<string, ApprovalVerdict>;
  readonly facts: ApprovalFacts;
}

/** State of the approvals of one server, for the status. */
export interface ApprovalFacts {
  /** Number of approved tools, listed or not. */
  readonly tools: number;
  /** Whether the tools were approved in this run, because they were the first that this server offered. */
  readonly isFirstUse: boolean;
  /** Problem with the file of the approvals, if there is one. */
  readonly fault: string | undefined;
  /** Sentence that tells the user what to do about withheld tools. */
  readonly advice: string;
}

/** Reason in the status for a tool that is withheld from lists. */
export const WITHHELD_BECAUSE: Readonly<Record<Unapproved, string>> = {
  changed: 'changed since it was approved',
  new: 'new, not approved yet',
  unreadable: 'the approved tools cannot be read',
};
