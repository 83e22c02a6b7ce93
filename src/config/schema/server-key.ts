export const SERVER_KEY_MAX_LENGTH = 24;
/** The form of a key. Excludes `__`, which separates the key from the tool in an exposed name. Also excludes `__proto__`. */
export const SERVER_KEY_PATTERN = /^[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*$/;

// Windows reserves these names for devices in every folder and with every extension.
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)$/i;

/** The reason why a server's key is invalid, or `undefined` if it is valid. */
export function serverKeyFault(key: string): string | undefined {
  if (key.length > SERVER_KEY_MAX_LENGTH) {
    return `this key has ${key.length} characters; expected at most ${SERVER_KEY_MAX_LENGTH}, because tool names start with the key`;
  }
  if (!SERVER_KEY_PATTERN.test(key))
    return 'this is not a valid server key; expected letters and digits, with single - or _ between them';
  if (key.toLowerCase() === 'trunkline') {
    return "this key is reserved for Trunkline's own tools, such as trunkline__status; choose another key";
  }
  if (DEVICE_NAME.test(key)) {
    return 'this key is the name of a device on Windows, and Trunkline names files after keys; choose another key';
  }
  return undefined;
}

/** A valid key made of the words of an invalid one; `undefined` if that is not possible. */
export function usableServerKey(key: string): string | undefined {
  const words = key.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const candidate = words.join('-').slice(0, SERVER_KEY_MAX_LENGTH).replace(/-$/, '');
  return serverKeyFault(candidate) === undefined ? candidate : undefined;
}

/** Pairs of keys that differ only in upper and lower case, the later key first. */
export function sameButForCase(keys: Iterable<string>): (readonly [later: string, earlier: string])[] {
  const seen = new Map<string, string>();
  const clashes: (readonly [string, string])[] = [];
  for (const key of keys) {
    const earlier = seen.get(key.toLowerCase());
    if (earlier === undefined) seen.set(key.toLowerCase(), key);
    else clashes.push([key, earlier]);
  }
  return clashes;
}

/** A name that the configuration can give to a tool. */
export const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** The name of a view, which is part of a URL. */
export const VIEW_NAME = /^[A-Za-z0-9_-]{1,64}$/;
