/** Instructions of the gateway itself, which come before those of the servers. */
export const ABOUT =
  'Trunkline shows the tools of several MCP servers as one set; a tool name begins with the key of its server and "__". If a tool is missing or fails, call trunkline__status: it tells how each server is and what to do.';

/** One server's instructions under a heading with its key. */
export function instructionsOf(key: string, prefix: string, text: string): string {
  const names = prefix === '' ? 'its tools keep their own names' : `its tools begin with ${prefix}__`;
  return `# Server "${key}" (${names})\n\n${text}`;
}
