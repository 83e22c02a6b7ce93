import type { ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import type { HubClientForCommand } from '../app/hub-client.js';
import type { Progress } from '../app/local-client.js';
import { UsageError } from '../app/usage-error.js';
import type { Config, ServerConfig } from '../config/config.js';
import { errorMessage } from '../errors/error-text.js';
import { didYouMean, suggest } from '../json/suggest.js';
import { RpcError } from '../jsonrpc/rpc-error.js';
import { splitExposedName } from '../mcp/exposed-name.js';
import { METHODS } from '../mcp/methods.js';
import { flushed, forStream, guardOutput, ProgressLine, tell } from './output.js';
import { type Once, runOnce } from './run-once.js';
import { runningHub } from './running-hub.js';
import { reportFailures } from './tools.js';

export interface CallOptions {
  /** The exposed name of the tool. */
  readonly name: string;
  /** JSON, or `-` for JSON on stdin. */
  readonly args: string | undefined;
  /** Prints the result as JSON. */
  readonly isJson: boolean;
  /** Starts servers for this call, also if a hub runs. */
  readonly isAlone: boolean;
}

/** `trunkline call`: calls one tool, at the running hub if there is one, and prints its result. */
export async function call(
  settings: GlobalOptions,
  { name, args = '{}', isJson, isAlone }: CallOptions,
): Promise<number> {
  const object = toJsonObject(args === '-' ? await readStdin() : args);
  const hub = isAlone ? undefined : await runningHub(settings);
  if (hub !== undefined) return await callAtHub(hub, { name, object, isJson });
  return await runOnce(
    settings,
    (config) => possibleOwners(config, name),
    async (once) => {
      const owner = once.composition.gateway.catalogs.tools.resolve(name)?.key;
      // The gateway would report that the server failed too often, but it was started only once.
      if (owner !== undefined && reportFailures(once, owner)) return EXIT.failed;
      try {
        const code = printResult(await send(once, name, object), isJson);
        if (code !== EXIT.ok) suggestListed(once, name);
        return code;
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        tellError(error);
        if (!suggestListed(once, name)) tell('  `trunkline tools` lists all tools');
        reportFailures(once);
        return EXIT.failed;
      }
    },
  );
}

async function callAtHub(
  hub: HubClientForCommand,
  { name, object, isJson }: { name: string; object: string; isJson: boolean },
): Promise<number> {
  guardOutput(() => {});
  try {
    const progressLine = new ProgressLine(process.stderr);
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

function tellError({ message, code, data }: RpcError): void {
  tell(`trunkline: ${message} (error ${code})`);
  if (data !== undefined) tell(`  ${JSON.stringify(data)}`);
}

/** The servers whose prefix the name starts with; all servers when there is none. */
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

/** Returns the text of a JSON object on one line; numbers and the order of members do not change. */
function toJsonObject(text: string): string {
  const value = parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const found = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
    throw new UsageError(`the arguments of a call must be a JSON object; found ${found}`, EXAMPLE);
  }
  // Strings in valid JSON contain no line breaks.
  return text.replace(/[\r\n]/g, ' ');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`the arguments of a call must be a JSON object: ${errorMessage(cause)}`, EXAMPLE, { cause });
  }
}

const EXAMPLE = `for example: trunkline call files__read_text_file '{"path": "notes.txt"}'`;

async function send(
  { client, progressLine }: Pick<Once, 'client' | 'progressLine'>,
  name: string,
  object: string,
): Promise<Uint8Array> {
  const meta = progressLine.isVisible ? `,"_meta":{"progressToken":${client.nextId}}` : '';
  progressLine.show(`calling ${name}`);
  try {
    const params = `{"name":${JSON.stringify(name)},"arguments":${object}${meta}}`;
    return await client.request(METHODS.callTool, params, (progress) => {
      progressLine.show(`calling ${name}: ${describeProgress(progress)}`);
    });
  } finally {
    progressLine.clear();
  }
}

function describeProgress({ progress, total, message }: Progress): string {
  const share = total === undefined ? String(progress) : `${progress} of ${total}`;
  return typeof message === 'string' ? `${share}, ${message}` : share;
}

/** The message of a failed tool goes to stderr, so that stdout has results only. */
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

/**
 * After a failed call of a tool that its server does not list: suggests a similar one of that server. For a name that
 * belongs to no server, the error has suggestions already. Returns whether nothing remains to be said about the name.
 */
function suggestListed({ composition }: Once, name: string): boolean {
  const { tools } = composition.gateway.catalogs;
  const route = tools.resolve(name);
  if (route?.isListed === true || tools.ownNames.includes(name)) return true;
  const nearest = route === undefined ? undefined : suggest(name, tools.listed.get(route.key) ?? []);
  if (nearest !== undefined) tell(`  ${didYouMean(nearest)}`);
  return nearest !== undefined;
}
