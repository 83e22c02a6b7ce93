import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { RpcError } from '../../../wire/jsonrpc/message.js';
import { splitExposedName } from '../../../wire/mcp/exposed-name.js';
import { reportFault, tell } from '../../output.js';
import type { ToolSource } from '../hub/hub-client.js';
import { readArguments } from './call-arguments.js';
import {
  exitOfError,
  exposedOf,
  isUnlisted,
  mayBeUnknown,
  objectFor,
  printResult,
  send,
  type TypedCall,
  tellError,
} from './one-call.js';
import { chooseServers, examine, type Once, runOnce, type TriedServer } from './run-once.js';
import { reportAll, reportFaults } from './tools.js';

/** Starts the server of a tool for one call, and prints the result. */
export async function callAlone(settings: GlobalOptions, { tool, args, isJson }: TypedCall): Promise<number> {
  const name = tool.includes('.') ? await exposedNameIn(settings, tool) : tool;
  return await runOnce(
    settings,
    (config) => possibleOwners(config, name),
    async (once) => {
      const owner = once.composition.gateway.catalogs.tools.resolve(name)?.key;
      // The gateway would report that the server failed too often, but it was started only once.
      const ofOwner = ({ server, report }: TriedServer) => server.key === owner && report.state !== 'ready';
      const lost = examine(once).find((tried) => tried.fault !== undefined && ofOwner(tried));
      reportFaults(once, ofOwner);
      if (lost !== undefined) return lost.fault?.code === 'TL-SERVER-LOGIN' ? EXIT.login : EXIT.unavailable;
      try {
        const code = printResult(await send(once, name, await objectFor(once.client, name, args)), isJson);
        return mayBeUnknown(code) && isUnlisted(name, listedBeside(name, once)) ? EXIT.unknownTool : code;
      } catch (error) {
        if (error instanceof UsageError) return await reportFault(error);
        if (!(error instanceof RpcError)) throw error;
        tellError(error);
        const code = exitOfError(error);
        if (code === EXIT.unknownTool) tell('  `trunkline tools` lists all tools');
        const isUnknown = mayBeUnknown(code) && isUnlisted(name, listedBeside(name, once));
        reportFaults(once, ({ report }) => report.state !== 'ready');
        return isUnknown ? EXIT.unknownTool : code;
      }
    },
  );
}

/** Starts the servers of these tools, or all servers, for one command, and reports those that failed. */
export async function withServers(
  settings: GlobalOptions,
  tools: readonly string[] | undefined,
  work: (source: ToolSource) => Promise<number>,
): Promise<number> {
  const choose = (config: Config) => {
    const owners = tools?.flatMap((tool) => {
      return possibleOwners(config, tool.includes('.') ? exposedNameOf(tool, config) : tool);
    });
    return owners === undefined
      ? chooseServers(config, [])
      : config.servers.filter((server) => owners.includes(server));
  };
  return await runOnce(settings, choose, async (once) => {
    const { client, composition } = once;
    const code = await work({
      client,
      views: async () => [reportAll(composition, settings.view)],
      find: (args) => composition.gateway.find(args, settings.view),
    });
    return reportFaults(once) ? EXIT.failed : code;
  });
}

/** Returns the exposed name of `SERVER.TOOL`. Throws a `UsageError` for an unknown or disabled server. */
export async function exposedNameIn(settings: GlobalOptions, tool: string): Promise<string> {
  return exposedNameOf(tool, await readConfig(settings, undefined, undefined, 'own'));
}

function exposedNameOf(name: string, config: Config): string {
  const named = name.slice(0, name.indexOf('.'));
  const [server] = named === 'trunkline' ? [] : chooseServers(config, [named]);
  const { key = named, prefix = named } = server ?? {};
  return exposedOf(key, prefix, name);
}

/** Calls a tool of a server and reports its failure. Resolves with whether it succeeded. */
export async function tryTool(once: Once, tool: string, typed: readonly string[]): Promise<boolean> {
  const name = exposedNameOf(tool, once.config);
  try {
    const result = await send(once, name, await objectFor(once.client, name, readArguments(typed)));
    const { content, isError } = JSON.parse(new TextDecoder().decode(result)) as Record<string, unknown>;
    if (isError !== true) return true;
    tell(`${tool} failed: ${JSON.stringify(content)}`);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    tellError(error);
    isUnlisted(name, listedBeside(name, once));
  }
  return false;
}

/** Returns the servers whose prefix begins the name, or all servers if there is none. */
function possibleOwners(config: Config, name: string): readonly ServerConfig[] {
  const servers = chooseServers(config, []);
  const prefix = splitExposedName(name)?.prefix;
  const owners = servers.filter((server) => prefix !== undefined && server.prefix === prefix);
  return owners.length === 0 ? servers : owners;
}

/** The exposed names of the tools that the server of this one lists. */
function listedBeside(name: string, { composition }: Once): readonly string[] {
  const { tools } = composition.gateway.catalogs;
  return tools.listed.get(tools.resolve(name)?.key ?? '') ?? [];
}
