import { programName } from './launcher.js';
import type { Run } from './run.js';

/** Other programs that stand for several servers, by package or program. Their servers are taken from their own files. */
const GATEWAYS: ReadonlyMap<string, string> = new Map([
  ['@1mcp/agent', '1mcp'],
  ['1mcp', '1mcp'],
  ['mcp-hub', 'mcp-hub'],
  ['@samanhappy/mcphub', 'MCPHub'],
  ['@metamcp/mcp-server-metamcp', 'MetaMCP'],
  ['@himorishige/hatago-mcp-hub', 'Hatago'],
  ['hatago', 'Hatago'],
  ['mcpproxy', 'mcpproxy'],
  ['magg', 'Magg'],
]);

/** The name of the gateway that this run starts, if it is one. */
export function gatewayOf({ program, args }: Run): string | undefined {
  if ('package' in program) return GATEWAYS.get(program.package);
  const name = programName(program.command);
  if (name === 'docker' && args.slice(0, 3).join(' ') === 'mcp gateway run') return "Docker's MCP gateway";
  const launched = /^(?:uvx|bunx|pnpx)$/.test(name) ? args.find((arg) => !arg.startsWith('-')) : undefined;
  return GATEWAYS.get(launched?.replace(/(?<=.)@[^@/]*$/, '') ?? name);
}
