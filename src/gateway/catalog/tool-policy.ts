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
  return (name) => {
    const isAllowed = allow?.some((glob) => matchesGlob(glob, name)) ?? true;
    return isAllowed && !deny.some((glob) => matchesGlob(glob, name));
  };
}

/**
 * `*` stands for any characters and `?` for one; everything else for itself.
 *
 * Names come from servers, so this is no regular expression: after a mismatch only the last star is tried anew, which
 * never costs more than the two lengths multiplied.
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
