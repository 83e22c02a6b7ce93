import { addFirst } from '../json/edit-members.js';
import {
  elementsOf,
  foldKey,
  isObject,
  isString,
  membersOf,
  readString,
  readText,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
  visitMembers,
} from '../json/json-text.js';
import type { Edit } from '../json/splice.js';
import { RPC_CODES, RpcError } from '../jsonrpc/message.js';
import type { ResponseEnvelope } from './envelope.js';
import { METHODS } from './methods.js';

/*
 * Questions of servers to a person (elicitation). A person sees one client and cannot tell who asks, so each question begins
 * with the name of its server, and with the host of the page that it wants opened. Without that, a server could ask in the
 * name of another one, or of Trunkline, which asks for logins itself.
 */

/** Returns the edits that put the name of the server into its question, or an error if no person may see the question. */
export function signedQuestion(
  server: string,
  { method, bytes, params }: { readonly method: string; readonly bytes: Uint8Array; readonly params: Span | undefined },
): readonly Edit[] | RpcError {
  return method === METHODS.elicit && params !== undefined ? signed(server, bytes, params) : NO_EDITS;
}

/** The same for the questions in an answer: those of `input_required`, and the visits of pages that error -32042 demands. */
export function signedQuestions(
  server: string,
  { bytes, error, tokens }: ResponseEnvelope,
): readonly Edit[] | RpcError {
  const { inputRequests, errorCode } = tokens;
  if (inputRequests !== undefined) return signedInputs(server, bytes, inputRequests);
  return allSigned(server, bytes, visitsIn(bytes, error, errorCode));
}

/** The visits of pages that an error demands. Readers compare the value of its code, so `-32042.0` is the same. */
export function visitsIn(bytes: Uint8Array, error: Span | undefined, code: Span | undefined): readonly Span[] {
  if (code === undefined || Number(readText(bytes, code)) !== Number(VISIT_REQUIRED)) return [];
  const lists = membersLike(bytes, membersLike(bytes, [error], 'data'), 'elicitations');
  return lists.flatMap((list) => elementsOf(bytes, list));
}

/** The same for the questions in `inputRequests`, as results and states of tasks of revision 2026-07-28 have them. */
export function signedInputs(server: string, bytes: Uint8Array, inputRequests: Span): readonly Edit[] | RpcError {
  const questions: Span[] = [];
  for (const [, input] of membersOf(bytes, inputRequests)) {
    const members = membersOf(bytes, input);
    const folded = members.map(([name]) => foldKey(name));
    const isLikeAnother = members.some(([name], at) => name !== folded[at] && OF_QUESTIONS.has(folded[at] ?? ''));
    if (isLikeAnother || new Set(folded).size < folded.length) return ambiguous(server);
    const [method] = valuesAt(bytes, input, ['method']);
    if (stringAt(bytes, method) === METHODS.elicit) questions.push(...valuesAt(bytes, input, ['params']));
  }
  return allSigned(server, bytes, questions);
}

const OF_QUESTIONS: ReadonlySet<string> = new Set(['method', 'params']);

/** The values of all members that some reader takes for the one of this name. */
function membersLike(bytes: Uint8Array, objects: readonly (Span | undefined)[], folded: string): readonly Span[] {
  const members = objects.flatMap((object) => membersOf(bytes, object));
  return members.filter(([name]) => foldKey(name) === folded).map(([, value]) => value);
}

function ambiguous(server: string): RpcError {
  const message = `Server "${server}" asks a question with two members of one name, or with a name that only looks like one of MCP. Readers differ in what it asks, so it is not shown`;
  return new RpcError(RPC_CODES.invalidParams, message);
}

function allSigned(server: string, bytes: Uint8Array, questions: readonly Span[]): readonly Edit[] | RpcError {
  const edits: Edit[] = [];
  for (const question of questions) {
    const own = signed(server, bytes, question);
    if (own instanceof RpcError) return own;
    edits.push(...own);
  }
  return edits;
}

/** Code of the error of revision 2025-11-25 for a request that needs the visit of pages first. */
export const VISIT_REQUIRED = '-32042';

const NO_EDITS: readonly Edit[] = [];

function signed(server: string, bytes: Uint8Array, params: Span): readonly Edit[] | RpcError {
  if (!isObject(bytes, params)) return NO_EDITS;
  const messages: Span[] = [];
  const hosts: (string | undefined)[] = [];
  visitMembers(bytes, params.start, Number.POSITIVE_INFINITY, (key, value) => {
    // Clients may ignore case, and take the last of several.
    const name = foldKey(readString(bytes, key));
    if (name === 'message') messages.push(value);
    if (name === 'url') hosts.push(hostOf(stringAt(bytes, value)));
  });
  if (hosts.includes(undefined)) {
    const message = `Server "${server}" wants a page opened whose URL does not begin with http:// or https://. It is not shown`;
    return new RpcError(RPC_CODES.invalidParams, message);
  }
  const pages = hosts.length === 0 ? '' : ` you to open a page of ${hosts.join(' and ')}`;
  const heads = ['', ", in its own words and not Trunkline's"].map((own) => `Server "${server}" asks${pages}${own}: `);
  const said = messages.map((message) => stringAt(bytes, message) ?? '');
  // Another gateway, on which the server runs, may have signed the question before.
  const words = said.map((text) => text.slice(heads.find((each) => text.startsWith(each))?.length ?? 0));
  const head = heads[words.some(isNamingUs) ? 1 : 0] ?? '';
  if (messages.length === 0) return [addFirst(bytes, params, toBytes(`"message":${JSON.stringify(head)},`))];
  return messages.flatMap((span, at): Edit[] => {
    if (!isString(bytes, span)) return [{ span, text: toBytes(JSON.stringify(head)) }];
    if (said[at]?.startsWith(head)) return [];
    // The words of the server stay byte for byte.
    const start = span.start + 1;
    return [{ span: { start, end: start }, text: toBytes(JSON.stringify(head).slice(1, -1)) }];
  });
}

/** The host of a page of the web; `undefined` for any other URL. */
function hostOf(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { protocol, host } = new URL(url);
  return protocol === 'https:' || protocol === 'http:' ? host : undefined;
}

/** Whether a text has the name of Trunkline, however it is spelled. */
function isNamingUs(text: string): boolean {
  return /t\W*r\W*u\W*n\W*k\W*l\W*i\W*n\W*e/i.test(text.normalize('NFKC'));
}
