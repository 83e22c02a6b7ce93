import { NewestMap } from '../../wire/io/newest-map.js';
import { elementsOf, readString, stringAt, valuesAt, visitMembers } from '../../wire/json/json-text.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { skillRoot } from '../../wire/mcp/extensions.js';
import { isUiUri } from '../../wire/mcp/ui-uris.js';
import type { Catalogs, UriOwner } from '../catalog/catalog.js';
import type { Backend } from '../registry/backend.js';

interface ResourceOwner extends UriOwner {
  /** Whether no server lists the URI and this one is only the most likely. */
  readonly isGuess?: boolean;
}

/**
 * Returns the server that a URI belongs to, or `undefined` if it is unknown.
 *
 * The first of these decides: the owner of the user interface; the server that lists the URI; the server whose skill has this file; the
 * server that mentioned the URI; a failed server that listed the URI before; the longest literal beginning of a template that matches; the
 * only server that lists something of the same scheme and authority; the only server with resources.
 */
export function ownerOfUri(
  uri: string,
  catalogs: Catalogs,
  backends: ReadonlyMap<string, Backend>,
  known: KnownUris,
): ResourceOwner | undefined {
  if (catalogs.ui.isClaimed(uri)) return catalogs.ui.resolve(uri);
  // The reference of a completion contains a template exactly as it is listed.
  const key =
    catalogs.templates.owner(uri)?.key ??
    catalogs.resources.owner(uri)?.key ??
    known.ofSkill(uri) ??
    known.owner(uri) ??
    listedBefore(uri, backends) ??
    ownerByTemplate(uri, catalogs);
  if (key !== undefined) return { key, original: uri };
  const likeliest = onlyOne(ownersByAuthority(uri, catalogs)) ?? onlyOne(withResources(backends.values()));
  return likeliest === undefined ? undefined : { key: likeliest, original: uri, isGuess: true };
}

/** Finds the failed server that listed the URI, so that the client learns about the failure instead of "not found". */
function listedBefore(uri: string, backends: ReadonlyMap<string, Backend>): string | undefined {
  for (const backend of backends.values()) {
    if (!backend.isUnavailable) continue;
    const { resources } = backend.knownListsAs('exposed');
    if (resources.entries.some(({ original }) => original === uri)) return backend.key;
  }
  return undefined;
}

function ownerByTemplate(uri: string, { templates }: Catalogs): string | undefined {
  let best: { readonly key: string; readonly literal: number } | undefined;
  for (const [template, { key }] of templates.routes) {
    const literal = template.indexOf('{') < 0 ? template.length : template.indexOf('{');
    if (fitsTemplate(uri, template) && literal > (best?.literal ?? -1)) best = { key, literal };
  }
  return best?.key;
}

/**
 * Whether the literal parts of the template occur in the URI, in order, with something between them. An expression with its
 * own delimiter, such as `{?query}`, may be empty.
 */
function fitsTemplate(uri: string, template: string): boolean {
  let position = 0;
  let literalStart = 0;
  let gap = 0;
  for (const expression of template.matchAll(/\{(?<operator>[?&#;/.]?)[^{}]*\}/g)) {
    const literal = template.slice(literalStart, expression.index);
    const at = literalStart === 0 ? (uri.startsWith(literal) ? 0 : -1) : uri.indexOf(literal, position + gap);
    if (at < 0) return false;
    position = at + literal.length;
    literalStart = expression.index + expression[0].length;
    gap = expression.groups?.operator === '' ? 1 : 0;
  }
  const last = template.slice(literalStart);
  if (literalStart === 0) return uri === template;
  return uri.length >= position + gap + last.length && uri.endsWith(last);
}

function ownersByAuthority(uri: string, { resources }: Catalogs): Set<string> {
  const authority = authorityOf(uri);
  const owners = new Set<string>();
  for (const [, { key, original }] of resources.routes) if (authorityOf(original) === authority) owners.add(key);
  return owners;
}

/** Scheme and authority: `file://`, `https://host`, or the scheme alone. */
function authorityOf(uri: string): string {
  return /^[^:/?#]+:(?:\/\/[^/?#]*)?/.exec(uri)?.[0] ?? uri;
}

function withResources(backends: Iterable<Backend>): Set<string> {
  const keys = new Set<string>();
  for (const { key, dispatcher } of backends) if (dispatcher.connection?.offers('resources') === true) keys.add(key);
  return keys;
}

function onlyOne(keys: ReadonlySet<string>): string | undefined {
  const [key, ...others] = keys;
  return others.length === 0 ? key : undefined;
}

/** Limit of the remembered URIs, enough for a conversation. The oldest is forgotten first. */
const MAX_KNOWN = 512;
/** Limit of a remembered URI in characters, because some servers put a whole picture into a `data:` URI. */
const MAX_URI_LENGTH = 8 * 1024;

/** Paths of resource URIs in results: the member with the list, and the paths within the entries of the list. */
const PLACES: ReadonlyMap<string, readonly (readonly string[])[]> = new Map([
  ['content', [['uri'], ['resource', 'uri']]],
  ['contents', [['uri']]],
  [
    'messages',
    [
      ['content', 'uri'],
      ['content', 'resource', 'uri'],
    ],
  ],
]);

/** Owners of URIs that servers mentioned without listing them. The server that mentioned a URI last owns it. */
export class KnownUris {
  readonly #owners = new NewestMap<string, string>(MAX_KNOWN);
  /** Owners of the listed skills, by the beginning of the URIs of their files. */
  #skills: ReadonlyMap<string, string> = new Map();
  /** Owners of skills that were found without a list, by the beginning of the URIs of their files. */
  readonly #foundSkills = new NewestMap<string, string>(MAX_KNOWN);

  owner(uri: string): string | undefined {
    return this.#owners.get(uri);
  }

  /** Returns the server of the skill that has this file or folder. Skills may contain others; the innermost one counts. */
  ofSkill(uri: string): string | undefined {
    let best: { readonly key: string; readonly length: number } | undefined;
    for (const [root, key] of [...this.#foundSkills, ...this.#skills]) {
      const isInside = uri.startsWith(root) || uri === root.slice(0, -1);
      if (isInside && root.length >= (best?.length ?? 0)) best = { key, length: root.length };
    }
    return best?.key;
  }

  noteSkills(owners: ReadonlyMap<string, string>): void {
    this.#skills = new Map([...owners].map(([uri, key]) => [skillRoot(uri), key]));
  }

  /** Records that the server has this skill, listed or not. */
  noteSkill(uri: string, key: string): void {
    const root = skillRoot(uri);
    if (root.length <= MAX_URI_LENGTH) this.#foundSkills.set(root, key);
  }

  /** Returns a copy without the servers that no longer exist. */
  of(exists: (key: string) => boolean): KnownUris {
    const known = new KnownUris();
    known.#skills = new Map([...this.#skills].filter(([, key]) => exists(key)));
    for (const [uri, key] of this.#owners) if (exists(key)) known.#owners.set(uri, key);
    for (const [root, key] of this.#foundSkills) if (exists(key)) known.#foundSkills.set(root, key);
    return known;
  }

  /** Records the server of a URI. Ignores `ui://` URIs, because a server could name the user interface of another one. */
  note(uri: string, key: string): void {
    if (uri !== '' && uri.length <= MAX_URI_LENGTH && !isUiUri(uri)) this.#owners.set(uri, key);
  }

  /**
   * Records the resources and resource links in the result of a tool call, a prompt or a read. Reads at most `MAX_KNOWN` entries of
   * each list, because all clients wait meanwhile.
   */
  learn({ bytes, result }: ResponseEnvelope, key: string): void {
    if (result === undefined) return;
    visitMembers(bytes, result.start, Number.POSITIVE_INFINITY, (name, list) => {
      const paths = PLACES.get(readString(bytes, name));
      for (const entry of paths === undefined ? [] : elementsOf(bytes, list, MAX_KNOWN))
        for (const span of paths?.flatMap((path) => valuesAt(bytes, entry, path)) ?? [])
          this.note(stringAt(bytes, span) ?? '', key);
    });
  }
}
