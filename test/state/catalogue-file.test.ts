import { describe, expect, it } from 'vitest';
import { listAllPages } from '../../src/gateway/catalog/pagination.js';
import { readCatalogue, serializeCatalogue } from '../../src/state/catalogue-file.js';
import type { ListSource } from '../../src/upstream/upstream-connection.js';
import { LISTS, type ListKind } from '../../src/wire/mcp/methods.js';
import { bytesOf, scan } from '../support/wire.js';

const TIMEOUTS = { idleMs: 1, maxMs: 1 };
const INITIALIZE_RESULT =
  '{ "protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true}},"instructions":"Öffne."}';
const TOOL = '{ "name" : "x" , "inputSchema" : {"type":"object"}, "n":9007199254740993, "e":1e400, "t":"\\u00e9" }';

function entries(...texts: string[]) {
  return texts.map((text) => ({ bytes: bytesOf(text) }));
}

const lists = new Map<ListKind, ReturnType<typeof entries>>([
  ['tools', entries(TOOL, '{"name":"y"}')],
  ['resources', []],
  ['templates', []],
]);

function serialized(): Uint8Array {
  return serializeCatalogue({ initializeResult: bytesOf(INITIALIZE_RESULT), lists });
}

function read(bytes: Uint8Array): ListSource {
  const child = readCatalogue(bytes, scan);
  if (typeof child === 'string') throw new Error(child);
  return child;
}

describe('a cached catalogue', () => {
  it('answers for the lists as the server wrote them, to the byte', async () => {
    const child = read(serialized());
    const list = await listAllPages(child, LISTS.tools, TIMEOUTS);
    if (list.kind === 'failed') throw new Error(list.reason);
    const texts = list.entries.map(({ bytes }) => Buffer.from(bytes).toString());
    expect(texts).toEqual([TOOL, '{"name":"y"}']);
    expect(await listAllPages(child, LISTS.resources, TIMEOUTS)).toMatchObject({ kind: 'listed', entries: [] });
  });

  it('says of itself what it said', () => {
    const child = read(serialized());
    expect(child.instructions).toBe('Öffne.');
    expect([child.offers('tools'), child.offers('resources.subscribe'), child.offers('prompts')]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('has no answer for a list that was not cached', async () => {
    const child = read(serialized());
    expect(await listAllPages(child, LISTS.prompts, TIMEOUTS)).toMatchObject({ kind: 'failed' });
  });

  it('is the same text when the same is cached again', () => {
    expect(Buffer.from(serialized()).equals(serialized())).toBe(true);
  });
});

describe('a file that is no cached catalogue', () => {
  const text = Buffer.from(serialized()).toString();

  it.each([
    ['nothing', ''],
    ['another format', text.replace('"format":1', '"format":2')],
    ['no JSON', `rubbish\n${text}`],
    ['JSON of another kind', 'null\n{}\n'],
  ])('is told from one that was: %s', (_what, content) => {
    expect(readCatalogue(bytesOf(content), scan)).toBe('the file has another format');
  });

  it.each([
    ['cut in the middle of a list', text.slice(0, text.indexOf('9007'))],
    ['without its last list', text.slice(0, text.lastIndexOf('{"jsonrpc"'))],
    ['with a list that is no JSON', text.replace('"n":9007199254740993', '"n":')],
    ['with an error in the place of a list', text.replaceAll('"result"', '"error"')],
  ])('is told from one that was: %s', (_what, content) => {
    expect(readCatalogue(bytesOf(content), scan)).toBe('the file is damaged');
  });

  it('is any beginning of one, and reading it never throws', () => {
    const bytes = serialized();
    for (let length = 0; length < bytes.length; length += 1) {
      expect(typeof readCatalogue(bytes.subarray(0, length), scan)).toBe('string');
    }
  });
});
