import { addFirst } from '../json/edit-members.js';
import {
  elementsOf,
  foldKey,
  isObject,
  isString,
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
  const wantsVisits = error !== undefined && errorCode !== undefined && readText(bytes, errorCode) === VISIT_REQUIRED;
  const lists = wantsVisits ? valuesAt(bytes, error, ['data', 'elicitations']) : [];
  return allSigned(
    server,
    bytes,
    lists.flatMap((list) => elementsOf(bytes, list)),
  );
}

/** The same for the questions in `inputRequests`, as results and states of tasks of revision 2026-07-28 have them. */
export function signedInputs(server: string, bytes: Uint8Array, inputRequests: Span): readonly Edit[] | RpcError {
  const questions: Span[] = [];
  visitMembers(bytes, inputRequests.start, Number.POSITIVE_INFINITY, (_, input) => {
    const [method] = valuesAt(bytes, input, ['method']);
    if (stringAt(bytes, method) === METHODS.elicit) questions.push(...valuesAt(bytes, input, ['params']));
  });
  return allSigned(server, bytes, questions);
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
