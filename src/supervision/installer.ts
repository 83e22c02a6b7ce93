import type { ChildSpec } from './child-spec.js';

/** An npm package that a child runs. */
export interface PackageRequest {
  /** As the configuration spells it; what people are shown. */
  readonly shown: string;
  readonly name: string;
  /** The one version that will do; absent when any will. */
  readonly version: string | undefined;
  /** Which of its programs to run, when it has several. */
  readonly bin: string | undefined;
  /** Whether the packages may run programs of their own while they are installed. */
  readonly installScripts: boolean;
  /** How long the installation may take, not counting the wait for others. */
  readonly budgetMs: number;
}

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
