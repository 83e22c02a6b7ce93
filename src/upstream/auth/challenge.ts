/** One authentication scheme that a server offers in `WWW-Authenticate` (RFC 9110, section 11.6.1). */
export interface AuthChallenge {
  /** In lower case. */
  readonly scheme: string;
  /** Parameters by lower-case names. */
  readonly params: Readonly<Record<string, string>>;
}

// Matches a parameter, the name of a scheme, or other text, such as the credentials of another scheme.
const PART =
  /[\s,]*(?:([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))|(?=[\s,]|$))|"(?:[^"\\]|\\.)*"|[^\s,]+)/y;
const MAX_LENGTH = 16 * 1024;

/** Reads the challenges of all `WWW-Authenticate` headers of a response. Skips other text. */
function parseChallenges(headers: readonly string[]): readonly AuthChallenge[] {
  const challenges: AuthChallenge[] = [];
  let params: Record<string, string> = Object.create(null);
  for (const header of headers) {
    const text = header.slice(0, MAX_LENGTH);
    PART.lastIndex = 0;
    for (let match = PART.exec(text); match !== null; match = PART.exec(text)) {
      const [, name, quoted, plain] = match;
      if (name === undefined) continue;
      const value = quoted?.replace(/\\(.)/g, '$1') ?? plain;
      if (value === undefined) {
        params = Object.create(null);
        challenges.push({ scheme: name.toLowerCase(), params });
      } else {
        params[name.toLowerCase()] ??= value;
      }
    }
  }
  return challenges;
}

/** Returns the first challenge with the scheme `Bearer` or `DPoP`, because OAuth can answer it. */
export function oauthChallenge(headers: readonly string[]): AuthChallenge | undefined {
  return parseChallenges(headers).find(({ scheme }) => scheme === 'bearer' || scheme === 'dpop');
}

/** Returns the scopes in a text, each once. */
export function scopesIn(text: string | undefined): string[] {
  return [...new Set((text ?? '').split(/\s+/).filter((scope) => scope !== ''))];
}
