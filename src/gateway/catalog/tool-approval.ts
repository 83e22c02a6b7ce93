/** Reason why a tool is not approved. `unreadable`: the file with the approvals cannot be read. */
export type Unapproved = 'changed' | 'new' | 'unreadable';

/** Approval state of a listed tool, if the tools of its server need approval. */
export type ApprovalVerdict = Unapproved | 'approved';

/** The approved tools of one server. */
export interface ToolApprovals {
  /**
   * Compares listed tool definitions, by original name, with the approved ones. Returns the verdict for each tool. The
   * first list that this server ever sent is approved as a whole.
   */
  judge(definitions: ReadonlyMap<string, string>): ReadonlyMap<string, ApprovalVerdict>;
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
  /** A sentence that says what a person has to do about withheld tools. */
  readonly advice: string;
}

/** Reason in the status for a tool that is withheld from lists. */
export const WITHHELD_BECAUSE: Readonly<Record<Unapproved, string>> = {
  changed: 'changed since it was approved',
  new: 'new, not approved yet',
  unreadable: 'the approved tools cannot be read',
};

/** Reason why a call is refused. `unlisted`: the server does not list the tool. `unread`: its list of tools was not read yet. */
export type Refused = Unapproved | 'unlisted' | 'unread';

/** Text for a refused call: the reason, to follow `Server "NAME"`, and what to do. */
export function describeRefusal(verdict: Refused, { advice }: ApprovalFacts): string {
  return `${REFUSED_BECAUSE[verdict]} ${verdict === 'unread' ? UNREAD_ADVICE : advice}`;
}

/** Advice for a server without lists, because a person cannot approve unseen tools. */
const UNREAD_ADVICE = 'It has to list its tools first: Trunkline asks it again.';

const REFUSED_BECAUSE: Readonly<Record<Refused, string>> = {
  changed: 'has changed this tool since it was approved.',
  new: 'added this tool after its tools were approved, so this tool is not approved.',
  unreadable: 'needs approved tools, but the approved tools cannot be read.',
  unlisted: 'does not list this tool, and only listed tools can be approved.',
  unread: 'runs, but does not list its tools, so Trunkline cannot compare this tool with the approved ones.',
};
