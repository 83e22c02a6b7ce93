/** Takes secrets out of a text that is about to enter a log. */
export type Redact = (text: string) => string;

/** What a secret is replaced by. */
const REDACTED = '[redacted]';

/** Where secrets may be known from: what a server's entry of the configuration gives to its process. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/**
 * Removes the values that the configuration hands to servers under names such as `API_KEY` or `--token`, and
 * whatever has the shape of a well-known token.
 */
export function createRedactor(sources: readonly SecretSource[]): Redact {
  // Longest first, so that a secret that contains another goes as a whole.
  const known = [...new Set(sources.flatMap(knownSecrets))].sort((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const secret of known) clean = clean.replaceAll(secret, REDACTED);
    clean = clean.replace(TOKEN_SHAPES, REDACTED);
    for (const shape of NAMED_VALUES) clean = clean.replace(shape, `$1${REDACTED}`);
    return clean;
  };
}

/** Shorter values would take harmless words out of every line. */
const SHORTEST_SECRET = 6;

const SECRET_NAME = /key|token|secret|passw|pwd|auth|cred|cookie|session|private|dsn|connection/i;

const TOKEN_SHAPES = new RegExp(
  [
    String.raw`\b(?:sk|pk|rk)-[\w-]{16,}`,
    String.raw`\bgh[oprsu]_\w{20,}`,
    String.raw`\bgithub_pat_\w{20,}`,
    String.raw`\bglpat-[\w-]{16,}`,
    String.raw`\bxox[abeoprs]-[\w-]{10,}`,
    String.raw`\bA(?:KIA|SIA)[A-Z0-9]{16}\b`,
    String.raw`\bAIza[\w-]{30,}`,
    String.raw`\bnpm_\w{30,}`,
    String.raw`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`,
  ].join('|'),
  'g',
);

/** What stands before a secret in a log: `Bearer …`, `password=…`, `"apiKey": "…"`, and the user part of a URL. */
const NAMED_VALUES: readonly RegExp[] = [
  /(\bbearer\s+)[\w.~+/=-]{8,}/gi,
  /(\bauthorization["']?\s*[:=]\s*["']?basic\s+)[\w+/=-]{4,}/gi,
  /(\b[\w-]*(?:password|passwd|secret|token|api[_-]?key)["']?\s*[=:]\s*["']?)[^\s"',;]{4,}/gi,
  /(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi,
];

function isLongEnough(secret: string): boolean {
  return secret.length >= SHORTEST_SECRET;
}

function knownSecrets({ env, args }: SecretSource): string[] {
  const fromEnv = Object.entries(env).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []));
  const fromArgs = args.flatMap((arg, index) => {
    const [flag = '', value] = arg.split(/=(.*)/s, 2);
    if (value !== undefined) return SECRET_NAME.test(flag) ? [value] : [];
    const before = args[index - 1] ?? '';
    return before.startsWith('-') && !before.includes('=') && SECRET_NAME.test(before) ? [arg] : [];
  });
  // A log has lines, and so a secret of several lines comes in as many pieces.
  return [...fromEnv, ...fromArgs].flatMap((value) => value.split(/\r?\n/)).filter(isLongEnough);
}
