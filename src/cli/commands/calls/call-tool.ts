import { createHash } from 'node:crypto';
import type { ContentBlock, ListToolsResult } from '@modelcontextprotocol/sdk/types.js';
import { readConfig, refuseDisabled } from '../../../app/read-config.js';
import type { Config, ServerConfig } from '../../../config/resolve/config.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { didYouMean, suggest } from '../../../wire/json/suggest.js';
import { RpcError } from '../../../wire/jsonrpc/message.js';
import { exposedName, splitExposedName } from '../../../wire/mcp/exposed-name.js';
import { METHODS } from '../../../wire/mcp/methods.js';
import type { Invocation } from '../../command.js';
import type { LocalClient, Progress } from '../../local-client.js';
import { flushed, forStream, reportFault, tell } from '../../output.js';
import { elapsed, ProgressLine } from '../../terminal.js';
import { type HubClientForCommand, runningHub } from '../hub/hub-access.js';
import { type CallArguments, objectOf, readArguments, toJsonObject } from './call-arguments.js';
import { chooseFrom, examine, type Once, runOnce, type TriedServer } from './run-once.js';
import { listAllTools, reportFaults } from './tools.js';

/** `trunkline call`: calls one tool, at the running gateway if there is one, and prints its result. */
export async function call({ settings, words, options, isJson }: Invocation<{ alone: true }>): Promise<number> {
  const [tool = '', ...typed] = words;
  const isOnStdin = typed.length === 1 && typed[0] === '-';
  const args = isOnStdin ? { kind: 'object' as const, text: toJsonObject(await readStdin()) } : readArguments(typed);
  const name = tool.includes('.') ? exposedNameOf(tool, await readConfig(settings)) : tool;
  const hub = options.alone ? undefined : await runningHub(settings);
  if (hub !== undefined) return await callAtHub(hub, { name, args, isJson });
  return await runOnce(
    settings,
    (config) => possibleOwners(config, name),
    async (once) => {
      const owner = once.composition.gateway.catalogs.tools.resolve(name)?.key;
      // The gateway would report that the server failed too often, but it was started only once.
      const ofOwner = ({ server, report }: TriedServer) => server.key === owner && report.state !== 'ready';
      const isLost = examine(once).some((tried) => tried.fault !== undefined && ofOwner(tried));
      reportFaults(once, ofOwner);
      if (isLost) return EXIT.failed;
      try {
        const code = printResult(await send(once, name, await objectFor(once.client, name, args)), isJson);
        if (code !== EXIT.ok) suggestListed(once, name);
        return code;
      } catch (error) {
        if (error instanceof UsageError) return await reportFault(error);
        if (!(error instanceof RpcError)) throw error;
        tellError(error);
        if (!suggestListed(once, name)) tell('  `trunkline tools` lists all tools');
        reportFaults(once, ({ report }) => report.state !== 'ready');
        return EXIT.failed;
      }
    },
  );
}

async function callAtHub(
  hub: HubClientForCommand,
  { name, args, isJson }: { name: string; args: CallArguments; isJson: boolean },
): Promise<number> {
  try {
    const progressLine = new ProgressLine(process.stderr);
    const object = await objectFor(hub.client, name, args);
    const code = printResult(await send({ client: hub.client, progressLine }, name, object), isJson);
    await flushed();
    return code;
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    tellError(error);
    tell('  `trunkline tools` lists all tools, `trunkline status` says what is wrong with a server');
    return EXIT.failed;
  } finally {
    hub.close();
  }
}

/** Returns the exposed name of `SERVER.TOOL`. Keys of servers contain no dot. Throws a `UsageError` for an unknown server. */
function exposedNameOf(name: string, { servers, disabled }: Config): string {
  const at = name.indexOf('.');
  refuseDisabled([name.slice(0, at)], disabled);
  const [key = ''] = chooseFrom([...servers.map((server) => server.key), 'trunkline'], [name.slice(0, at)]);
  const prefix = servers.find((server) => server.key === key)?.prefix ?? key;
  return exposedName(key, prefix, name.slice(at + 1), (text) => createHash('sha256').update(text).digest('hex'));
}

/** Returns the arguments as JSON. The types of pairs come from the schema of the tool, if its server lists it. */
async function objectFor(client: LocalClient, name: string, args: CallArguments): Promise<string> {
  if (args.kind === 'object') return args.text;
  const { tools } = JSON.parse(await listAllTools(client)) as ListToolsResult;
  return objectOf(args.pairs, tools.find((tool) => tool.name === name)?.inputSchema);
}

function tellError({ message, code, data }: RpcError): void {
  tell(`trunkline: ${message} (error ${code})`);
  if (data !== undefined) tell(`  ${JSON.stringify(data)}`);
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
    suggestListed(once, name);
  }
  return false;
}

/** Returns the servers whose prefix begins the name, or all servers if there is none. */
function possibleOwners({ servers }: Config, name: string): readonly ServerConfig[] {
  const prefix = splitExposedName(name)?.prefix;
  const owners = servers.filter((server) => prefix !== undefined && server.prefix === prefix);
  return owners.length === 0 ? servers : owners;
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

async function send(
  { client, progressLine }: { readonly client: LocalClient; readonly progressLine: ProgressLine },
  name: string,
  object: string,
): Promise<Uint8Array> {
  const meta = progressLine.isVisible ? `,"_meta":{"progressToken":${client.nextId}}` : '';
  let shown = `calling ${name}`;
  const since = performance.now();
  const show = () => progressLine.show(`${shown}, ${elapsed(since)}`);
  const timer = setInterval(show, 1_000);
  show();
  try {
    const params = `{"name":${JSON.stringify(name)},"arguments":${object}${meta}}`;
    return await client.request(METHODS.callTool, params, (progress) => {
      shown = `calling ${name}: ${describeProgress(progress)}`;
      show();
    });
  } finally {
    clearInterval(timer);
    progressLine.clear();
  }
}

function describeProgress({ progress, total, message }: Progress): string {
  const share = total === undefined ? String(progress) : `${progress} of ${total}`;
  return typeof message === 'string' ? `${share}, ${message}` : share;
}

/** Prints a result, and returns the exit code. Without `--json`, the text of a failed tool goes to stderr, and not among results. */
function printResult(result: Uint8Array, isJson: boolean): number {
  const json = new TextDecoder().decode(result);
  const { content, structuredContent, isError } = JSON.parse(json) as Record<string, unknown>;
  const code = isError === true ? EXIT.failed : EXIT.ok;
  if (isJson) {
    process.stdout.write(`${forStream(json, process.stdout)}\n`);
    return code;
  }
  const blocks: ContentBlock[] = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => (block.type === 'text' ? block.text : JSON.stringify(block)));
  if (texts.length === 0 && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent));
  for (const text of texts.map((each) => each.replace(/\r?\n$/, ''))) {
    if (isError === true) tell(text);
    else process.stdout.write(`${forStream(text, process.stdout)}\n`);
  }
  return code;
}

/** Suggests a similar tool, if the server does not list this one. Returns whether the user needs no further hint. */
function suggestListed({ composition }: Once, name: string): boolean {
  const { tools } = composition.gateway.catalogs;
  const route = tools.resolve(name);
  if (route?.isListed === true || tools.own.some((each) => each.name === name)) return true;
  const nearest = route === undefined ? undefined : suggest(name, tools.listed.get(route.key) ?? []);
  if (nearest !== undefined) tell(`  ${didYouMean(nearest)}`);
  return nearest !== undefined;
}
