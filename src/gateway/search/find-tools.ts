import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { readText } from '../../wire/json/json-text.js';
import { isRecord } from '../../wire/json/json-value.js';
import { clipText, firstSentence, printable, withoutHiddenCharacters } from '../../wire/json/printable.js';
import { suggest } from '../../wire/json/suggest.js';
import type { Catalog, Route } from '../catalog/catalog.js';
import type { Backend } from '../registry/backend.js';
import { textResult, type VisibleBackends } from '../routing/own-tool.js';
import { type SearchedTool, ToolIndex } from './tool-index.js';

/** A tool that can be found, under its exposed name. */
type Listed = readonly [exposed: string, route: Route & { readonly entry: Uint8Array }];

/** The tools of a list that a model may call, with their index. */
interface SearchedList {
  readonly tools: readonly Listed[];
  readonly index: ToolIndex;
}

/** One index for each list of tools, made at the first search in it. */
const LISTS = new WeakMap<Catalog, SearchedList>();

const MAX_SENTENCE_BYTES = 240;
const MAX_DESCRIPTION_BYTES = 2_048;
const MAX_DESCRIBED = 20;
/** Length to which a request is cut, and a name that an answer repeats, in characters. */
const MAX_QUERY = 1_000;
const MAX_NAME = 100;
/** Limit of the names that are compared with an unknown one, because each comparison takes some microseconds. */
const MAX_COMPARED = 500;

/** `trunkline__find_tools`: returns the tools that fit best to a request. `args` is unchecked. */
export function findTools(
  args: unknown,
  visible: VisibleBackends,
  { most, usual, defined }: { readonly most: number; readonly usual: number; readonly defined: number },
): CallToolResult {
  const { query = '', server, limit = usual } = isRecord(args) ? args : {};
  if (typeof query !== 'string' || typeof limit !== 'number')
    return textResult('`query` must be a text, and `limit` a number.', true);
  const { backends } = visible;
  const wanted = query.slice(0, MAX_QUERY).trim();
  if (server !== undefined && !(typeof server === 'string' && backends.has(server)))
    return textResult(`There is no server ${shortened(server)}. ${serversOf(visible)}`, true);
  if (wanted === '' && server === undefined)
    return textResult(`Say in \`query\` what has to be done, or name a \`server\`. ${serversOf(visible)}`, true);
  const count = Math.min(most, Math.max(1, Math.floor(limit)));
  const found = search(visible, wanted, server, count);
  if (found.length === 0) return textResult(describeNothing(wanted, server, visible));
  const tools = found.map(([name, { key, entry }], at) => describe(name, key, entry, at < defined));
  const lines = tools.map(({ name, sentence, params }) => {
    const listed = params.length === 0 ? '' : ` (${params.join(', ')})`;
    return `${name}${listed}${sentence === '' ? '' : `: ${sentence}`}`;
  });
  const note = 'Parameters with * are required. Call a tool with trunkline__call_tool.';
  return withTools(
    [...lines, note],
    tools.map(({ structured }) => structured),
    unknownYet(backends),
  );
}

/** `trunkline__describe_tools`: returns the definitions of tools, as the list has them. `args` is unchecked. */
export function describeTools(args: unknown, { catalogs, revision }: VisibleBackends): CallToolResult {
  const given = isRecord(args) ? args.names : undefined;
  const names = typeof given === 'string' ? [given] : given;
  if (!Array.isArray(names) || names.length === 0 || names.some((name) => typeof name !== 'string'))
    return textResult('`names` must be a list of names of tools.', true);
  const { tools } = catalogs;
  const unknown: string[] = [];
  const texts = names.slice(0, MAX_DESCRIBED).flatMap((name: string) => {
    const route = tools.resolve(name);
    const own = tools.own.find((each) => each.name === name);
    const entry = route === undefined ? own?.entry : tools.entryFor(route, revision);
    if (entry === undefined) unknown.push(describeUnknown(name, tools));
    return entry === undefined ? [] : [readText(entry, { start: 0, end: entry.length })];
  });
  const rest = names.length - MAX_DESCRIBED;
  const more = rest > 0 ? [`Ask for the other ${rest} in another call; ${MAX_DESCRIBED} are described at once.`] : [];
  const notes = [...unknown, ...more];
  if (texts.length === 0) return textResult(notes.join('\n'), true);
  const definitions = texts.map((each) => JSON.parse(each));
  return withTools(texts, definitions, notes);
}

/** Returns a result as text and as structured content. Both have the notes, because some clients show their model only the latter. */
function withTools(lines: readonly string[], tools: readonly unknown[], notes: readonly string[]): CallToolResult {
  const structuredContent = { tools, ...(notes.length === 0 ? {} : { notes }) };
  return { ...textResult([...lines, ...notes].join('\n')), structuredContent };
}

function search(visible: VisibleBackends, query: string, server: unknown, limit: number): Listed[] {
  const { tools, index } = searchedList(visible);
  const accepts = (at: number) => server === undefined || tools[at]?.[1].key === server;
  if (query === '') return tools.filter((_, at) => accepts(at)).slice(0, limit);
  // Looks for an exposed name among the words of the request, and for either name as the whole request in any case.
  const words = new Set(query.split(/[^\w-]+/));
  const lower = query.toLowerCase();
  const isWhole = (name: string) => name.length === query.length && name.toLowerCase() === lower;
  const isNamed = (exposed: string, original: string) => words.has(exposed) || isWhole(exposed) || isWhole(original);
  const named = tools.filter(([exposed, { original }], at) => accepts(at) && isNamed(exposed, original));
  const found = index.find(query, limit, accepts).map((at) => tools[at]);
  return [...new Set([...named, ...found])].filter((tool) => tool !== undefined).slice(0, limit);
}

function searchedList({ catalogs, backends }: VisibleBackends): SearchedList {
  const known = LISTS.get(catalogs.tools);
  if (known !== undefined) return known;
  const tools: Listed[] = [];
  const searched: SearchedTool[] = [];
  for (const [exposed, route] of catalogs.tools.routes) {
    const { entry, original, key } = route;
    if (entry === undefined) continue;
    const definition = JSON.parse(readText(entry, { start: 0, end: entry.length }));
    if (!isForModels(definition)) continue;
    tools.push([exposed, { ...route, entry }]);
    const { shaping } = backends.get(key)?.rules ?? {};
    searched.push(searchedTexts(definition, { original, server: key, keywords: shaping?.keywordsOf(original) ?? [] }));
  }
  const list = { tools, index: new ToolIndex(searched) };
  LISTS.set(catalogs.tools, list);
  return list;
}

/** Whether hosts show the tool to a model. Some tools are for the user interface of another tool only (MCP Apps). */
function isForModels({ _meta }: { readonly _meta?: unknown }): boolean {
  const ui = isRecord(_meta) ? _meta.ui : undefined;
  const visibility = isRecord(ui) ? ui.visibility : undefined;
  return !Array.isArray(visibility) || visibility.includes('model');
}

/** The texts of a definition for the index. A server may write anything into them. */
export function searchedTexts(
  definition: Readonly<Record<string, unknown>>,
  about: { readonly original: string; readonly server: string; readonly keywords: readonly string[] },
): SearchedTool {
  const { original, server, keywords } = about;
  const { title, description, annotations, inputSchema } = definition;
  const params = Object.entries(propertiesOf(inputSchema)).map(([name, schema]) => {
    return { name, description: isRecord(schema) ? textOf(schema.description) : '' };
  });
  const ofAnnotations = isRecord(annotations) ? textOf(annotations.title) : '';
  return {
    name: original,
    server,
    keywords,
    params,
    title: textOf(title) || ofAnnotations,
    description: textOf(description),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function propertiesOf(schema: unknown): Readonly<Record<string, unknown>> {
  return isRecord(schema) && isRecord(schema.properties) ? schema.properties : {};
}

function describe(name: string, server: string, entry: Uint8Array, isDefined: boolean) {
  const { inputSchema, description } = JSON.parse(readText(entry, { start: 0, end: entry.length }));
  const required: unknown = isRecord(inputSchema) ? inputSchema.required : undefined;
  const isRequired = (param: string) => Array.isArray(required) && required.includes(param);
  const whole = withoutHiddenCharacters(textOf(description));
  const sentence = clipText(printable(firstSentence(whole).replace(/\s+/g, ' ').trim()), MAX_SENTENCE_BYTES, ' …');
  return {
    name,
    sentence,
    params: Object.keys(propertiesOf(inputSchema)).map((param) => `${printable(param)}${isRequired(param) ? '*' : ''}`),
    structured: isDefined
      ? { name, server, description: clipText(whole, MAX_DESCRIPTION_BYTES, ' …'), inputSchema }
      : { name, server, description: sentence },
  };
}

function describeNothing(query: string, server: unknown, visible: VisibleBackends): string {
  const { tools } = searchedList(visible);
  const where = typeof server === 'string' ? `the tools of server "${server}"` : `${tools.length} tools`;
  const what =
    query === '' ? `There are no tools among ${where}.` : `No tool among ${where} matches ${shortened(query)}.`;
  const advice = 'Try other words, or name only a `server` to list its tools.';
  return [what, advice, serversOf(visible), ...unknownYet(visible.backends)].join(' ');
}

/** The servers that have tools, with their numbers. */
function serversOf({ catalogs, backends }: VisibleBackends): string {
  const counts = [...backends.keys()].flatMap((key) => {
    const count = catalogs.tools.listed.get(key)?.length ?? 0;
    return count === 0 ? [] : [`${key} (${count})`];
  });
  return counts.length === 0 ? 'No server has tools.' : `Servers with tools: ${counts.join(', ')}.`;
}

/** A sentence about the servers whose tools are missing, because they start or have a problem. Empty if there are none. */
function unknownYet(backends: ReadonlyMap<string, Backend>): string[] {
  const all = [...backends.values()];
  const starting = all.filter(({ hasKnownLists }) => !hasKnownLists).map(({ key }) => key);
  const missing = all.filter((each) => each.hasKnownLists && each.isUnavailable).map(({ key }) => key);
  return [
    ...(starting.length === 0
      ? []
      : [`Not known yet: the tools of ${starting.join(', ')}, which start. Search again.`]),
    ...(missing.length === 0
      ? []
      : [`Missing: the tools of ${missing.join(', ')}. trunkline__status tells why, and what to do.`]),
  ];
}

function describeUnknown(name: string, { routes }: Catalog): string {
  const names = [...routes].flatMap(([exposed, { entry }]) => (entry === undefined ? [] : [exposed]));
  const meant = suggest(name.slice(0, MAX_NAME), names.slice(0, MAX_COMPARED));
  return `Unknown tool: ${shortened(name)}.${meant === undefined ? '' : ` Did you mean ${printable(meant)}?`}`;
}

/** A text of the client as JSON, cut. */
function shortened(text: unknown): string {
  return printable(JSON.stringify(typeof text === 'string' ? text.slice(0, MAX_NAME) : (text ?? null)));
}
