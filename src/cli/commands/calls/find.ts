import { fileErrorIn } from '../../../host/errors/file-error.js';
import { EXIT, HintedError, UsageError } from '../../../host/errors/usage-error.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { clipText, firstSentence, printable, withoutHiddenCharacters } from '../../../wire/json/printable.js';
import { hintFor } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { print, tell } from '../../output.js';
import { runningHub, type ToolSource } from '../hub/hub-client.js';
import { nameAtHub } from './call-tool.js';
import { listAllTools, onlyNamed } from './listed-tools.js';
import { describedArguments, usageOf } from './usage-line.js';

interface SourceOptions {
  readonly alone: true;
  readonly hub: true;
}

/** Limit of a description in the output of a command, in bytes. */
const MAX_DESCRIPTION_BYTES = 2_048;
const MAX_SENTENCE_BYTES = 240;
/** Number of optional arguments in a line of `trunkline find`. */
const MAX_OPTIONAL = 6;

/** `trunkline find`: prints the tools that fit best to words, each with its arguments. Fails if there is none. */
export async function find(invocation: Invocation<SourceOptions & { server: string; limit: string }>): Promise<number> {
  const { words, options, isJson } = invocation;
  const { server, limit } = options;
  if (words.length === 0 && server === undefined)
    throw new UsageError('`trunkline find` takes words, or `--server`', 'for example: trunkline find read a file');
  if (limit !== undefined && !/^[1-9]\d*$/.test(limit))
    throw new UsageError(`\`--limit ${limit}\` is no number of tools`, 'for example: --limit 20');
  const args = {
    query: words.join(' '),
    ...(server !== undefined && { server }),
    ...(limit !== undefined && { limit: Number(limit) }),
  };
  return await withTools(invocation, undefined, async (source) => {
    let { result, isStarting } = await source.find(args);
    if (isStarting) {
      // A list waits until the servers have started, but not for long.
      await listAllTools(source.client);
      ({ result } = await source.find(args));
    }
    const { tools = [], notes = [] } = result.structuredContent ?? {};
    const found = (tools as readonly unknown[]).filter(isRecord);
    if (isJson) await print(JSON.stringify({ tools: found, notes }));
    else if (found.length > 0) await print(found.map(lineOf).join('\n'));
    const [nothing] = found.length > 0 ? [] : result.content;
    for (const text of [isRecord(nothing) ? nothing.text : undefined, ...(notes as readonly unknown[])])
      if (typeof text === 'string') tell(text);
    return found.length > 0 ? EXIT.ok : EXIT.failed;
  });
}

function lineOf({ name, description, inputSchema }: Readonly<Record<string, unknown>>): string {
  const sentence = clipText(oneLine(firstSentence(cleaned(description))), MAX_SENTENCE_BYTES, ' …');
  return [usageOf(String(name), inputSchema, MAX_OPTIONAL), ...(sentence === '' ? [] : [`  ${sentence}`])].join('\n');
}

/** `trunkline describe`: prints the arguments of tools as `trunkline call` takes them, or their definitions. */
export async function describe(invocation: Invocation<SourceOptions>): Promise<number> {
  const { settings, words, isJson } = invocation;
  return await withTools(invocation, words, async ({ client }) => {
    const names = await Promise.all(words.map((word) => nameAtHub(settings, word)));
    const list = await listAllTools(client);
    const { tools: listed = [] } = JSON.parse(list) as { readonly tools?: readonly unknown[] };
    const all = new Map(listed.filter(isRecord).map((tool) => [String(tool.name), tool]));
    const found = names.map((name) => all.get(name)).filter((tool) => tool !== undefined);
    if (isJson) await print(onlyNamed(list, new Set(names)));
    else if (found.length > 0) await print(found.map(describeTool).join('\n\n'));
    const unknown = names.filter((name) => !all.has(name));
    for (const name of unknown)
      tell(`Unknown tool: ${name}; ${hintFor(name, all.keys(), '`trunkline find WORDS` searches the tools')}`);
    return unknown.length === 0 ? EXIT.ok : EXIT.unknownTool;
  });
}

function describeTool({ name, description, inputSchema, annotations }: Readonly<Record<string, unknown>>): string {
  const text = clipText(cleaned(description).trim(), MAX_DESCRIPTION_BYTES, ' …');
  const hints = isRecord(annotations) ? Object.entries(annotations).filter(([, value]) => value === true) : [];
  const said = hints.map(([hint]) => HINTS[hint]).filter((hint) => hint !== undefined);
  const lines = [
    // Quoted, because a line of the server must not pass for one of Trunkline.
    ...text.split('\n').flatMap((line) => (line === '' ? [] : [`> ${printable(line)}`])),
    ...describedArguments(inputSchema),
    ...(said.length === 0 ? [] : [`The server says: ${said.join(', ')}.`]),
  ];
  return [usageOf(String(name), inputSchema), ...lines.map((line) => `  ${line}`)].join('\n');
}

const HINTS: Readonly<Record<string, string>> = {
  readOnlyHint: 'it changes nothing',
  destructiveHint: 'it may overwrite or delete something',
  idempotentHint: 'a second call has no further effect',
};

/** A text of a server without characters that a reader does not see. */
function cleaned(text: unknown): string {
  return typeof text === 'string' ? withoutHiddenCharacters(text) : '';
}

function oneLine(text: string): string {
  return printable(text.replace(/\s+/g, ' ').trim());
}

/** Runs `work` with the tools of the running gateway, or of servers that are started for it: those of `tools`, or all. */
export async function withTools(
  { settings, options }: Invocation<SourceOptions>,
  tools: readonly string[] | undefined,
  work: (source: ToolSource) => Promise<number>,
): Promise<number> {
  const hub = options.alone ? undefined : await runningHub(settings, options.hub);
  if (hub === undefined) {
    const { withServers } = await import('./call-alone.js');
    return await withServers(settings, tools, work);
  }
  try {
    return await work(hub);
  } catch (error) {
    // The gateway has ended meanwhile, or an earlier version does not know the command.
    if (!(error instanceof Error) || error instanceof HintedError || fileErrorIn(error) !== undefined) throw error;
    tell(`trunkline: ${error.message}`);
    return EXIT.failed;
  } finally {
    hub.close();
  }
}
