import { editMembers } from '../../wire/json/edit-members.js';
import { isObject, isString, readString, type Span, stringAt, toBytes, valuesAt } from '../../wire/json/json-text.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import { EnvelopeRequest, type RelayedRequest } from '../../wire/mcp/relayed-request.js';

/** The tool that calls another one. */
export const CALL_TOOL = 'trunkline__call_tool';

/**
 * Returns the request that calls a tool by its own name, for a request that calls it through `trunkline__call_tool`. Everything
 * but the name and the arguments keeps its bytes, such as `_meta` and a task. `undefined` for any other request, and for one
 * that names no tool.
 */
export function unwrapCall(request: RelayedRequest): RelayedRequest | undefined {
  const { bytes, params, tokens, method } = request;
  if (method !== METHODS.callTool || params === undefined || tokens.name === undefined) return undefined;
  if (stringAt(bytes, tokens.name) !== CALL_TOOL) return undefined;
  const given = objectAt(bytes, params, 'arguments');
  const [name, ...otherNames] = given === undefined ? [] : valuesAt(bytes, given, ['name']);
  if (given === undefined || name === undefined || otherNames.length > 0 || !isString(bytes, name)) return undefined;
  if (readString(bytes, name) === CALL_TOOL) return undefined;
  const [args, ...otherArguments] = valuesAt(bytes, given, ['arguments']);
  if (otherArguments.length > 0) return undefined;
  const edits: Edit[] = [{ span: tokens.name, text: bytes, part: name }];
  if (args === undefined) edits.push(...editMembers(bytes, params, { removes: (member) => member === 'arguments' }));
  else edits.push({ span: given, ...argumentsText(bytes, args) });
  const unwrapped = scanOwn(splice(request.message(ID, edits)));
  return unwrapped.kind === 'request' ? new EnvelopeRequest(unwrapped) : undefined;
}

/** Replaced before the request is sent to a server. */
const ID = { text: toBytes('0'), part: { start: 0, end: 1 } };

/** The only member of this name, if it is an object. */
function objectAt(bytes: Uint8Array, parent: Span, name: string): Span | undefined {
  const [value, ...others] = valuesAt(bytes, parent, [name]);
  return value !== undefined && others.length === 0 && isObject(bytes, value) ? value : undefined;
}

/** Some models write the arguments as a string that contains the JSON. */
function argumentsText(bytes: Uint8Array, args: Span): Pick<Edit, 'text' | 'part'> {
  const text = stringAt(bytes, args);
  return text !== undefined && isRecord(parseJson(text)) ? { text: toBytes(text) } : { text: bytes, part: args };
}
