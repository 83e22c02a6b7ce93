import { valuesAt } from '../../json/json-path.js';
import { isString, readString, type Span, visitElements } from '../../json/json-text.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { isUiUri } from '../../mcp/ui-uri.js';

/** Enough for the URIs of a conversation. The oldest is forgotten first. */
const MAX_KNOWN = 512;

/** Where results contain URIs of resources: the list, and the path within its entries. */
const PLACES: readonly (readonly [list: string, ...path: string[]])[] = [
  ['content', 'uri'],
  ['content', 'resource', 'uri'],
  ['contents', 'uri'],
  ['messages', 'content', 'uri'],
  ['messages', 'content', 'resource', 'uri'],
];

/** Owners of URIs that servers mentioned without listing them. The server that mentioned a URI last owns it. */
export class KnownUris {
  readonly #owners = new Map<string, string>();

  owner(uri: string): string | undefined {
    return this.#owners.get(uri);
  }

  /** A copy with the servers that still exist. */
  of(exists: (key: string) => boolean): KnownUris {
    const known = new KnownUris();
    for (const [uri, key] of this.#owners) if (exists(key)) known.#owners.set(uri, key);
    return known;
  }

  /** Ignores user interfaces: any server could mention the user interface of another one. */
  note(uri: string, key: string): void {
    if (isUiUri(uri)) return;
    this.#owners.delete(uri);
    this.#owners.set(uri, key);
    if (this.#owners.size <= MAX_KNOWN) return;
    for (const oldest of this.#owners.keys()) {
      this.#owners.delete(oldest);
      break;
    }
  }

  /** Notes the resources and resource links in the result of a tool call, a prompt or a read. */
  learn({ bytes, result }: ResponseEnvelope, key: string): void {
    if (result === undefined) return;
    for (const [list, ...path] of PLACES) {
      for (const entries of valuesAt(bytes, result, [list])) {
        visitElements(bytes, entries.start, Number.POSITIVE_INFINITY, (entry) => {
          for (const uri of valuesAt(bytes, entry, path)) this.#noteAt(bytes, uri, key);
        });
      }
    }
  }

  #noteAt(bytes: Uint8Array, span: Span, key: string): void {
    if (isString(bytes, span)) this.note(readString(bytes, span), key);
  }
}
