import { toBytes } from '../../json/json-text.js';
import { join } from '../../jsonrpc/message.js';
import type { ResponseEnvelope, ScanEnvelope } from '../../mcp/envelope.js';
import { declares, type InitializeResult, readInitializeResult } from '../../mcp/initialize-result.js';
import { LIST_KINDS, LISTS, type ListKind } from '../../mcp/lists.js';
import type { RawEntry, SendRequest } from './list-pages.js';

/** Changes with what the lines mean. */
const FORMAT = 1;

/** What a child said of itself and offers, in its own spelling. */
export interface CatalogueContent {
  readonly initializeResult: Uint8Array;
  readonly lists: ReadonlyMap<ListKind, readonly RawEntry[]>;
}

/**
 * What is kept of a child for the next run: a line that says which format it is, the answer to `initialize`, and the
 * answers for its lists, each on one page.
 */
export function serializeCatalogue({ initializeResult, lists }: CatalogueContent): Uint8Array {
  const kinds = LIST_KINDS.filter((kind) => lists.has(kind));
  const head = toBytes(`${JSON.stringify({ format: FORMAT, lists: kinds })}\n`);
  const answers = kinds.map((kind) => {
    const entries = (lists.get(kind) ?? []).flatMap(({ bytes, span }, index) => [
      toBytes(index === 0 ? '' : ','),
      bytes.subarray(span.start, span.end),
    ]);
    return answer([toBytes(`{"${LISTS[kind].member}":[`), ...entries, toBytes(']}')]);
  });
  return join([head, answer([initializeResult]), ...answers]);
}

function answer(result: readonly Uint8Array[]): Uint8Array {
  return join([toBytes('{"jsonrpc":"2.0","id":0,"result":'), ...result, toBytes('}\n')]);
}

/**
 * A child of an earlier run, as far as it was kept: it answers for its lists, and what it answers goes through the same
 * checks as the words of a child that is there. A file is no more to be trusted than a server.
 */
export class CachedCatalogue {
  readonly capabilities: InitializeResult['capabilities'];
  readonly instructions: string | undefined;
  readonly ask: SendRequest;

  private constructor(
    { capabilities, instructions }: InitializeResult,
    answers: ReadonlyMap<string, ResponseEnvelope>,
  ) {
    this.capabilities = capabilities;
    this.instructions = instructions;
    this.ask = (method) => {
      const response = answers.get(method);
      return Promise.resolve(
        response === undefined
          ? { kind: 'failed', reason: 'response_malformed', sent: false }
          : { kind: 'answered', response, at: 0 },
      );
    };
  }

  /** The child that was kept in these bytes, or what is wrong with them. */
  static read(bytes: Uint8Array, scan: ScanEnvelope): CachedCatalogue | string {
    const [head, hello, ...lists] = linesOf(bytes);
    const kinds = head === undefined ? undefined : readKinds(head);
    if (kinds === undefined || hello === undefined) return 'it is of another format';
    const initializeResult = readAnswer(hello, scan);
    if (initializeResult === undefined) return 'it is broken';
    const said = readInitializeResult(initializeResult);
    if (typeof said === 'string') return said;
    const answers = new Map<string, ResponseEnvelope>();
    for (const [index, kind] of kinds.entries()) {
      const line = lists[index];
      const response = line === undefined ? undefined : readAnswer(line, scan);
      if (response === undefined) return 'it is broken';
      answers.set(LISTS[kind].method, response);
    }
    return new CachedCatalogue(said, answers);
  }

  offers(capability: string): boolean {
    return declares(this.capabilities, capability);
  }
}

function readAnswer(line: Uint8Array, scan: ScanEnvelope): ResponseEnvelope | undefined {
  const message = scan(line);
  return message.kind === 'response' && message.result !== undefined ? message : undefined;
}

function readKinds(line: Uint8Array): readonly ListKind[] | undefined {
  let head: unknown;
  try {
    head = JSON.parse(new TextDecoder().decode(line));
  } catch {
    return undefined;
  }
  if (typeof head !== 'object' || head === null) return undefined;
  const { format, lists } = head as { readonly format?: unknown; readonly lists?: unknown };
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
