import type { Span } from '../json/json-text.js';
import { findSecretShapes } from './secret-shapes.js';
import { createSecretFinder, type SecretSource, secretValuesIn } from './secret-values.js';

/** Removes secrets from a text before it enters a log. */
export type Redact = (text: string) => string;

/** Positions of the secrets in a text. */
export interface FoundSecrets {
  /** Values of the configuration or of a client. */
  readonly known: readonly Span[];
  /** Texts that only look like secrets. */
  readonly likely: readonly Span[];
}

export type FindSecrets = (text: string) => FoundSecrets;

/** Replaces each secret. */
export const REDACTED = '[redacted]';

/** Sources that stay known after their last use, because a server may still write a secret of a client that has left. */
const MAX_OUTDATED = 256;

interface Known {
  readonly source: SecretSource;
  /** Number of users that have not released the source. */
  uses: number;
}

/** Collects secrets while the process runs: the log opens before the configuration is read. */
export class KnownSecrets {
  /** By their content. */
  readonly #sources = new Map<string, Known>();
  /** Keys of the sources without users, the longest outdated first. */
  readonly #outdated = new Set<string>();
  /** Absent after a change. */
  #find: FindSecrets | undefined;

  /** Adds secrets for good, because output can be logged long after the configuration has changed. */
  know(sources: readonly SecretSource[]): void {
    this.knowWhile(sources);
  }

  /** Adds secrets of clients until the returned function is called. The latest `MAX_OUTDATED` sources stay longer. */
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

/** Returns a function that removes the secrets of these sources and every text that looks like a secret. */
export function createRedactor(sources: readonly SecretSource[]): Redact {
  const find = createFinder(sources);
  return (text) => withoutSecrets(text, find(text));
}

function createFinder(sources: readonly SecretSource[]): FindSecrets {
  const findKnown = createSecretFinder(sources.flatMap(secretValuesIn));
  return (text) => ({ known: findKnown(text), likely: findSecretShapes(text) });
}

export function withoutSecrets(text: string, { known, likely }: FoundSecrets): string {
  const spans = [...known, ...likely];
  return spans.length === 0 ? text : withoutSpans(text, spans);
}

/** Merges overlapping spans, because half of a secret must not remain where another one begins in it. */
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
