import { REMOVED, rewriteObject } from '../json/edit-members.js';
import { isObject, readText, type Span, toBytes, valuesAt } from '../json/json-text.js';
import { asText, isRecord, parseJson } from '../json/json-value.js';
import { join } from '../jsonrpc/message.js';
import type { ResponseEnvelope } from './envelope.js';
import { isModernRevision, MODERN_CODES, type ModernRevision } from './revisions.js';

export interface InitializeResult {
  /** The result as JSON, verbatim. */
  readonly raw: Uint8Array;
  readonly protocolVersion: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly instructions: string | undefined;
  readonly serverInfo: ServerDescription;
  /** Version that the server states about itself. */
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

/** Reads the answer to `initialize`. If it is not valid, returns the reason as a string. */
export function readInitializeResult({ bytes, result, error }: ResponseEnvelope): InitializeResult | string {
  if (result === undefined) {
    const { code = 'none', message = 'none' } = JSON.parse(readText(bytes, error ?? { start: 0, end: 0 })) as Record<
      string,
      unknown
    >;
    return `initialize: the server answered error ${asText(code)}: ${asText(message)}`;
  }
  return toInitializeResult(bytes.slice(result.start, result.end));
}

/** Reads the result of `initialize`. If it is not valid, returns the reason as a string. */
function toInitializeResult(raw: Uint8Array): InitializeResult | string {
  const value: unknown = JSON.parse(readText(raw, { start: 0, end: raw.length }));
  if (!isRecord(value)) return 'initialize: the result is not an object';
  const { protocolVersion, capabilities, instructions } = value;
  if (typeof protocolVersion !== 'string') return 'initialize: the result names no protocol version';
  const serverInfo = isRecord(value.serverInfo) ? value.serverInfo : {};
  return {
    raw,
    protocolVersion,
    capabilities: isRecord(capabilities) ? capabilities : {},
    instructions: textOf(instructions),
    serverInfo: { title: textOf(serverInfo.title), description: textOf(serverInfo.description) },
    version: textOf(serverInfo.version),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export interface DiscoverResult {
  /** The first of its revisions that the gateway knows; `undefined` if there is none. */
  readonly revision: ModernRevision | undefined;
  /** Identity of the server, as JSON; `undefined` if it is missing, too long or malformed. */
  readonly serverInfo: Uint8Array | undefined;
  /** The result in the form of `initialize` in that revision. */
  readonly asInitialize: InitializeResult;
}

/** Reads the answer to `server/discover`; `undefined` if it is an error or another result. */
export function readDiscoverResult({ bytes, result, tokens }: ResponseEnvelope): DiscoverResult | undefined {
  if (result === undefined || !isObject(bytes, result)) return undefined;
  const [versions] = valuesAt(bytes, result, ['supportedVersions']);
  const [capabilities] = valuesAt(bytes, result, ['capabilities']);
  if (versions === undefined || capabilities === undefined || !isObject(bytes, capabilities)) return undefined;
  const supported: unknown = parseJson(readText(bytes, versions));
  if (!Array.isArray(supported)) return undefined;
  const revision = knownIn(supported);
  const { resultServerInfo: info } = tokens;
  const [instructions] = valuesAt(bytes, result, ['instructions']);
  // Removes `tasks`, which would announce the tasks of 2025-11-25. In these revisions, tasks are an extension.
  const change = (name: string) => (name === 'tasks' ? REMOVED : undefined);
  const asInitialize = toInitializeResult(
    join([
      toBytes(`{"protocolVersion":${JSON.stringify(revision ?? null)},"capabilities":`),
      rewriteObject(bytes, capabilities, { change }),
      toBytes(',"serverInfo":'),
      info !== undefined && isObject(bytes, info) ? bytes.subarray(info.start, info.end) : UNNAMED,
      ...(instructions === undefined
        ? []
        : [toBytes(',"instructions":'), bytes.subarray(instructions.start, instructions.end)]),
      toBytes('}'),
    ]),
  );
  return typeof asInitialize === 'string'
    ? undefined
    : { revision, serverInfo: serverInfoOf(bytes, info), asInitialize };
}

/** Copies the identity of the server, because the memory of a response is reused soon. */
function serverInfoOf(bytes: Uint8Array, info: Span | undefined): Uint8Array | undefined {
  if (info === undefined || info.end - info.start > MAX_SERVER_INFO_BYTES) return undefined;
  const value = parseJson(readText(bytes, info));
  const isNamed = isRecord(value) && typeof value.name === 'string' && typeof value.version === 'string';
  return isNamed ? bytes.slice(info.start, info.end) : undefined;
}

/** Limit of the identity in bytes. It may contain icons, which are too large for the results of each call. */
const MAX_SERVER_INFO_BYTES = 4 * 1024;

/** Returns the modern revision that an error offers instead of the requested one; `undefined` for other errors. */
export function offeredRevision({ bytes, error }: ResponseEnvelope): ModernRevision | undefined {
  const value = error === undefined ? undefined : parseJson(readText(bytes, error));
  if (!isRecord(value) || value.code !== MODERN_CODES.unsupportedRevision || !isRecord(value.data)) return undefined;
  const { supported } = value.data;
  return Array.isArray(supported) ? knownIn(supported) : undefined;
}

function knownIn(versions: readonly unknown[]): ModernRevision | undefined {
  return versions.find(
    (version): version is ModernRevision => typeof version === 'string' && isModernRevision(version),
  );
}

/** Name of a server that states none, because an initialize result must have one. */
const UNNAMED = toBytes('{"name":"unnamed","version":"unknown"}');

/** Description of a client for a server: identity, capabilities and revision. */
export interface ClientProfile {
  readonly clientInfo: Readonly<Record<string, unknown>>;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** Revision to request in a handshake. The default is the latest revision with a handshake. */
  readonly protocolVersion?: string;
  /** The raw text of the two objects, because parsing changes large numbers and drops duplicate members. */
  readonly raw?: { readonly clientInfo: Uint8Array; readonly capabilities: Uint8Array } | undefined;
  /** The principal of the user to whom the process of this profile belongs. Its lists are cached for this user alone. */
  readonly principal?: string | undefined;
}

/** Makes the profile of a client from its identity and capabilities, as the client wrote them. */
export function profileOf<Revision extends string>(
  protocolVersion: Revision,
  raw: { readonly clientInfo: Uint8Array; readonly capabilities: Uint8Array },
): ClientProfile & { readonly protocolVersion: Revision } {
  const [clientInfo, capabilities] = [raw.clientInfo, raw.capabilities].map((object) => {
    return JSON.parse(readText(object, { start: 0, end: object.length })) as Record<string, unknown>;
  });
  return { protocolVersion, capabilities: capabilities ?? {}, clientInfo: clientInfo ?? {}, raw };
}

/**
 * Returns the same key for clients that a server cannot distinguish, whatever the order of their members.
 *
 * `principal` is the user behind the client, so that different users never share a process.
 */
export function profileKey({ clientInfo, capabilities, protocolVersion }: ClientProfile, principal: string): string {
  return JSON.stringify([principal, protocolVersion ?? null, sorted(capabilities), sorted(clientInfo)]);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const);
  // Uses pairs, so that no name, such as `__proto__`, has a special meaning.
  return members.sort(([a], [b]) => (a < b ? -1 : 1));
}
