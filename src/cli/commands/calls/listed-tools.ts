import { readString, readText, toBytes, visitElements, visitMembers } from '../../../wire/json/json-text.js';
import { LISTS } from '../../../wire/mcp/methods.js';
import type { LocalClient } from '../../local-client.js';

/** Requests all pages of `tools/list` and returns them as one result. */
export async function listAllTools(client: LocalClient): Promise<string> {
  const entries: string[] = [];
  for (let params: string | undefined = '{}'; params !== undefined; ) {
    const page: Uint8Array = await client.request(LISTS.tools.method, params);
    params = undefined;
    visitMembers(page, 0, Number.POSITIVE_INFINITY, (key, value) => {
      if (readString(page, key) === LISTS.tools.member) {
        visitElements(page, value.start, Number.POSITIVE_INFINITY, (entry) => entries.push(readText(page, entry)));
      } else {
        params = `{"cursor":${readText(page, value)}}`;
      }
    });
  }
  return listOf(entries);
}

/** Returns the entries with these names, byte for byte. */
export function onlyNamed(result: string, names: ReadonlySet<string>): string {
  const bytes = toBytes(result);
  const entries: string[] = [];
  visitMembers(bytes, 0, Number.POSITIVE_INFINITY, (_, list) => {
    visitElements(bytes, list.start, Number.POSITIVE_INFINITY, (entry) => {
      const text = readText(bytes, entry);
      if (names.has(JSON.parse(text).name)) entries.push(text);
    });
  });
  return listOf(entries);
}

function listOf(entries: readonly string[]): string {
  return `{"${LISTS.tools.member}":[${entries.join(',')}]}`;
}
