import type { Hmac } from './exposed-name.js';

/** Whose task it is: the server that made it, or the client that did, by the names that the gateway gives them. */
export interface TaskOrigin {
  readonly maker: string;
  /** The id as its maker knows it. */
  readonly original: string;
}

/**
 * The id under which the other side knows a task: who made it, a seal, and the original id.
 *
 * Nothing is stored, since whoever asked for a task may keep its id for as long as it likes. The seal makes sure that
 * an id is good only for whom it was made, so that nobody reaches a task by guessing. Makers' names have no colon.
 */
export function wrapTaskId({ maker, original }: TaskOrigin, holder: string, seal: Hmac): string {
  return `${maker}:${seal(sealed(maker, original, holder))}:${original}`;
}

/** Whose task it is; `undefined` if the id was not made by us for this holder. */
export function unwrapTaskId(id: string, holder: string, seal: Hmac): TaskOrigin | undefined {
  const [, maker, mac, original] = /^([^:]+):([^:]+):(.*)$/s.exec(id) ?? [];
  if (maker === undefined || mac === undefined || original === undefined) return undefined;
  return isSame(mac, seal(sealed(maker, original, holder))) ? { maker, original } : undefined;
}

/** Unambiguous, whatever stands in the parts. */
function sealed(maker: string, original: string, holder: string): string {
  return JSON.stringify([maker, holder, original]);
}

/** In a time that tells nothing about where they differ. */
function isSame(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let index = 0; index < a.length; index += 1) difference |= a.charCodeAt(index) ^ b.charCodeAt(index % b.length);
  return difference === 0;
}
