/** Instructions of the gateway itself. */
export const ABOUT =
  'Trunkline shows the tools of several MCP servers as one set; a tool name begins with the key of its server and "__". If a tool is missing or fails, call trunkline__status: it tells how each server is and what to do.';

export interface ServerInstructions {
  readonly backend: { readonly key: string; readonly prefix: string };
  /** Absent if the server has none, or has not started yet. */
  readonly text: string | undefined;
}

/** The gateway's instructions, a notice, and each server's instructions under a heading with its key. */
export function joinInstructions(notice: string | undefined, servers: readonly ServerInstructions[]): string {
  const parts = [ABOUT, ...(notice === undefined ? [] : [notice])];
  for (const { backend, text } of servers) {
    if (text === undefined) continue;
    const { key, prefix } = backend;
    const names = prefix === '' ? 'its tools keep their own names' : `its tools begin with ${prefix}__`;
    parts.push(`# Server "${key}" (${names})\n\n${text}`);
  }
  return parts.join('\n\n');
}
