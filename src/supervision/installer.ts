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
