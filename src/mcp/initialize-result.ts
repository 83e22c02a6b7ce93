import { readText } from '../json/json-text.js';
import { isRecord } from '../json/json-value.js';
import type { ResponseEnvelope } from './envelope.js';

/** A server's answer to `initialize`. */
export interface InitializeResult {
  /** The result as JSON, verbatim. */
  readonly raw: Uint8Array;
  readonly protocolVersion: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly instructions: string | undefined;
  readonly serverInfo: ServerDescription;
  /** The version that the server gives itself. */
  readonly version: string | undefined;
}

/** A server's description of itself for people to read. The revisions before 2025-11-25 have no `description`. */
export interface ServerDescription {
  readonly title: string | undefined;
  readonly description: string | undefined;
}

/** Whether the server declared a capability, such as `tools` or `resources.subscribe`. */
export function declares(capabilities: InitializeResult['capabilities'], capability: string): boolean {
  let value: unknown = capabilities;
  for (const step of capability.split('.')) value = isRecord(value) ? value[step] : undefined;
  return value !== undefined && value !== null && value !== false;
}

/** Reads the answer to `initialize`. Returns what is wrong with it if it is not valid. */
export function readInitializeResult({ bytes, result, error }: ResponseEnvelope): InitializeResult | string {
  if (result === undefined) {
    const { code, message } = JSON.parse(readText(bytes, error ?? { start: 0, end: 0 })) as Record<string, unknown>;
    return `initialize: the server answered error ${inWords(code)}: ${inWords(message)}`;
  }
  return toInitializeResult(bytes.slice(result.start, result.end));
}

/** Reads the result of `initialize`. Returns what is wrong with it if it is not valid. */
export function toInitializeResult(raw: Uint8Array): InitializeResult | string {
  const value: unknown = JSON.parse(readText(raw, { start: 0, end: raw.length }));
  if (!isRecord(value)) return 'initialize: the result is not an object';
  const { protocolVersion, capabilities, instructions, serverInfo } = value;
  if (typeof protocolVersion !== 'string') return 'initialize: the result names no protocol version';
  return {
    raw,
    protocolVersion,
    capabilities: isRecord(capabilities) ? capabilities : {},
    instructions: textOf(instructions),
    serverInfo: describe(isRecord(serverInfo) ? serverInfo : {}),
    version: isRecord(serverInfo) ? textOf(serverInfo.version) : undefined,
  };
}

function describe({ title, description }: Readonly<Record<string, unknown>>): ServerDescription {
  return { title: textOf(title), description: textOf(description) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Any JSON value as text. */
function inWords(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'none');
}
