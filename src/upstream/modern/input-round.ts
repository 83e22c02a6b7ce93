import {
  isObject,
  isString,
  readString,
  type Span,
  stringAt,
  toBytes,
  valuesAt,
  visitMembers,
} from '../../json/json-text.js';
import { join } from '../../jsonrpc/message.js';
import { RPC_CODES, RpcError } from '../../jsonrpc/rpc-error.js';
import type { ResponseEnvelope, ScanEnvelope } from '../../mcp/envelope.js';
import { METHODS } from '../../mcp/methods.js';
import type { InputRequest, RelayedRequest, WithdrawInput } from '../../mcp/relayed-request.js';
import { errorText, ownRequest } from './own-messages.js';

/** Input that a result with `resultType: "input_required"` requires. */
export interface RequiredInput {
  readonly asked: readonly AskedInput[];
  /** To be sent back byte for byte: the JSON string with its quotes. */
  readonly state: Uint8Array | undefined;
}

export interface AskedInput {
  /** The server's name for it, as JSON. */
  readonly key: Uint8Array;
  readonly method: string;
  /** `undefined` if the server's request cannot be read. */
  readonly request: RelayedRequest | undefined;
  /** The page of an elicitation in mode `url`. */
  readonly url: string | undefined;
  /** The id that the gateway has given such an elicitation, which these revisions do not name. */
  readonly elicitationId: string | undefined;
}

/** Whether the server requires input before it goes on. */
export function requiresInput({ bytes, tokens: { resultType } }: ResponseEnvelope): boolean {
  if (resultType === undefined || resultType.end - resultType.start < INPUT_REQUIRED.length) return false;
  return isString(bytes, resultType) && readString(bytes, resultType) === INPUT_REQUIRED;
}

const INPUT_REQUIRED = 'input_required';

/** Reads a result that requires input. Copies what it returns: the memory of a response has another use soon. */
export function readRequiredInput(
  { bytes, tokens: { inputRequests, resultState } }: ResponseEnvelope,
  scan: ScanEnvelope,
  mintId: () => string,
): RequiredInput {
  const asked: AskedInput[] = [];
  if (inputRequests !== undefined && isObject(bytes, inputRequests)) {
    visitMembers(bytes, inputRequests.start, Number.POSITIVE_INFINITY, (key, value) => {
      asked.push({ key: bytes.slice(key.start, key.end), ...readAsked(bytes, value, scan, mintId) });
    });
  }
  return { asked, state: resultState && bytes.slice(resultState.start, resultState.end) };
}

function readAsked(bytes: Uint8Array, value: Span, scan: ScanEnvelope, mintId: () => string): Omit<AskedInput, 'key'> {
  const at = (path: readonly string[]) => (isObject(bytes, value) ? valuesAt(bytes, value, path)[0] : undefined);
  const textAt = (...path: readonly string[]) => stringAt(bytes, at(path));
  const method = textAt('method') ?? '';
  const params = at(['params']);
  if (!ALLOWED.has(method) || (params !== undefined && !isObject(bytes, params))) {
    return { method, request: undefined, url: undefined, elicitationId: undefined };
  }
  const isUrl = method === METHODS.elicit && textAt('params', 'mode') === 'url';
  const url = isUrl ? textAt('params', 'url') : undefined;
  const elicitationId =
    isUrl && params !== undefined && at(['params', 'elicitationId']) === undefined ? mintId() : undefined;
  const own = params && bytes.slice(params.start, params.end);
  const sent =
    own === undefined || elicitationId === undefined
      ? own
      : join([own.subarray(0, -1), toBytes(`,"elicitationId":${JSON.stringify(elicitationId)}}`)]);
  return { method, request: ownRequest(scan, method, sent), url, elicitationId };
}

/** The requests that a server may put into a result. */
const ALLOWED: ReadonlySet<string> = new Set([METHODS.elicit, METHODS.createMessage, METHODS.listRoots]);

/** The input that a client gave, or the error that ends the request. */
export type RoundEnd =
  | { readonly kind: 'complete'; readonly responses: Uint8Array }
  | { readonly kind: 'refused'; readonly method: string; readonly error: Uint8Array; readonly message: string };

export interface InputRoundOptions {
  readonly asked: readonly AskedInput[];
  readonly requireInput: ((input: InputRequest) => WithdrawInput) | undefined;
  /** Whether a page was accepted already, so that a person is not sent there again. */
  readonly isAccepted: (url: string) => boolean;
  readonly accepted: (url: string) => void;
  /** Called once. */
  readonly onEnd: (end: RoundEnd) => void;
}

/** Asks a client for everything that one result requires, all at once. */
export class InputRound {
  readonly #options: InputRoundOptions;
  readonly #answers: (Uint8Array | undefined)[];
  #withdraws: WithdrawInput[] = [];
  #isOver = false;

  constructor(options: InputRoundOptions) {
    this.#options = options;
    this.#answers = options.asked.map(() => undefined);
  }

  begin(): void {
    for (const [index, asked] of this.#options.asked.entries()) if (!this.#isOver) this.#ask(index, asked);
  }

  /** The input is not needed any more. */
  withdraw(): void {
    this.#isOver = true;
    for (const withdraw of this.#withdraws.splice(0)) withdraw();
  }

  #ask(index: number, { method, request, url }: AskedInput): void {
    const { requireInput, isAccepted, accepted } = this.#options;
    if (url !== undefined && isAccepted(url)) {
      this.#answered(index, ACCEPTED);
      return;
    }
    const refused = (error: Uint8Array, message: string) => {
      // A person who does not answer has cancelled. The other kinds of input have no such answer.
      if (method === METHODS.elicit) this.#answered(index, CANCELLED);
      else this.#end({ kind: 'refused', method, error, message });
    };
    const fail = (error: RpcError) => refused(errorText(error), error.message);
    if (request === undefined || requireInput === undefined) {
      const message = request === undefined ? `A server may not ask for ${method}` : 'No client can give input here';
      const error = errorText(new RpcError(RPC_CODES.internalError, message));
      this.#end({ kind: 'refused', method, error, message });
      return;
    }
    const withdraw = requireInput({
      request,
      edits: [],
      answer: ({ bytes, result, error }) => {
        const at = result ?? error ?? { start: 0, end: 0 };
        const text = bytes.slice(at.start, at.end);
        if (result === undefined) {
          refused(text, memberOf(text, 'message') ?? 'the client refused');
          return;
        }
        if (url !== undefined && memberOf(text, 'action') === 'accept') accepted(url);
        this.#answered(index, text);
      },
      fail,
      progress: () => {},
    });
    this.#withdraws.push(withdraw);
    // The client may have refused while it was asked.
    if (this.#isOver) this.withdraw();
  }

  #answered(index: number, result: Uint8Array): void {
    this.#answers[index] = result;
    if (this.#answers.some((answer) => answer === undefined)) return;
    const members = this.#options.asked.flatMap(({ key }, at) => {
      return [toBytes(at === 0 ? '{' : ','), key, toBytes(':'), this.#answers[at] ?? CANCELLED];
    });
    this.#end({ kind: 'complete', responses: join([...members, toBytes('}')]) });
  }

  #end(end: RoundEnd): void {
    if (this.#isOver) return;
    this.#withdraws = end.kind === 'complete' ? [] : this.#withdraws;
    this.withdraw();
    this.#options.onEnd(end);
  }
}

const ACCEPTED = toBytes('{"action":"accept"}');
const CANCELLED = toBytes('{"action":"cancel"}');

/** A text among the members of an object. */
function memberOf(object: Uint8Array, name: string): string | undefined {
  return stringAt(object, valuesAt(object, { start: 0, end: object.length }, [name])[0]);
}
