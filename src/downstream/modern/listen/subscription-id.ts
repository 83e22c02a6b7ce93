import { editMembers } from '../../../json/edit-members.js';
import { isObject, toBytes, valuesAt } from '../../../json/json-text.js';
import type { Edit, SplicedMessage } from '../../../json/splice.js';
import { join } from '../../../jsonrpc/message.js';
import { SUBSCRIPTION_ID } from '../../../mcp/era-members.js';

const MEMBER = toBytes(`${JSON.stringify(SUBSCRIPTION_ID)}:`);
const META = toBytes('"_meta":{');
const PARAMS = toBytes('"params":{"_meta":{');
const END = toBytes('}');

/** A `_meta` member with the id of a subscription, as JSON. `id` is the raw id of the `subscriptions/listen` request. */
export function metaWithId(id: Uint8Array): Uint8Array {
  return join([META, MEMBER, id, END]);
}

/** The notification, which is one whole JSON text, with the id of a subscription in its `_meta`. */
export function withSubscriptionId(bytes: Uint8Array, id: Uint8Array): SplicedMessage {
  const span = { start: 0, end: bytes.length };
  return { bytes, span, edits: editsFor(bytes, id) };
}

function editsFor(bytes: Uint8Array, id: Uint8Array): readonly Edit[] {
  const message = { start: 0, end: bytes.length };
  const member = join([MEMBER, id]);
  const [params] = valuesAt(bytes, message, ['params']);
  if (params === undefined || !isObject(bytes, params)) {
    return editMembers(bytes, message, { removes: named('params'), add: join([PARAMS, member, END, END]) });
  }
  const [meta] = valuesAt(bytes, params, ['_meta']);
  if (meta === undefined || !isObject(bytes, meta)) {
    return editMembers(bytes, params, { removes: named('_meta'), add: metaWithId(id) });
  }
  return editMembers(bytes, meta, { removes: named(SUBSCRIPTION_ID), add: member });
}

function named(name: string): (member: string) => boolean {
  return (member) => member === name;
}
