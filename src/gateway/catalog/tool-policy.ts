/** Glob patterns for the original names of the tools that are listed and callable. */
export interface ToolPolicyRules {
  /** Allowed tools. Absent means all. */
  readonly allow?: readonly string[];
  /** Denied tools. Takes precedence over `allow`. */
  readonly deny: readonly string[];
}

/** Returns whether a tool is allowed. Checked when a list is read and again before each call. */
export type ToolPolicy = (originalName: string) => boolean;

export function createToolPolicy({ allow, deny }: ToolPolicyRules): ToolPolicy {
  return (name) => {
    const isAllowed = allow?.some((glob) => matchesGlob(glob, name)) ?? true;
    return isAllowed && !deny.some((glob) => matchesGlob(glob, name));
  };
}

/**
 * Matches a name against a glob: `*` matches any characters, `?` matches one, every other character matches itself.
 *
 * Names come from servers, so a regular expression could take exponential time. Here, a mismatch goes back to the last
 * star only, so the time is bounded by the product of the two lengths.
 */
function matchesGlob(glob: string, name: string): boolean {
  const pattern = [...glob];
  const text = [...name];
  let at = 0;
  let star: { readonly next: number; readonly from: number } | undefined;
  for (let position = 0; position < text.length; ) {
    const expected = pattern[at];
    if (expected === '*') {
      at += 1;
      star = { next: at, from: position };
    } else if (expected === '?' || expected === text[position]) {
      at += 1;
      position += 1;
    } else if (star !== undefined) {
      star = { next: star.next, from: star.from + 1 };
      at = star.next;
      position = star.from;
    } else {
      return false;
    }
  }
  return pattern.slice(at).every((rest) => rest === '*');
}
