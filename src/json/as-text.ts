/** A value from JSON that should be a text, as one. `String` fails for objects with a member such as `toString`. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');
}
