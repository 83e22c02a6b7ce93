import { RPC_CODES } from '../jsonrpc/message.js';

/**
 * The revisions in which a session begins with `initialize`, latest first. The last is a draft of 2024-11-05, which the official SDK
 * accepts, and some servers and clients name.
 */
export const LEGACY_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'] as const;

export type LegacyRevision = (typeof LEGACY_REVISIONS)[number];

/** The revisions without a handshake, latest first. Each request names its revision in `_meta`. */
export const MODERN_REVISIONS = ['2026-07-28'] as const;

export type ModernRevision = (typeof MODERN_REVISIONS)[number];

export function isModernRevision(version: string): version is ModernRevision {
  return (MODERN_REVISIONS as readonly string[]).includes(version);
}

/** Whether a client of this revision has a handshake. True for a client without a known revision. */
export function hasHandshake(revision: string | undefined): boolean {
  return revision === undefined || !isModernRevision(revision);
}

/** The revision that the gateway offers to servers, and to clients that request an unknown one. */
export const LATEST_LEGACY_REVISION: LegacyRevision = LEGACY_REVISIONS[0];

export function isLegacyRevision(version: string): version is LegacyRevision {
  return (LEGACY_REVISIONS as readonly string[]).includes(version);
}

/** Returns the revision for the answer to `initialize`: the requested one if it is known, otherwise the latest. */
export function negotiateRevision(requested: string | undefined): LegacyRevision {
  return requested !== undefined && isLegacyRevision(requested) ? requested : LATEST_LEGACY_REVISION;
}

/** Whether the revision itself defines tasks. Earlier revisions have none, and in later ones they are an extension. */
export function knowsTasks(revision: string | undefined): boolean {
  return revision === '2025-11-25';
}

/** First revision with links to resources among content blocks. */
const LINKS_SINCE = '2025-06-18';

/** Whether a client of this revision knows only some types of content blocks. Such clients may reject a whole result. */
export function knowsOldContentOnly(revision: string | undefined): revision is string {
  return revision !== undefined && isOlder(revision, LINKS_SINCE);
}

/**
 * The code of the error for a resource that does not exist. See "Error Handling" on the page server/resources of each
 * revision of the MCP specification: -32002 up to 2025-11-25, -32602 (invalid params) from 2026-07-28 on. Clients of later
 * revisions should accept both; clients of earlier ones know -32002 only.
 */
export function resourceNotFoundCode(revision: string | undefined): number {
  return revision === undefined || isOlder(revision, '2026-07-28') ? -32002 : RPC_CODES.invalidParams;
}

/** Whether a revision is older than another one. Revisions are dates, which sort as texts. */
export function isOlder(revision: string, than: string): boolean {
  return revision < than;
}

/** The error codes of revision 2026-07-28 that go with the status 400 over HTTP. */
export const MODERN_CODES = { headerMismatch: -32020, missingCapability: -32021, unsupportedRevision: -32022 } as const;
