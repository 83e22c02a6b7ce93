/** Which of a server's tools may be seen and called, by glob patterns over original names. */
export interface ToolPolicyRules {
  /** Only these; absent means all. */
  readonly allow?: readonly string[];
  /** Never these, whatever `allow` says. */
  readonly deny: readonly string[];
}

/** Decides about one tool name; asked when lists are merged and again when a call is dispatched. */
export type ToolPolicy = (originalName: string) => boolean;

export function createToolPolicy({ allow, deny }: ToolPolicyRules): ToolPolicy {
  const allowed = allow?.map(toRegExp);
  const denied = deny.map(toRegExp);
  return (name) => (allowed?.some((glob) => glob.test(name)) ?? true) && !denied.some((glob) => glob.test(name));
}

/** `*` stands for any characters and `?` for one; everything else for itself. */
function toRegExp(glob: string): RegExp {
  // Runs of stars are one star: each further one would only multiply the ways to fail.
  const source = glob
    .replace(/\*+/g, '*')
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 's');
}
