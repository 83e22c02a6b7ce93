import { createHash } from 'node:crypto';
import type { LoginPage, Person } from '../feature.js';
import { LOGIN_MS, randomText, type SealedTexts } from '../sealed-texts.js';

/** The paths of the pages. No key of a server contains a slash, so none of them is the path of another. */
export const LOGIN_PAGES = { login: '/login/:server', callback: '/logins/callback/:server', logins: '/logins' };

/** Proves that a user was given the address of a page, over a connection of theirs. It is good for one login. */
export interface Ticket extends Person {
  readonly id: string;
  readonly server: string;
}

/** Returns the address of the page on which a person logs in at a server, and the code that the page shows. */
export function offerTicket(
  { sealed, publicUrl }: { readonly sealed: SealedTexts; readonly publicUrl: string },
  server: string,
  { principal, name }: Person,
): LoginPage {
  const ticket: Ticket = { id: randomText(16), server, principal, name };
  return { url: `${publicUrl}${pathOf(server, sealed.seal('ticket', ticket, LOGIN_MS))}`, code: codeOf(ticket) };
}

export function pathOf(server: string, ticket?: string): string {
  const path = `/login/${encodeURIComponent(server)}`;
  return ticket === undefined ? path : `${path}?${new URLSearchParams({ ticket })}`;
}

/**
 * The path to which the provider of a server sends the browser back. Each server has its own, because a server that leads the browser to
 * the provider of another one would get the code of that one otherwise.
 */
export function callbackOf(server: string): string {
  return `/logins/callback/${encodeURIComponent(server)}`;
}

/** Letters and digits that people do not mistake for each other. */
const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** The code of a login, which the person compares: in the client, and on the page. */
export function codeOf({ id }: Ticket): string {
  const bytes = createHash('sha256').update(`code ${id}`).digest().subarray(0, 6);
  const letters = [...bytes].map((byte) => LETTERS[byte % LETTERS.length]).join('');
  return `${letters.slice(0, 3)}-${letters.slice(3)}`;
}
