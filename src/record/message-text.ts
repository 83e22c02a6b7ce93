import { isRecord, parseJson } from '../json/json-value.js';
import { printable } from '../json/printable.js';
import { type Entry, textOf } from './format.js';

/** Names of the parties at the left and at the right: clients, Trunkline, servers. */
const ARROWS: Readonly<Record<Entry['dir'], string>> = {
  'c>g': 'client → ',
  'g>c': 'client ← ',
  'g>s': '       → server',
  's>g': '       ← server',
};

/** One message as one line for a person: when, between whom, and what. */
export function messageText(entry: Entry): string {
  const { t, dir, server, instance, gen, conn, client } = entry;
  const isAtServer = dir === 'g>s' || dir === 's>g';
  const who = isAtServer ? `${instance ?? server ?? '?'} gen ${gen ?? '?'}` : `${client ?? 'client'} #${conn}`;
  const time = new Date(t).toTimeString().slice(0, 8);
  const ms = String(Math.floor(t % 1_000)).padStart(3, '0');
  return printable(`${time}.${ms} ${(ARROWS[dir] ?? dir).padEnd(15)} ${who}: ${contentText(entry)}`);
}

function contentText(entry: Entry): string {
  const { omitted } = entry;
  const text = textOf(entry);
  if (text === undefined) return `a message of ${omitted ?? 'unknown'} bytes, too large to be recorded`;
  const message = parseJson(text);
  if (!isRecord(message)) return Array.isArray(message) ? `batch ${text}` : `no message: ${text}`;
  const { method, id, params, result, error } = message;
  const idText = id === undefined ? '' : ` ${JSON.stringify(id)}`;
  if (typeof method === 'string')
    return `${method}${idText}${params === undefined ? '' : ` ${JSON.stringify(params)}`}`;
  if (error !== undefined) return `error${idText} ${JSON.stringify(error)}`;
  return `answer${idText} ${JSON.stringify(result)}`;
}
