import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';
import type { DownstreamClient, Exchange } from '../../downstream/port.js';
import { toBytes } from '../../wire/json/json-text.js';
import type { Edit } from '../../wire/json/splice.js';
import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import type { Catalogs, Shadowed } from '../catalog/catalog.js';
import type { NamedView } from '../catalog/tool-policy.js';
import type { Backend } from '../registry/backend.js';

/** A tool of the gateway itself. Its name starts with `trunkline__`, which no server may use. */
export interface OwnTool {
  readonly name: string;
  /** The list entry as JSON. */
  readonly entry: Uint8Array;
  /** Whether the tool is listed for clients of these backends and this view. If absent, it is listed for all. */
  readonly isOffered?: (backends: Iterable<Backend>, named: NamedView | undefined) => boolean;
  /** Calls the tool. Never throws or rejects: errors are results with `isError`. `args` is unchecked client input. */
  call(args: unknown, visible: VisibleBackends, exchange: Exchange): CallToolResult | Promise<CallToolResult>;
}

export function createOwnTool(tool: Tool, call: OwnTool['call']): OwnTool {
  return { name: tool.name, entry: toBytes(JSON.stringify(tool)), call };
}

/** The tools that are listed for clients of these backends and this view. */
export function offeredOf(
  tools: readonly OwnTool[],
  backends: readonly Backend[],
  named: NamedView | undefined,
): readonly OwnTool[] {
  return tools.filter(({ isOffered }) => isOffered?.(backends, named) ?? true);
}

export function textResult(texts: string | readonly string[], isError = false): CallToolResult {
  const content = [texts].flat().map((text) => ({ type: 'text' as const, text }));
  return { content, ...(isError ? { isError } : {}) };
}

/** The servers and lists of a client that calls one of Trunkline's own tools. */
export interface VisibleBackends extends VisibleLists {
  readonly backends: ReadonlyMap<string, Backend>;
}

/** The lists that a client sees, and the reasons for their form. */
export interface VisibleLists {
  readonly catalogs: Catalogs;
  /** Skills that are not listed, because another server has a skill with the same URI. */
  readonly shadowedSkills?: readonly Shadowed[] | undefined;
  /** The view of the configuration that the client has; absent if it sees everything. `fault` is a sentence. */
  readonly named?: { readonly name: string; readonly fault?: string | undefined } | undefined;
  readonly revision?: string | undefined;
  /** The principal of the client that asks. Absent if the operator asks. */
  readonly principal?: string | undefined;
  /** Form of the tool list for the client. Absent if no client asks. */
  readonly decision?: { readonly mode: 'direct' | 'search'; readonly because: string } | undefined;
}

/** Cuts large results of tools, and keeps the whole of each for the client that got it. */
export interface ResultCutter {
  /** Returns a function that adds the cuts to the other edits of an answer; `undefined` if the result is never cut. */
  editor(
    exchange: Exchange,
    backend: Backend,
    tool: string | undefined,
    named: NamedView | undefined,
  ): ((response: ResponseEnvelope, others: readonly Edit[]) => readonly Edit[]) | undefined;
  /** Answers `resources/read` for the URI of a kept result. Returns false for every other URI. */
  serve(exchange: Exchange): boolean;
  /** Forgets the results of a client that has left. */
  left(client: DownstreamClient): void;
  close(): void;
}
