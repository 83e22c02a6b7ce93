/** What Trunkline says about itself to a model. All other instructions come from servers. */
export const ABOUT =
  'Trunkline shows the tools of several MCP servers as one set; a tool name begins with the key of its server and "__". If a tool is missing or fails, call trunkline__status: it tells how each server is and what to do.';
