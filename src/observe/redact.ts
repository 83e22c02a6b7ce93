/** Removes secrets from a text before it enters a log. */
export type Redact = (text: string) => string;

const REDACTED = '[redacted]';

/** Values that can be secrets: variables, such as those of a server, and the arguments of a server. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

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
 * Returns a function that removes the values that servers get under names such as `API_KEY` or `--token`, the credentials in
 * the URLs that they get, and every text that has the form of a well-known token.
 */
export function createRedactor(sources: readonly SecretSource[]): Redact {
  // Longest first: a secret can contain another one.
  const known = [...new Set(sources.flatMap(knownSecrets))].sort((a, b) => b.length - a.length);
  return (text) => {
    let clean = text;
    for (const secret of known) clean = clean.replaceAll(secret, REDACTED);
    clean = clean.replace(TOKEN_SHAPES, REDACTED);
    for (const shape of NAMED_VALUES) clean = clean.replace(shape, `$1${REDACTED}`);
    return clean;
  };
}

/** Shorter values would remove harmless words from every line. */
const SHORTEST_SECRET = 6;

const SECRET_NAME =
  /key|token|secret|passw|pwd|auth|cred|cookie|session|private|dsn|connection|bearer|webhook|(?:^|[_-])pat(?:$|[_-])/i;

/** Values that are most likely generated: long hexadecimal numbers, and long mixtures of letters and digits. */
const RANDOM_VALUE =
  /^(?:[0-9a-f]{32,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w.~+=-]{20,512})$/;

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
    String.raw`\beyJ[\w-]{8,512}\.[\w-]{8,}\.[\w-]*`,
  ].join('|'),
  'g',
);

/**
 * Text before a secret in a log: `Bearer …`, `password=…`, `--token …`, `"apiKey": "…"`, and the user part of a URL. A
 * hostile server can write the line, so each repetition is bounded; otherwise the time to scan a long line would grow with
 * its square.
 */
const NAMED_VALUES: readonly RegExp[] = [
  /(\bbearer\s+)[\w.~+/=-]{8,}/gi,
  /(\bauthorization["']?\s*[:=]\s*["']?basic\s+)[\w+/=-]{4,}/gi,
  /((?:password|passwd|secret|token|api[_-]?key)["']?\s{0,8}[=:]\s{0,8}["']?)[^\s"',;]{4,}/gi,
  /(--[\w-]{0,32}?(?:password|passwd|secret|token|api[_-]?key)\s{1,8}["']?)(?!-)[^\s"',;]{4,}/gi,
  /(:\/\/[^\s/:@]{0,256}:)[^\s/@]{1,1024}(?=@)/gi,
];

function isLongEnough(secret: string): boolean {
  return secret.length >= SHORTEST_SECRET;
}

function knownSecrets({ env, args }: SecretSource): string[] {
  const isSecret = (name: string, value: string) => SECRET_NAME.test(name) || RANDOM_VALUE.test(value);
  const fromEnv = Object.entries(env).flatMap(([name, value]) => (isSecret(name, value) ? [value] : []));
  const fromArgs = args.flatMap((arg, index) => {
    const [flag = '', value] = arg.split(/=(.*)/s, 2);
    if (value !== undefined) return isSecret(flag, value) ? [value] : [];
    const before = args[index - 1] ?? '';
    const isNamed = before.startsWith('-') && !before.includes('=') && SECRET_NAME.test(before);
    return isNamed || RANDOM_VALUE.test(arg) ? [arg] : [];
  });
  const fromUrls = [...Object.values(env), ...args].flatMap(credentialsInUrls);
  // A log consists of lines, so a secret of several lines is matched line by line.
  const pieces = [...fromEnv, ...fromArgs, ...fromUrls].flatMap((value) => value.split(/\r?\n/)).filter(isLongEnough);
  return pieces.flatMap((piece) => [piece, JSON.stringify(piece).slice(1, -1), urlEncoded(piece)]);
}

/** The part of a URL before the host. It ends at the last `@`, since a password in a variable is not always encoded. */
const USER_INFO = /:\/\/([^\s/?#]*)@/g;

/** The passwords in URLs, as written, decoded, and as in a header with the user. A user alone counts if it looks random. */
function credentialsInUrls(value: string): string[] {
  return [...value.matchAll(USER_INFO)].flatMap(([, userInfo = '']) => {
    const [user = '', password = ''] = userInfo.split(/:(.*)/s, 2);
    if (password === '') return RANDOM_VALUE.test(user) ? [user] : [];
    return [password, percentDecoded(password), Buffer.from(percentDecoded(userInfo)).toString('base64')];
  });
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A `%` that is no escape.
    return text;
  }
}

/** The form of the text in a URL. */
function urlEncoded(text: string): string {
  return new URLSearchParams({ text }).toString().slice('text='.length).replaceAll('+', '%20');
}
