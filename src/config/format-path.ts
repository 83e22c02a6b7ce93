import type { Path } from './yaml-source.js';

/** Formats a path as in `servers.files.args[0]`. */
export function formatPath(path: Path): string {
  return path
    .map((step, depth) => {
      if (typeof step === 'number') return `[${step}]`;
      // `{KEY:value}` lacks a space after the colon, so YAML reads the secret value as a part of the key.
      const name = path[depth - 1] === 'env' && !/^\w+$/.test(String(step)) ? '…' : String(step);
      return depth === 0 ? name : `.${name}`;
    })
    .join('');
}
