import type { ChildSpec } from './child-spec.js';

/** How the supervisor gets what a child needs before it can be launched. */
export interface Installer {
  /** Installs what the spec says is `missing`. Returns at once and never throws. */
  install(spec: ChildSpec): Installing;
}

export interface Installing {
  /** Never rejects. */
  readonly outcome: Promise<InstallOutcome>;
  /** The child does not want it any more; the outcome is of no interest from now on. */
  cancel(): void;
}

export type InstallOutcome =
  /** What to launch: a spec that lacks nothing. */
  { readonly kind: 'installed'; readonly spec: ChildSpec } | { readonly kind: 'failed'; readonly reason: string };
