/*
 * Rules on calls. This file has their form; `request-rules.ts` decides about a request, with the values at paths into arguments
 * (`argument-values.ts`) and the spellings of a text (`spellings.ts`). Only a configuration with rules loads those.
 */

/** The lists of a rule: of names of tools, of URIs and of names of prompts. */
export const RULED = ['tools', 'uris', 'prompts'] as const;

export type Ruled = (typeof RULED)[number];

/**
 * A rule of the configuration on the calls of tools, the reading of resources, or the requests of prompts. The schema has checked it.
 */
export interface CallRule {
  /** Exactly one of these three lists is there. */
  readonly tools?: readonly string[];
  readonly uris?: readonly string[];
  readonly prompts?: readonly string[];
  /** Globs for the values of arguments, by paths such as `files[].path`. `null` stands for a missing value. */
  readonly args?: Readonly<Record<string, readonly (string | number | boolean | null)[]>>;
  /** The key `then` of the file. */
  readonly verdict: 'allow' | 'ask' | 'deny';
  /** The reason that a client gets, and the person who is asked. */
  readonly say?: string;
  /** The place of the rule in the configuration, such as `servers.files.rules[0]`. */
  readonly at: string;
}
