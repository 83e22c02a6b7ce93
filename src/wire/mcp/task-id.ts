import { type Span, stringAt, toBytes } from '../json/json-text.js';
import type { Edit } from '../json/splice.js';

/** Returns the HMAC-SHA-256 of a text, or a prefix of it, in characters that are allowed in names. */
export interface Hmac {
  (text: string): string;
  /** The functions with earlier keys, whose seals are still valid. */
  readonly older?: readonly Hmac[];
}

interface TaskOrigin {
  /** The server or client that made the task, by the gateway's name for it. */
  readonly maker: string;
  /** The process of the gateway that made the id. */
  readonly instance: string;
  /** The id that the maker gave the task. */
  readonly original: string;
}

/**
 * Returns the id under which the other side knows a task: the maker's name, the process, a seal and the original id.
 *
 * The gateway stores nothing for the id, because the side that requested a task may use its id for any length of time. `holder`
 * names the side that gets the id. The seal makes the id valid only for the holder, so no other side can use or guess it. Makers'
 * names contain no colon.
 */
export function wrapTaskId(origin: TaskOrigin, holder: string, seal: Hmac): string {
  const { maker, instance, original } = origin;
  return `${maker}:${instance}:${seal(sealed(origin, holder))}:${original}`;
}

/** Returns the content of the id; `undefined` if no gateway with the key has made the id for this holder. */
export function unwrapTaskId(id: string, holder: string, seal: Hmac): TaskOrigin | undefined {
  const [, maker, instance, mac, original] = /^([^:]+):([^:]+):([^:]+):(.*)$/s.exec(id) ?? [];
  if (maker === undefined || instance === undefined || mac === undefined || original === undefined) return undefined;
  const origin = { maker, instance, original };
  return isSealOf(mac, sealed(origin, holder), seal) ? origin : undefined;
}

/** Returns the name of the gateway process that made the id. The name is not verified. */
export function instanceOfTask(id: string): string | undefined {
  return /^[^:]+:([^:]+):/.exec(id)?.[1];
}

/** Joins the parts unambiguously, whatever characters they contain. */
function sealed({ maker, instance, original }: TaskOrigin, holder: string): string {
  return JSON.stringify([maker, instance, holder, original]);
}

export function isSealOf(mac: string, text: string, seal: Hmac): boolean {
  return isSameSeal(mac, seal(text)) || (seal.older ?? []).some((older) => isSealOf(mac, text, older));
}

/** Compares two seals in a time that does not depend on the position of the first difference. */
function isSameSeal(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let index = 0; index < a.length; index += 1) difference |= a.charCodeAt(index) ^ b.charCodeAt(index % b.length);
  return difference === 0;
}

/** Replaces the id at the span. Makes no edit if span or id is missing. */
export function replaceId(span: Span | undefined, id: string | undefined): Edit[] {
  return span === undefined || id === undefined ? [] : [{ span, text: toBytes(JSON.stringify(id)) }];
}

const TERMINAL: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

export function isTerminal(bytes: Uint8Array, status: Span | undefined): boolean {
  return TERMINAL.has(stringAt(bytes, status) ?? '');
}
