import { readText } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import { subschemasOf } from './entry-check.js';
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

export interface MirroredParams {
  readonly params: readonly MirroredParam[];
  /** The rule that an annotation breaks, as a clause. Clients do not show the tool over HTTP then, and repeat nothing. */
  readonly fault?: string;
}

const ANNOTATION = 'x-mcp-header';
/** The name of an HTTP header (RFC 9110, section 5.1). */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
const PRIMITIVES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/**
 * Finds the parameters of a tool that clients repeat in headers, and checks the annotations. See "Custom Headers from Tool
 * Parameters" on the page basic/transports/streamable-http of revision 2026-07-28.
 */
export function readMirroredParams(tool: Uint8Array): MirroredParams {
  const text = readText(tool, { start: 0, end: tool.length });
  if (!text.includes(ANNOTATION)) return NONE;
  const { inputSchema } = JSON.parse(text) as { readonly inputSchema?: unknown };
  const found = annotatedIn(inputSchema, []);
  const fault = faultOf(found, countAnnotations(inputSchema));
  if (fault !== undefined) return { params: [], fault: `${ANNOTATION} ${fault}` };
  return { params: found.map(({ header, path }) => ({ header: String(header), path })) };
}

const NONE: MirroredParams = { params: [] };

interface Annotated {
  readonly header: unknown;
  readonly type: unknown;
  readonly path: readonly string[];
}

function faultOf(found: readonly Annotated[], count: number): string | undefined {
  if (count > found.length) return 'stands on a value that is not reached by properties alone';
  if (!found.every(({ header }) => typeof header === 'string' && HEADER_NAME.test(header)))
    return 'is no name of a header';
  if (!found.every(({ type }) => PRIMITIVES.has(type)))
    return 'stands on a type other than string, integer and boolean';
  const names = new Set(found.map(({ header }) => String(header).toLowerCase()));
  return names.size < found.length ? 'has one name twice' : undefined;
}

/** Finds the annotations along chains of `properties`, because only there a value has one position in the arguments. */
function annotatedIn(schema: unknown, path: readonly string[]): readonly Annotated[] {
  if (!isRecord(schema)) return [];
  const { [ANNOTATION]: header, type, properties } = schema;
  const own = header !== undefined && path.length > 0 ? [{ header, type, path }] : [];
  if (!isRecord(properties)) return own;
  return [...own, ...Object.entries(properties).flatMap(([name, inner]) => annotatedIn(inner, [...path, name]))];
}

function countAnnotations(schema: unknown): number {
  if (!isRecord(schema)) return 0;
  const own = schema[ANNOTATION] === undefined ? 0 : 1;
  return subschemasOf(schema).reduce<number>((count, inner) => count + countAnnotations(inner), own);
}
