/** The legacy revisions: those that begin with `initialize`. Newest first. */
export const LEGACY_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const;

export type LegacyRevision = (typeof LEGACY_REVISIONS)[number];

/** What we offer to a child, and answer a client that names a revision we do not know. */
export const LATEST_LEGACY_REVISION: LegacyRevision = LEGACY_REVISIONS[0];

export function isLegacyRevision(version: string): version is LegacyRevision {
  return (LEGACY_REVISIONS as readonly string[]).includes(version);
}

/** The revision that `initialize` is answered with: the client's own, or else our latest. */
export function negotiateRevision(requested: string | undefined): LegacyRevision {
  return requested !== undefined && isLegacyRevision(requested) ? requested : LATEST_LEGACY_REVISION;
}

/** Whether who speaks this revision knows of tasks. */
export function knowsTasks(revision: string | undefined): boolean {
  return revision !== undefined && !isOlder(revision, '2025-11-25');
}

/** Whether a revision came before another. They are dates, and sort as such. */
export function isOlder(revision: string, than: string): boolean {
  return revision < than;
}
