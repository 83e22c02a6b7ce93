import type { Span } from '../json/json-text.js';
import { createSecretFinder } from './secret-forms.js';
import { findSecretShapes } from './secret-shapes.js';
import { type SecretSource, secretsOf } from './secret-values.js';

/** Removes secrets from a text before it enters a log. */
export type Redact = (text: string) => string;

/** Where secrets are in a text. */
export interface FoundSecrets {
  /** Those that the configuration or a client has told. */
  readonly known: readonly Span[];
  /** What only looks like a secret. */
  readonly likely: readonly Span[];
}

export type FindSecrets = (text: string) => FoundSecrets;

/** Stands where a secret was. */
export const REDACTED = '[redacted]';

/** A server may write a secret for a while after the last client that brought it has left. */
const MAX_OUTDATED = 256;

interface Known {
  readonly source: SecretSource;
  /** How many need the source to be known. */
  uses: number;
}

/** Collects secrets while the process runs: the log opens before the configuration is read. */
export class KnownSecrets {
  /** By their content. */
  readonly #sources = new Map<string, Known>();
  /** The sources that nothing needs any more, the longest outdated first. */
  readonly #outdated = new Set<string>();
  /** Absent after a change. */
  #find: FindSecrets | undefined;

  /** Secrets of the configuration are never forgotten: output can be logged long after the configuration has changed. */
  know(sources: readonly SecretSource[]): void {
    this.knowWhile(sources);
  }

  /** Knows secrets of some clients until the returned function is called, and the latest of them for longer. */
  knowWhile(sources: readonly SecretSource[]): () => void {
    const keys = sources.map((source) => this.#use(source));
    return () => {
      for (const key of keys.splice(0)) this.#leave(key);
    };
  }

  readonly find: FindSecrets = (text) => {
    this.#find ??= createFinder([...this.#sources.values()].map(({ source }) => source));
    return this.#find(text);
  };

  readonly redact: Redact = (text) => withoutSecrets(text, this.find(text));

  #use({ env, args }: SecretSource): string {
    const key = JSON.stringify([env, args]);
    const known = this.#sources.get(key) ?? { source: { env, args }, uses: 0 };
    if (known.uses === 0 && !this.#outdated.delete(key)) {
      this.#sources.set(key, known);
      this.#find = undefined;
    }
    known.uses += 1;
    return key;
  }

  #leave(key: string): void {
    const known = this.#sources.get(key);
    if (known === undefined) return;
    known.uses -= 1;
    if (known.uses > 0) return;
    this.#outdated.add(key);
    if (this.#outdated.size <= MAX_OUTDATED) return;
    const [oldest = key] = this.#outdated;
    this.#outdated.delete(oldest);
    this.#sources.delete(oldest);
    this.#find = undefined;
  }
}

/**
 * Returns a function that removes the secrets of these sources, as they are and in other forms, and every text that looks
 * like a secret.
 */
export function createRedactor(sources: readonly SecretSource[]): Redact {
  const find = createFinder(sources);
  return (text) => withoutSecrets(text, find(text));
}

function createFinder(sources: readonly SecretSource[]): FindSecrets {
  const findKnown = createSecretFinder(sources.flatMap(secretsOf));
  return (text) => ({ known: findKnown(text), likely: findSecretShapes(text) });
}

export function withoutSecrets(text: string, { known, likely }: FoundSecrets): string {
  const spans = [...known, ...likely];
  return spans.length === 0 ? text : withoutSpans(text, spans);
}

/** Spans that overlap are one: half of a secret must not remain because another one begins in it. */
function withoutSpans(text: string, spans: Span[]): string {
  spans.sort((a, b) => a.start - b.start);
  let clean = '';
  let position = 0;
  for (const { start, end } of spans) {
    if (start >= position) clean += text.slice(position, start) + REDACTED;
    position = Math.max(position, end);
  }
  return clean + text.slice(position);
}
