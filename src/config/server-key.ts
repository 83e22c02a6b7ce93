export const SERVER_KEY_MAX_LENGTH = 24;
/** No doubled `_`: `__` is what separates the key from the tool in an exposed name. Also keeps `__proto__` out. */
export const SERVER_KEY_PATTERN = /^[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*$/;

// Windows takes these for devices in any folder and with any extension.
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)$/i;

/** What is wrong with a server's key, or undefined when it is fine. */
export function serverKeyFault(key: string): string | undefined {
  if (key.length > SERVER_KEY_MAX_LENGTH) {
    return `this key has ${key.length} characters; expected at most ${SERVER_KEY_MAX_LENGTH}, as tool names start with it`;
  }
  if (!SERVER_KEY_PATTERN.test(key))
    return 'this key cannot start tool names; expected letters and digits with single - or _ between them';
  if (key.toLowerCase() === 'trunkline') {
    return "this key is reserved for Trunkline's own tools, such as trunkline__status; expected another one";
  }
  if (DEVICE_NAME.test(key)) {
    return 'Windows takes this key for a device, and files are named after servers; expected another one';
  }
  return undefined;
}

/** The usable key nearest to a refused one, if there is an obvious one. */
export function usableServerKey(key: string): string | undefined {
  const words = key.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const candidate = words.join('-').slice(0, SERVER_KEY_MAX_LENGTH).replace(/-$/, '');
  return serverKeyFault(candidate) === undefined ? candidate : undefined;
}

/** Pairs of keys that differ only in case, the later one first. */
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
