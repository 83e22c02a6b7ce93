import type { Span } from '../json/json-text.js';
import { createSecretFinder } from './secret-forms.js';
import { findSecretShapes } from './secret-shapes.js';
import { type SecretSource, secretsOf } from './secret-values.js';

/** Removes secrets from a text before it enters a log. */
export type Redact = (text: string) => string;

const REDACTED = '[redacted]';

/** Collects secrets while the process runs: the log opens before the configuration is read. */
export class KnownSecrets {
  /** Secrets are never forgotten: output of a server can be logged long after its configuration has changed. */
  readonly #sources = new Map<string, SecretSource>();
  #redact = createRedactor([]);

  know(sources: readonly SecretSource[]): void {
    for (const { env, args } of sources) this.#sources.set(JSON.stringify([env, args]), { env, args });
    this.#redact = createRedactor([...this.#sources.values()]);
  }

  readonly redact: Redact = (text) => this.#redact(text);
}

/**
 * Returns a function that removes the secrets of these sources, as they are and in other forms, and every text that looks
 * like a secret.
 */
export function createRedactor(sources: readonly SecretSource[]): Redact {
  const findKnown = createSecretFinder(sources.flatMap(secretsOf));
  return (text) => {
    const spans = [...findKnown(text), ...findSecretShapes(text)];
    return spans.length === 0 ? text : withoutSpans(text, spans);
  };
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
