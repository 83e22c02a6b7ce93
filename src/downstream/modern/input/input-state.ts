import { canonicalObject } from '../../../json/canonical-json.js';
import type { RelayedRequest } from '../../../mcp/relayed-request.js';
import { type Hmac, isSameSeal } from '../../../mcp/task-id.js';

/** What the gateway must know when a client comes back with input. The client keeps it as `requestState`. */
export interface InputState {
  /** The suspended call, by its unguessable id. */
  readonly call: string;
  /** Counts the times that the client was asked, from 1. */
  readonly round: number;
  /** The gateway process that keeps the call. */
  readonly instance: string;
}

/** What a state is good for: one principal, and one request with the same params. */
export interface StateContext {
  readonly principal: string;
  readonly request: string;
}

const PREFIX = 'S';

/** Returns the state as text that nobody else can make. */
export function sealState({ call, round, instance }: InputState, context: StateContext, seal: Hmac): string {
  const payload = [PREFIX, call, round, instance].join('.');
  return `${payload}.${seal(sealed(payload, context))}`;
}

/** Whether the gateway made a text as a state of its own, as its beginning tells. */
export function isOwnState(text: string): boolean {
  return text.startsWith(`${PREFIX}.`);
}

/** What the gateway must know when a client comes back that was asked to visit URLs. No call is suspended meanwhile. */
export interface VisitState {
  /** Counts the times that the client was asked, from 1. */
  readonly round: number;
  /** Names the pages, so that the same ones are not shown twice, and their number. */
  readonly pages: string;
  readonly count: number;
  /** Whether the user has agreed to visit these pages already. */
  readonly isAccepted: boolean;
}

const VISIT_PREFIX = 'U';

export function sealVisit({ round, pages, count, isAccepted }: VisitState, context: StateContext, seal: Hmac): string {
  const payload = [VISIT_PREFIX, round, pages, count, isAccepted ? 'accepted' : 'asked'].join('.');
  return `${payload}.${seal(sealed(payload, context, 'visit'))}`;
}

/** Whether the gateway made a text as the state of visits, as its beginning tells. */
export function isVisitState(text: string): boolean {
  return text.startsWith(`${VISIT_PREFIX}.`);
}

/** Reads the state of visits. `undefined` if the gateway did not make it for this principal and request. */
export function openVisit(text: string, context: StateContext, seal: Hmac): VisitState | undefined {
  const end = text.lastIndexOf('.');
  const payload = text.slice(0, end);
  const [, round, pages = '', count, stage] = payload.split('.');
  const isOurs = isSameSeal(text.slice(end + 1), seal(sealed(payload, context, 'visit')));
  if (!isOurs) return undefined;
  return { round: Number(round), pages, count: Number(count), isAccepted: stage === 'accepted' };
}

/** Reads a state. `undefined` if the gateway did not make it for this principal and request. */
export function openState(text: string, context: StateContext, seal: Hmac): InputState | undefined {
  const end = text.lastIndexOf('.');
  const payload = text.slice(0, end);
  const [prefix, call, round, instance] = payload.split('.');
  if (prefix !== PREFIX || call === undefined || round === undefined || instance === undefined) return undefined;
  return isSameSeal(text.slice(end + 1), seal(sealed(payload, context)))
    ? { call, round: Number(round), instance }
    : undefined;
}

/**
 * Wraps the state of a server, so that the client can bring it back only with the same request. The server gets its own
 * text, byte for byte.
 */
export function wrapServerState(original: string, context: StateContext, seal: Hmac): string {
  return `P.${seal(sealed(original, context))}.${original}`;
}

/** Returns the server's own state; `undefined` if the gateway did not wrap it for this principal and request. */
export function unwrapServerState(text: string, context: StateContext, seal: Hmac): string | undefined {
  const [, mac, original] = /^P\.([^.]*)\.(.*)$/s.exec(text) ?? [];
  if (mac === undefined || original === undefined) return undefined;
  return isSameSeal(mac, seal(sealed(original, context))) ? original : undefined;
}

/** The request without what differs each time that the client sends it. */
export function requestDigest({ method, bytes, params }: RelayedRequest): string {
  return `${method} ${params === undefined ? '' : canonicalObject(bytes, params, (name) => !CHANGING.has(name))}`;
}

const CHANGING: ReadonlySet<string> = new Set(['_meta', 'inputResponses', 'requestState']);

/** Joins the parts unambiguously, whatever they contain. */
function sealed(payload: string, { principal, request }: StateContext, use = 'input'): string {
  return JSON.stringify([use, payload, principal, request]);
}

/** The name of this process in the states of its calls. */
export function instanceName(run: Hmac): string {
  return run('instance').slice(0, 22);
}
