/** Values that can be secrets: variables, such as those of a server, and the arguments of a server. */
export interface SecretSource {
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/** Shorter values would remove harmless words from every line. */
export const SHORTEST_SECRET = 6;

const SECRET_NAME =
  /key|token|secret|passw|pwd|auth|cred|cookie|session|private|dsn|connection|bearer|webhook|(?:^|[_-])pat(?:$|[_-])/i;

/** Values that are most likely generated: long hexadecimal numbers, and long mixtures of letters and digits. */
const RANDOM_VALUE =
  /^(?:[0-9a-f]{32,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w.~+=-]{20,512})$/;

/** The values that servers get under names such as `API_KEY` or `--token`, and the credentials in the URLs that they get. */
export function secretsOf({ env, args }: SecretSource): string[] {
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
  const lines = [...fromEnv, ...fromArgs, ...fromUrls].flatMap((value) => value.split(/\r?\n/));
  return lines.filter((line) => line.length >= SHORTEST_SECRET);
}

/** The part of a URL before the host. It ends at the last `@`, since a password in a variable is not always encoded. */
const USER_INFO = /:\/\/([^\s/?#]*)@/g;

/** The passwords in URLs, as written, decoded, and with the user, as in a header. A user alone counts if it looks random. */
function credentialsInUrls(value: string): string[] {
  return [...value.matchAll(USER_INFO)].flatMap(([, userInfo = '']) => {
    const [user = '', password = ''] = userInfo.split(/:(.*)/s, 2);
    if (password === '') return RANDOM_VALUE.test(user) ? [user] : [];
    return [password, percentDecoded(password), percentDecoded(userInfo)];
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
