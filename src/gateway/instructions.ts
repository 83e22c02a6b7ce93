/** What a model should know of Trunkline, before anything that the servers say. */
export const ABOUT =
  'Trunkline shows the tools of several MCP servers as one set; a tool name begins with the key of its server and "__". If a tool is missing or fails, call trunkline__status: it tells how each server is and what to do.';

/** One server's own instructions, under a line that says whose they are. */
export function instructionsOf(key: string, prefix: string, text: string): string {
  const names = prefix === '' ? 'its tools keep their own names' : `its tools begin with ${prefix}__`;
  return `# Server "${key}" (${names})\n\n${text}`;
}
