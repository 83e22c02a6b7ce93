import type { Exchange } from '../../downstream/port.js';
import type { UpstreamConnection } from '../../upstream/port.js';
import { isObject, stringAt, valuesAt } from '../../wire/json/json-text.js';
import { type Edit, splice } from '../../wire/json/splice.js';
import { type NotificationEnvelope, type ResponseEnvelope, scanOwn } from '../../wire/mcp/envelope.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { mendResult, type ResultKind } from '../../wire/mcp/result-check.js';
import { hasHandshake } from '../../wire/mcp/revisions.js';

/** The handling of one request and of its response. */
export interface Handling {
  readonly edits: readonly Edit[];
  /** Returns a response in a form that clients accept. Called before all edits of the response. */
  readonly mend?: ReturnType<typeof mender>;
  readonly editAnswer?: EditAnswer | undefined;
  /** Returns the reason for which the present process must not get the request. Called just before each attempt. */
  readonly refusal?: (() => string | undefined) | undefined;
  /** Whether the request may be sent again to the next process if its process exits before the response. */
  readonly isRepeatable?: boolean | undefined;
  /** Present when the request concerns a task. */
  readonly translation?: Translation | undefined;
  /** Called with the response after it was relayed. */
  readonly onAnswered?: ((response: ResponseEnvelope) => void) | undefined;
}

/** Returns the edits of a server's response, just before the response is relayed. `connection` is the one that it came over. */
export type EditAnswer = (
  response: ResponseEnvelope,
  connection: Pick<UpstreamConnection, 'revision'>,
) => readonly Edit[];

/** Replaces the task ids in messages between a client and a server, just before each message is relayed. */
export interface Translation {
  /** Edits of the request for the process of this connection. */
  request?(connection: UpstreamConnection): readonly Edit[];
  /** Edits of the response. `keepProgress()` relays progress also after the response; call its result to stop that. */
  answer(response: ResponseEnvelope, keepProgress: () => () => void): readonly Edit[];
  progress(notification: NotificationEnvelope): readonly Edit[];
  cancel(notification: NotificationEnvelope): readonly Edit[];
  /** Resolves with the final outcome if the response only created a task. Returns `undefined` if the response is final. */
  goOn?(
    response: ResponseEnvelope,
    connection: UpstreamConnection,
    keepProgress: () => () => void,
  ): Promise<Outcome> | undefined;
}

/** The results that are mended, and where they are in the responses to these methods. A state of a task has the result within it. */
const MENDED: ReadonlyMap<string, readonly [ResultKind, ...path: string[]]> = new Map([
  [METHODS.callTool, ['tool']],
  [METHODS.taskResult, ['tool']],
  [METHODS.getTask, ['tool', 'result']],
  [METHODS.getPrompt, ['prompt']],
  [METHODS.readResource, ['resource']],
]);

/** Limit of a result that is read. A larger one is relayed as it is. */
const MAX_READ_BYTES = 256 * 1024;
/** Mends the results of a request. Notes in `repaired` what was wrong with the first one of each method. */
export function mender({ request, client }: Exchange, repaired: Map<string, string>) {
  const { method } = request;
  const [kind, ...path] = MENDED.get(method) ?? [];
  if (kind === undefined) return undefined;
  const uri = kind === 'resource' ? stringAt(request.bytes, request.tokens.uri) : undefined;
  const isModernClient = !hasHandshake(client.revision);
  return (response: ResponseEnvelope, { revision }: Pick<UpstreamConnection, 'revision'>): ResponseEnvelope => {
    const { bytes, span, result, tokens } = response;
    if (result === undefined || result.end - result.start > MAX_READ_BYTES) return response;
    const [inner] = valuesAt(bytes, result, path);
    if (inner === undefined || !isObject(bytes, inner) || tokens.createdTask !== undefined) return response;
    const mended = mendResult(kind, bytes, inner, { isModernServer: !hasHandshake(revision), isModernClient, uri });
    if (mended === undefined) return response;
    if (mended.repaired !== undefined && !repaired.has(method)) repaired.set(method, mended.repaired);
    const whole = scanOwn(splice({ bytes, span, edits: [{ span: inner, text: mended.bytes }] }));
    return whole.kind === 'response' ? whole : response;
  };
}
