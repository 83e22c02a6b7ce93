import { readText } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { METHODS } from './methods.js';

/*
 * Parts of a request that headers repeat over HTTP, from revision 2026-07-28 on, so that a proxy can route a request without
 * reading its body. See "Request Metadata" on the page basic/transports/streamable-http.
 */

/** The member of `params` that the header `Mcp-Name` repeats, by method. */
export const MIRRORED_NAMES: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  [METHODS.callTool, 'name'],
  [METHODS.getPrompt, 'name'],
  [METHODS.readResource, 'uri'],
  [METHODS.getTask, 'taskId'],
  [METHODS.updateTask, 'taskId'],
  [METHODS.cancelTask, 'taskId'],
]);

/** A parameter that a client repeats in a header (`x-mcp-header` on the page basic/transports/streamable-http of 2026-07-28). */
export interface MirroredParam {
  /** Name of the header without `Mcp-Param-`. */
  readonly header: string;
  /** Path of the value in the arguments: names of members, outermost first. */
  readonly path: readonly string[];
}

const ANNOTATION = 'x-mcp-header';
/** The name of an HTTP header (RFC 9110, section 5.1). */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
const PRIMITIVES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/**
 * The parameters of a tool that clients repeat in headers. See "Custom Headers from Tool Parameters" on the page
 * basic/transports/streamable-http of revision 2026-07-28. With an annotation that breaks its rules, clients do not show
 * the tool, and repeat nothing.
 */
export function mirroredParams(tool: Uint8Array | undefined): readonly MirroredParam[] {
  if (tool === undefined) return NONE;
  const text = readText(tool, { start: 0, end: tool.length });
  if (!text.includes(ANNOTATION)) return NONE;
  const { inputSchema } = JSON.parse(text) as { readonly inputSchema?: unknown };
  const found = annotatedIn(inputSchema, []);
  const names = new Set(found.map(({ header }) => header.toLowerCase()));
  return names.size === found.length && found.every(({ header }) => HEADER_NAME.test(header)) ? found : NONE;
}

const NONE: readonly MirroredParam[] = [];

/** Only chains of `properties` count, so that the value is at one place of the arguments. */
function annotatedIn(schema: unknown, path: readonly string[]): readonly MirroredParam[] {
  if (!isRecord(schema)) return NONE;
  const { [ANNOTATION]: header, type, properties } = schema;
  const own = typeof header === 'string' && PRIMITIVES.has(type) && path.length > 0 ? [{ header, path }] : NONE;
  if (!isRecord(properties)) return own;
  return [...own, ...Object.entries(properties).flatMap(([name, inner]) => annotatedIn(inner, [...path, name]))];
}
