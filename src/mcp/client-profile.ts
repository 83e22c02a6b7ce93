/** Description of a client for a server: identity, capabilities and revision. */
export interface ClientProfile {
  readonly clientInfo: Readonly<Record<string, unknown>>;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The latest revision that the gateway supports if absent. */
  readonly protocolVersion?: string;
  /** The raw text of the two objects, because a parser changes large numbers and drops duplicate members. */
  readonly raw?: { readonly clientInfo: Uint8Array; readonly capabilities: Uint8Array } | undefined;
}

/**
 * Returns the same key for clients that a server cannot tell apart, whatever the order of their members.
 *
 * `principal` is the user behind the client, so that different users never share a process.
 */
export function profileKey({ clientInfo, capabilities, protocolVersion }: ClientProfile, principal: string): string {
  return JSON.stringify([principal, protocolVersion ?? null, sorted(capabilities), sorted(clientInfo)]);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const);
  // As pairs, so that no name has a special meaning, such as `__proto__`.
  return members.sort(([a], [b]) => (a < b ? -1 : 1));
}
