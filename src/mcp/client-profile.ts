/** The client that a server is told of: what it is, what it can do, and which revision it speaks. */
export interface ClientProfile {
  readonly clientInfo: Readonly<Record<string, unknown>>;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** Our newest when absent. */
  readonly protocolVersion?: string;
  /** The two objects as the client spelt them: numbers and duplicates survive no parser. */
  readonly raw?: { readonly clientInfo: Uint8Array; readonly capabilities: Uint8Array } | undefined;
}

/**
 * The same text for clients that a server cannot tell apart, whatever the order of their members.
 *
 * `principal` is who is behind the client: people do not share a process by looking alike.
 */
export function profileKey({ clientInfo, capabilities, protocolVersion }: ClientProfile, principal: string): string {
  return JSON.stringify([principal, protocolVersion ?? null, sorted(capabilities), sorted(clientInfo)]);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const);
  // As pairs, so that no name, `__proto__` for one, means anything.
  return members.sort(([a], [b]) => (a < b ? -1 : 1));
}
