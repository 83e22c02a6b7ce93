import type { CatalogueContent } from '../gateway/registry/backend.js';
import type { ListSource } from '../upstream/upstream-connection.js';
import { toBytes } from '../wire/json/json-text.js';
import { isRecord, parseJson } from '../wire/json/json-value.js';
import { join, jsonArray } from '../wire/jsonrpc/message.js';
import type { ResponseEnvelope, ScanEnvelope } from '../wire/mcp/envelope.js';
import { declares, readInitializeResult } from '../wire/mcp/handshake.js';
import { LIST_KINDS, LISTS, type ListKind } from '../wire/mcp/methods.js';

/** Version of the file format. Increase it when the meaning of the lines changes. */
const FORMAT = 1;

/**
 * Serializes a catalogue for the cache. The first line names the format and the kinds of lists. The next lines are
 * JSON-RPC responses: the one to `initialize`, then one for each list, with all entries on one page.
 */
export function serializeCatalogue({ initializeResult, lists }: CatalogueContent): Uint8Array {
  const kinds = LIST_KINDS.filter((kind) => lists.has(kind));
  const head = toBytes(`${JSON.stringify({ format: FORMAT, lists: kinds })}\n`);
  const answers = kinds.map((kind) => {
    const entries = (lists.get(kind) ?? []).map(({ bytes }) => bytes);
    return answer([toBytes(`{"${LISTS[kind].member}":`), jsonArray(entries), toBytes('}')]);
  });
  return join([head, answer([initializeResult]), ...answers]);
}

function answer(result: readonly Uint8Array[]): Uint8Array {
  return join([toBytes('{"jsonrpc":"2.0","id":0,"result":'), ...result, toBytes('}\n')]);
}

/** Reads a catalogue that `serializeCatalogue` wrote. Returns the reason as a string if the bytes cannot be used. */
export function readCatalogue(bytes: Uint8Array, scan: ScanEnvelope): ListSource | string {
  const [head, initialize, ...lists] = linesOf(bytes);
  const kinds = head === undefined ? undefined : readKinds(head);
  if (kinds === undefined || initialize === undefined) return 'the file has another format';
  const initializeResult = readAnswer(initialize, scan);
  if (initializeResult === undefined) return 'the file is damaged';
  const handshake = readInitializeResult(initializeResult);
  if (typeof handshake === 'string') return handshake;
  const answers = new Map<string, ResponseEnvelope>();
  for (const [index, kind] of kinds.entries()) {
    const line = lists[index];
    const response = line === undefined ? undefined : readAnswer(line, scan);
    if (response === undefined) return 'the file is damaged';
    answers.set(LISTS[kind].method, response);
  }
  const { protocolVersion: revision, capabilities, instructions, serverInfo } = handshake;
  return {
    revision,
    capabilities,
    instructions,
    serverInfo,
    offers: (capability) =>
      declares(capabilities, capability) || kinds.some((kind) => LISTS[kind].capability === capability),
    request: async (method) => {
      const response = answers.get(method);
      return response === undefined
        ? { kind: 'failed', reason: 'response_malformed', sent: false }
        : { kind: 'answered', response, at: 0 };
    },
  };
}

function readAnswer(line: Uint8Array, scan: ScanEnvelope): ResponseEnvelope | undefined {
  const message = scan(line);
  return message.kind === 'response' && message.result !== undefined ? message : undefined;
}

function readKinds(line: Uint8Array): readonly ListKind[] | undefined {
  const head = parseJson(new TextDecoder().decode(line));
  if (!isRecord(head)) return undefined;
  const { format, lists } = head;
  return format === FORMAT && Array.isArray(lists) ? LIST_KINDS.filter((kind) => lists.includes(kind)) : undefined;
}

function linesOf(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return lines;
}
