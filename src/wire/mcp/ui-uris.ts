import { isString, readString, type Span, valuesAt } from '../json/json-text.js';
import { HASH_LENGTH, type Sha256 } from './exposed-name.js';

/** Whether a URI names a user interface of MCP Apps: HTML that a host shows for the results of a tool. */
export function isUiUri(uri: string): boolean {
  return uri.startsWith('ui://');
}

/**
 * Returns the URI under which clients see `uri` of the server `key` if another server owns `uri`.
 *
 * The alias depends only on key and URI. The path stays the same, so that users recognize it.
 */
export function uiAlias(key: string, uri: string, sha256: Sha256): string {
  const path = uri.replace(/^ui:\/\/[^/?#]*\/?/, '');
  return `ui://${key}--${sha256(`${key}\0${uri}`).slice(0, HASH_LENGTH)}/${path}`;
}

/** Returns the key in a URI that has the form of an alias. No key contains the two dashes that follow it. */
export function keyInUiAlias(uri: string): string | undefined {
  return /^ui:\/\/([^/?#]+)--[0-9a-f]{8}(?:[/?#]|$)/.exec(uri)?.[1];
}

/** Members of `_meta` that name the user interface of a tool: those of MCP Apps, of its first draft, and of OpenAI. */
const POINTERS: readonly (readonly string[])[] = [['ui', 'resourceUri'], ['ui/resourceUri'], ['openai/outputTemplate']];

/** Returns the positions at which the tool or tool result at `span` names a user interface. */
export function uiPointers(bytes: Uint8Array, span: Span): readonly { readonly uri: string; readonly span: Span }[] {
  const metas = valuesAt(bytes, span, ['_meta']);
  const tokens = metas.flatMap((meta) => POINTERS.flatMap((path) => valuesAt(bytes, meta, path)));
  return tokens
    .filter((token) => isString(bytes, token))
    .map((token) => ({ uri: readString(bytes, token), span: token }))
    .filter(({ uri }) => isUiUri(uri));
}
