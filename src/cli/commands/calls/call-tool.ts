import type { ListToolsResult } from '@modelcontextprotocol/sdk/types.js';
import type { GlobalOptions } from '../../../app/global-options.js';
import { ConfigLocation, currentFolder, readConfigText } from '../../../config/file/find-config.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { trustedTextAround } from '../../../state/trusted-projects.js';
import { RpcError } from '../../../wire/jsonrpc/message.js';
import type { Invocation } from '../../command.js';
import { flushed, tell } from '../../output.js';
import { type HubClientForCommand, runningHub } from '../hub/hub-client.js';
import { readArguments, toJsonObject } from './call-arguments.js';
import { listAllTools } from './listed-tools.js';
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

/** `trunkline call`: calls one tool, at the running gateway if there is one, and prints its result. */
export async function call(invocation: Invocation<{ alone: true; hub: true }>): Promise<number> {
  const { settings, words, options, isJson } = invocation;
  const [tool = '', ...typed] = words;
  const isOnStdin = typed.length === 1 && typed[0] === '-';
  const args = isOnStdin ? { kind: 'object' as const, text: toJsonObject(await readStdin()) } : readArguments(typed);
  const asked = { tool, args, isJson };
  const hub = options.alone ? undefined : await runningHub(settings, options.hub);
  if (hub !== undefined) return await callAtHub(hub, settings, asked);
  const { callAlone } = await import('./call-alone.js');
  return await callAlone(settings, asked);
}

async function callAtHub(
  hub: HubClientForCommand,
  settings: GlobalOptions,
  { tool, args, isJson }: TypedCall,
): Promise<number> {
  let name = tool;
  try {
    const progressLine = process.stderr.isTTY
      ? new (await import('../../terminal.js')).ProgressLine(process.stderr)
      : undefined;
    name = await nameAtHub(settings, tool);
    const object = await objectFor(hub.client, name, args, hub.definition);
    const code = printResult(await send({ client: hub.client, progressLine }, name, object), isJson);
    await flushed();
    return mayBeUnknown(code) && isUnlisted(name, await namesAt(hub)) ? EXIT.unknownTool : code;
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const code = exitOfError(error);
    // The mistake may be the name of the server.
    if (code === EXIT.unknownTool && tool.includes('.')) await nameInConfig(settings, tool);
    tellError(error);
    tell('  `trunkline tools` lists all tools, `trunkline status` says what is wrong with a server');
    return mayBeUnknown(code) && isUnlisted(name, await namesAt(hub)) ? EXIT.unknownTool : code;
  } finally {
    hub.close();
  }
}

/** The names of all tools that the gateway lists; none if it has ended. */
async function namesAt({ client }: HubClientForCommand): Promise<readonly string[]> {
  const { tools } = JSON.parse(await listAllTools(client).catch(() => '{"tools":[]}')) as ListToolsResult;
  return tools.map(({ name }) => name);
}

/** Returns the exposed name of a tool. Reads the configuration only if an entry of it may have a prefix, because that takes long. */
export async function nameAtHub(settings: GlobalOptions, tool: string): Promise<string> {
  if (!tool.includes('.')) return tool;
  const texts = [readConfigText(new ConfigLocation(settings).file), trustedTextAround(currentFolder())];
  if (texts.some((text) => /\bprefix\b/.test(text))) return await nameInConfig(settings, tool);
  const [key = ''] = tool.split('.');
  return exposedOf(key, key, tool);
}

/** Returns the exposed name of `SERVER.TOOL`. Throws a `UsageError` for an unknown or disabled server. */
async function nameInConfig(settings: GlobalOptions, tool: string): Promise<string> {
  const { exposedNameIn } = await import('./call-alone.js');
  return await exposedNameIn(settings, tool);
}

async function readStdin(): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw new UsageError('the arguments on stdin are not UTF-8', 'save the file as UTF-8', { cause });
  }
}
