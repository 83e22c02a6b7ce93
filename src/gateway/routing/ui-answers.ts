import { valuesAt } from '../../json/json-path.js';
import { isString, readString, type Span, toBytes, visitElements } from '../../json/json-text.js';
import type { Edit } from '../../json/splice.js';
import { uiPointers } from '../../mcp/ui-uri.js';
import type { EditAnswer } from '../dispatch/handling.js';

/**
 * Edits the answer to `resources/read` of an alias: replaces the original URI by the alias that the client requested.
 */
export function editReadResult(original: string, alias: string): EditAnswer {
  return ({ bytes, result }) => {
    if (result === undefined) return [];
    const contents: Span[] = [];
    for (const list of valuesAt(bytes, result, ['contents'])) {
      visitElements(bytes, list.start, Number.POSITIVE_INFINITY, (content) => contents.push(content));
    }
    const uris = contents.flatMap((content) => valuesAt(bytes, content, ['uri']));
    const own = uris.filter((span) => isString(bytes, span) && readString(bytes, span) === original);
    return own.map((span) => replace(span, alias));
  };
}

/** Edits a tool result: replaces `ui://` URIs, which say how a host shows the result, by their aliases. */
export function editToolResult(aliases: ReadonlyMap<string, string>): EditAnswer {
  return ({ bytes, result }) => {
    if (result === undefined) return [];
    return uiPointers(bytes, result).flatMap(({ uri, span }) => {
      const alias = aliases.get(uri);
      return alias === undefined ? [] : [replace(span, alias)];
    });
  };
}

function replace(span: Span, uri: string): Edit {
  return { span, text: toBytes(JSON.stringify(uri)) };
}
