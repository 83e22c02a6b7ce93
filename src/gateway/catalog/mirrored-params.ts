import type { MirroredParam } from '../../downstream/port.js';
import { readText } from '../../json/json-text.js';

const ANNOTATION = 'x-mcp-header';
/** The name of an HTTP header (RFC 9110, section 5.1). */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
const PRIMITIVES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);

/**
 * The parameters of a tool that clients repeat in headers. See "Custom Headers from Tool Parameters" on the page
 * basic/transports/streamable-http of revision 2026-07-28. With an annotation that breaks its rules, clients do not show
 * the tool, and repeat nothing.
 */
export function mirroredParams(tool: Uint8Array): readonly MirroredParam[] {
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

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
