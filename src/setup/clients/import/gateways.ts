import { packageIn, programName, withoutVersion } from '../../../config/resolve/command-words.js';
import type { Run } from './run.js';

/** Other gateways, by package or program. An import leaves them out, because it can read their servers from their own files. */
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

export function gatewayOf({ program, args }: Run): string | undefined {
  if ('package' in program) return GATEWAYS.get(program.package);
  if ('url' in program) return undefined;
  const name = programName(program.command);
  if (name === 'docker' && args.slice(0, 3).join(' ') === 'mcp gateway run') return "Docker's MCP gateway";
  const launched = /^(?:uvx|bunx|pnpx)$/.test(name) ? args.find((arg) => !arg.startsWith('-')) : undefined;
  return GATEWAYS.get(launched === undefined ? name : withoutVersion(launched));
}

/** Other programs that run servers for clients. An import takes them, because a client may use one as a server. */
const BRIDGES: ReadonlyMap<string, string> = new Map([
  ['mcp-proxy', 'mcp-proxy'],
  ['mcp_proxy', 'mcp-proxy'],
  ['supergateway', 'supergateway'],
  ['agentgateway', 'agentgateway'],
  ['mcpjungle', 'MCPJungle'],
]);

/** The name of the gateway that runs as a process with these words, if it is one. */
export function runningGateway([command = '', ...args]: readonly string[]): string | undefined {
  const name = programName(command);
  const isInterpreter = /^(?:node|bun|deno|python[\d.]*|tsx)$/.test(name);
  if (!isInterpreter) return gatewayOf({ program: { command }, args, env: {} }) ?? named(name, args);
  const at = args.findIndex((arg) => !arg.startsWith('-'));
  const script = args[at] ?? '';
  const rest = args.slice(at + 1);
  // Without a folder, the word may be the value of an option; after `-m`, it is a module of Python.
  if (!/[\\/]/.test(script) && args[at - 1] !== '-m') return undefined;
  return named(packageIn(script) ?? programName(script), rest) ?? named(programName(script), rest);
}

function named(name: string, args: readonly string[]): string | undefined {
  // Its other commands call a tool and end.
  if (name === 'mcporter') return args.includes('daemon') ? "mcporter's daemon" : undefined;
  return GATEWAYS.get(name) ?? BRIDGES.get(name);
}
