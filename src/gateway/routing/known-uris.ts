import { valuesAt } from '../../json/json-path.js';
import { isString, readString, type Span, visitElements } from '../../json/json-text.js';
import type { ResponseEnvelope } from '../../mcp/envelope.js';
import { isUiUri } from '../../mcp/ui-uri.js';

/** Enough for what a conversation refers to; the oldest is forgotten first. */
const MAX_KNOWN = 512;

/** Where in results the URIs of resources stand: the list, and the way from an entry of it. */
const PLACES: readonly (readonly [list: string, ...path: string[]])[] = [
  ['content', 'uri'],
  ['content', 'resource', 'uri'],
  ['contents', 'uri'],
  ['messages', 'content', 'uri'],
  ['messages', 'content', 'resource', 'uri'],
];

/** URIs that servers have spoken of without listing them: who spoke of one has it. */
export class KnownUris {
  readonly #owners = new Map<string, string>();

  owner(uri: string): string | undefined {
    return this.#owners.get(uri);
  }

  /** The same without what those servers own that are not there any more. */
  of(isThere: (key: string) => boolean): KnownUris {
    const known = new KnownUris();
    for (const [uri, key] of this.#owners) if (isThere(key)) known.#owners.set(uri, key);
    return known;
  }

  /** User interfaces are never known so: any server could speak of another's. */
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

  /** Notes the resources and links to resources in the result of a tool, a prompt or a read. */
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
