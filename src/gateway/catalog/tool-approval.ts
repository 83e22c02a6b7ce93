/** Why a tool has to be approved before it is shown or called. */
export type Unapproved = 'changed' | 'new' | 'unreadable';

/** How it stands with a tool that its server lists, where tools have to be approved. */
export type ApprovalVerdict = Unapproved | 'approved';

/** What a person has approved of the tools of one server. */
export interface ToolApprovals {
  /**
   * Judges what a server lists: definitions of tools, by its own names for them. The first list there ever was of
   * this server is approved as it is.
   */
  judge(definitions: ReadonlyMap<string, string>): ReadonlyMap<string, ApprovalVerdict>;
  readonly facts: ApprovalFacts;
}

export interface ApprovalFacts {
  /** How many tools are approved, listed or not. */
  readonly tools: number;
  /** They were approved in this run, by being the first ones. */
  readonly isFirstUse: boolean;
  /** What is wrong with the place where it is kept. */
  readonly fault: string | undefined;
  /** What the person has to do about tools that are withheld: a sentence. */
  readonly advice: string;
}

/** Why it is withheld from lists, as it is told in the status. */
export const WITHHELD_BECAUSE: Readonly<Record<Unapproved, string>> = {
  changed: 'changed since it was approved',
  new: 'new, not approved',
  unreadable: 'what was approved cannot be read',
};

/** What the model is told that calls a tool which is not approved, or is not listed and so cannot be. */
export function describeRefusal(verdict: Unapproved | 'unlisted', { advice }: ApprovalFacts): string {
  return `${REFUSED_BECAUSE[verdict]} ${advice}`;
}

const REFUSED_BECAUSE: Readonly<Record<Unapproved | 'unlisted', string>> = {
  changed: 'has changed this tool since it was approved.',
  new: 'offers this tool since its tools were approved; this one was not.',
  unreadable: 'may be used only with tools that were approved, and what was approved cannot be read.',
  unlisted: 'does not list this tool, and only tools that it lists can be approved.',
};
