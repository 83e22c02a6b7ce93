import type { Catalogs } from '../catalog/catalogs.js';
import type { UriOwner } from '../catalog/ui-aliases.js';
import type { Backend } from '../registry/backend.js';
import type { KnownUris } from './known-uris.js';

/** The server that owns a resource, and the original URI. */
interface ResourceOwner extends UriOwner {
  /** No server lists the URI; this one is the most likely. */
  readonly isGuess?: boolean;
}

/**
 * The server that a URI belongs to, or `undefined` if it is unknown.
 *
 * Checked in this order: the owner of the user interface; the server that lists the URI as a template or a resource; the
 * server that mentioned it; a failed server that listed it before; the server whose template matches, the longest literal
 * beginning first; the only server that lists something of the same scheme and authority; the only server with resources.
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
 * Whether the URI matches the template: its literal parts occur in order, from the beginning to the end, with something
 * between them. The values of the expressions are not checked. An expression with its own delimiter, such as `{?query}`,
 * may be empty.
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
