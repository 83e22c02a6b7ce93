import { createHash } from 'node:crypto';
import type { ContentBlock, ListToolsResult } from '@modelcontextprotocol/sdk/types.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { hintFor } from '../../../wire/json/suggest.js';
import { RPC_CODES, type RpcError } from '../../../wire/jsonrpc/message.js';
import { exposedName, splitExposedName } from '../../../wire/mcp/exposed-name.js';
import { METHODS } from '../../../wire/mcp/methods.js';
import type { LocalClient, Progress } from '../../local-client.js';
import { elapsed, forStream, isQuietWanted, tell } from '../../output.js';
import type { ProgressLine } from '../../terminal.js';
import { type CallArguments, objectOf } from './call-arguments.js';
import { listAllTools } from './listed-tools.js';

/** A call as it was typed: the name of a tool, or SERVER.TOOL, and its arguments. */
export interface TypedCall {
  readonly tool: string;
  readonly args: CallArguments;
  readonly isJson: boolean;
}

/** Returns the exposed name of `KEY.TOOL`. Keys of servers contain no dot. */
export function exposedOf(key: string, prefix: string, tool: string): string {
  const original = tool.slice(tool.indexOf('.') + 1);
  return exposedName(key, prefix, original, (text) => createHash('sha256').update(text).digest('hex'));
}

/** Returns the arguments as JSON. The types of pairs come from the schema of the tool, if its server lists it. */
export async function objectFor(
  client: LocalClient,
  name: string,
  args: CallArguments,
  definition?: (name: string) => Promise<string | null>,
): Promise<string> {
  if (args.kind === 'object') return args.text;
  const known = await definition?.(name);
  if (typeof known === 'string') return objectOf(args.pairs, JSON.parse(known).inputSchema);
  const { tools } = JSON.parse(await listAllTools(client)) as ListToolsResult;
  return objectOf(args.pairs, tools.find((tool) => tool.name === name)?.inputSchema);
}

/** Sends a call. The line shows its progress, if there is one. */
export async function send(
  { client, progressLine }: { readonly client: LocalClient; readonly progressLine: ProgressLine | undefined },
  name: string,
  object: string,
): Promise<Uint8Array> {
  const meta = progressLine?.isVisible ? `,"_meta":{"progressToken":${client.nextId}}` : '';
  let shown = `calling ${name}`;
  const since = performance.now();
  const show = () => progressLine?.show(`${shown}, ${elapsed(since)}`);
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
    progressLine?.clear();
  }
}

function describeProgress({ progress, total, message }: Progress): string {
  const share = total === undefined ? String(progress) : `${progress} of ${total}`;
  return typeof message === 'string' ? `${share}, ${message}` : share;
}

/**
 * Prints a result, and returns the exit code. Without `--json`, the text of a failed tool goes to stderr, and not among results. With
 * `--quiet`, stdout gets only text.
 */
export function printResult(result: Uint8Array, isJson: boolean): number {
  const json = new TextDecoder().decode(result);
  const { content, structuredContent, isError, _meta } = JSON.parse(json) as Record<string, unknown>;
  const failure = isRecord(_meta) ? _meta['trunkline/failure'] : undefined;
  const code = isError !== true ? EXIT.ok : failure === undefined ? EXIT.failed : exitOfFailure(failure);
  if (isJson) {
    process.stdout.write(`${forStream(json, process.stdout)}\n`);
    return code;
  }
  const blocks: ContentBlock[] = Array.isArray(content) ? content : [];
  const texts = blocks.flatMap((block) => textOf(block) ?? (isQuietWanted() ? [] : [JSON.stringify(block)]));
  if (texts.length === 0 && structuredContent !== undefined) texts.push(JSON.stringify(structuredContent));
  for (const text of texts.map((each) => each.replace(/\r?\n$/, ''))) {
    if (isError === true) tell(text);
    else process.stdout.write(`${forStream(text, process.stdout)}\n`);
  }
  const left = isQuietWanted() ? blocks.filter((block) => textOf(block) === undefined) : [];
  if (left.length > 0)
    tell(`trunkline: the result also has ${left.map(({ type }) => type).join(', ')}; \`--json\` prints them`);
  return code;
}

/** Whether a call that ended with this code may have been of a tool that its server does not have. */
export function mayBeUnknown(code: number): boolean {
  return code === EXIT.failed || code === EXIT.usage;
}

/**
 * Whether the failed call was of a tool that its server does not list, although it lists others. Servers answer such a call in many ways.
 * Then also suggests the tool that was meant.
 */
export function isUnlisted(name: string, listed: readonly string[]): boolean {
  const prefix = splitExposedName(name)?.prefix;
  const others = listed.filter((each) => splitExposedName(each)?.prefix === prefix);
  if (others.length === 0 || others.includes(name)) return false;
  tell(`  ${hintFor(name, others, '`trunkline find WORDS` searches the tools')}`);
  return true;
}

/** The text of a block; with `--quiet`, also that of an embedded resource. */
function textOf(block: ContentBlock): string | undefined {
  if (block.type === 'text') return block.text;
  if (!isQuietWanted() || block.type !== 'resource') return undefined;
  return 'text' in block.resource ? block.resource.text : undefined;
}

/** The exit code for a call that was answered with an error of the protocol. */
export function exitOfError({ code, message, data }: RpcError): number {
  if (isRecord(data) && data.outcome !== undefined && data.reason !== undefined) return exitOfFailure(data);
  if (code !== RPC_CODES.invalidParams) return EXIT.failed;
  return message.startsWith('Unknown tool') ? EXIT.unknownTool : EXIT.usage;
}

const EXITS: Readonly<Record<string, number>> = {
  denied: EXIT.denied,
  not_approved: EXIT.notApproved,
  login_required: EXIT.login,
  timeout: EXIT.timeout,
};

/** The exit code for a call that Trunkline has answered itself. `failure` has its reason and its outcome. */
function exitOfFailure(failure: unknown): number {
  const { reason, outcome } = isRecord(failure) ? failure : {};
  // An interceptor refuses a call before it is sent, or withholds its result.
  if (reason === 'intercepted' && outcome === 'not_sent') return EXIT.denied;
  const known = EXITS[String(reason)];
  return known ?? (outcome === 'not_sent' ? EXIT.unavailable : EXIT.unknown);
}

export function tellError({ message, code, data }: RpcError): void {
  tell(`trunkline: ${message} (error ${code})`);
  if (data !== undefined) tell(`  ${JSON.stringify(data)}`);
}
