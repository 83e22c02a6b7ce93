import type { ChildSpec } from './child-spec.js';

/** Installs the packages that children need before they can be launched. */
export interface Installer {
  /** Installs the package that the spec has as `missing`. Returns at once and never throws. */
  install(spec: ChildSpec): Installing;
}

export interface Installing {
  /** Never rejects. */
  readonly outcome: Promise<InstallOutcome>;
  /** Cancels the installation. Its outcome is ignored from now on. */
  cancel(): void;
}

export type InstallOutcome =
  /** The complete spec to launch. */
  { readonly kind: 'installed'; readonly spec: ChildSpec } | { readonly kind: 'failed'; readonly reason: string };
