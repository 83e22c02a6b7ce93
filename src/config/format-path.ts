import type { Path } from './yaml-source.js';

/** `servers.files.args[0]`, as a person would write it. */
export function formatPath(path: Path): string {
  return path
    .map((step, depth) => {
      if (typeof step === 'number') return `[${step}]`;
      // In `{KEY:value}`, which lacks a space, the secret is a part of the key.
      const name = path[depth - 1] === 'env' && !/^\w+$/.test(String(step)) ? '…' : String(step);
      return depth === 0 ? name : `.${name}`;
    })
    .join('');
}
