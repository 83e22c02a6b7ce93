import type { Catalogs } from '../gateway/catalog/catalog.js';
import type { Backend } from '../gateway/registry/backend.js';
import type { ListMode } from '../spec/list-modes.js';
import { readText, valuesAt } from '../wire/json/json-text.js';
import { parseJson } from '../wire/json/json-value.js';
import { clipText, firstSentence, printable, utf8Length } from '../wire/json/printable.js';
import { estimateTokens, tokensOfList } from '../wire/mcp/entry-check.js';
import { explainShadowed } from './status.js';

/** The tools that the clients of one view see, and the tools that are hidden from them. */
export interface ViewTools {
  /** Empty for the view of all servers. */
  readonly name: string;
  readonly clients: readonly string[];
  /** Estimated tokens of the whole list. */
  readonly tokens: number;
  readonly mode: ListMode;
  /** Estimated tokens of the list that clients in search mode get. */
  readonly searchTokens: number;
  readonly tools: readonly ToolRow[];
}

export interface ToolRow {
  /** Key of the server; `trunkline` for the tools of Trunkline itself. */
  readonly server: string;
  /** Exposed name. */
  readonly name: string;
  readonly original: string;
  /** Title in the definition; empty without one. */
  readonly title: string;
  /** The first sentence of the description as clients get it, cut; empty without one. */
  readonly sentence: string;
  readonly descriptionBytes: number;
  /** Estimated tokens of the definition as clients get it; 0 if the definition is not kept. */
  readonly tokens: number;
  /** Keys of `tools` in the configuration that change the tool for clients, such as `rename` and `annotate.title`. */
  readonly changes: readonly string[];
  /** Reason why the tool is hidden; empty if it is shown. */
  readonly because: string;
  readonly state: 'shown' | 'denied' | 'unapproved' | 'quarantined' | 'shadowed' | 'outside';
}

interface ReportedView {
  readonly name: string;
  readonly mode?: ListMode | undefined;
}

interface ViewFacts {
  /** The view; `undefined` for clients that see everything. */
  readonly view: ReportedView | undefined;
  /** The mode of clients whose view has none. */
  readonly mode: ListMode;
  readonly clients: readonly string[];
  readonly catalogs: Catalogs;
  /** The oldest backend of each server. */
  readonly backends: readonly Backend[];
  readonly redact: (text: string) => string;
}

/** Reports the tools that one view shows and hides, with the reasons: by server, and last the tools of Trunkline itself. */
export function reportView({ view, mode, clients, catalogs: { tools }, backends, redact }: ViewFacts): ViewTools {
  const clean = (text: string) => printable(redact(text));
  const servers = backends.flatMap((backend) => reportTools(backend, view, tools).map((tool) => cleaned(tool, clean)));
  const own = tools.own.map(({ name, entry }) => {
    return {
      server: 'trunkline',
      name,
      original: name,
      ...textsOf(entry),
      tokens: estimateTokens(entry.length),
      changes: [],
      ...SHOWN,
    };
  });
  return {
    name: view?.name ?? '',
    clients: clients.map(clean),
    tokens: tokensOfList(tools.entries),
    mode: view?.mode ?? mode,
    searchTokens: tokensOfList(tools.shownEntries(true)),
    tools: [...servers, ...own],
  };
}

/** The definition of a shown tool, as clients of the view get it. */
export function definitionOf(name: string, { routes, own }: Catalogs['tools']): Uint8Array | undefined {
  return new Map(routes).get(name)?.entry ?? own.find((tool) => tool.name === name)?.entry;
}

const SHOWN = { because: '', state: 'shown' } as const;

function cleaned(tool: ToolRow, clean: (text: string) => string): ToolRow {
  const { name, original, title, sentence, because } = tool;
  const texts = { title: clean(title), sentence: clean(sentence), because: clean(because) };
  return { ...tool, name: clean(name), original: clean(original), ...texts };
}

function reportTools(
  backend: Backend,
  view: ReportedView | undefined,
  { routes, shadowed }: Catalogs['tools'],
): ToolRow[] {
  const { key: server } = backend;
  const { entries, withheld, denied, verdicts, renamed } = backend.knownListsAs('exposed').tools;
  const shown = new Map([...routes].flatMap(([exposed, { key, entry }]) => (key === server ? [[exposed, entry]] : [])));
  const reasonOf = (original: string) => withheld.find(({ name }) => name === original)?.reason ?? '';
  const listed = entries.map(({ exposed: name, original, entry }): ToolRow => {
    const known = shown.get(name) ?? entry;
    const changes = backend.rules.shaping?.changesOf(original, renamed) ?? [];
    const about = { server, name, original, ...textsOf(known), tokens: estimateTokens(known?.length ?? 0), changes };
    const taken = shadowed.find((each) => each.key === server && each.exposed === name);
    if ((verdicts?.get(original) ?? 'approved') !== 'approved')
      return { ...about, state: 'unapproved', because: reasonOf(original) };
    if (entry === undefined) return { ...about, state: 'quarantined', because: reasonOf(original) };
    if (taken !== undefined) return { ...about, state: 'shadowed', because: explainShadowed(taken, 'tools') };
    if (backend.isUnavailable) return { ...about, state: 'outside', because: 'its server does not run' };
    if (shown.has(name)) return { ...about, ...SHOWN };
    return { ...about, state: 'outside', because: `the view ${view?.name ?? ''} leaves it out` };
  });
  const named = new Set(entries.map(({ original }) => original));
  const unlisted = (name: string, state: ToolRow['state'], because: string): ToolRow => {
    return { server, name, original: name, ...textsOf(undefined), tokens: 0, changes: [], state, because };
  };
  return [
    ...listed,
    ...denied.map((name) => unlisted(name, 'denied', '`tools` in the configuration leaves it out')),
    // Only the entries without a name are not among `entries`. Their `name` here is their position, such as `#3`.
    ...withheld.flatMap(({ name, reason }) => (named.has(name) ? [] : [unlisted(name, 'quarantined', reason)])),
  ];
}

function textsOf(entry: Uint8Array | undefined) {
  if (entry === undefined) return { title: '', sentence: '', descriptionBytes: 0 };
  const description = textAt(entry, [['description']]);
  return {
    title: textAt(entry, [['title'], ['annotations', 'title']]),
    sentence: clipText(firstSentence(description).replace(/\s+/g, ' ').trim(), MAX_SENTENCE_BYTES, ' …'),
    descriptionBytes: utf8Length(description),
  };
}

const MAX_SENTENCE_BYTES = 240;

/** The first text at one of these paths; '' if there is none. */
function textAt(entry: Uint8Array, paths: readonly (readonly string[])[]): string {
  const [span] = paths.flatMap((path) => valuesAt(entry, { start: 0, end: entry.length }, path));
  const text = span && parseJson(readText(entry, span));
  return typeof text === 'string' ? text : '';
}
