import type { RouteAnswer } from '../../downstream/http/http-route.js';
import { escaped, termRows, webPage } from '../web-page.js';
import { isOnMachine, placeOf } from './redirects.js';

interface ConsentFacts {
  readonly publicUrl: string;
  readonly name: string;
  readonly document: string | undefined;
  readonly redirectUri: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** The sealed request, which the form sends back. */
  readonly request: string;
  readonly action: string;
}

/** The page on which a person lets a client log in. */
export function consentPage(facts: ConsentFacts): RouteAnswer {
  const { publicUrl, name, document, redirectUri, issuer, scopes, request, action } = facts;
  const gateway = new URL(publicUrl).host;
  const isHere = isOnMachine(redirectUri);
  const nobody = 'Nobody has confirmed who made this program. It chose its name itself';
  const source = document === undefined ? nobody : `Its name is published at ${document}`;
  const anyProgram = document !== undefined && isHere ? '. Any program on this computer can use this name' : '';
  // The name is the text of a stranger, so it has a row and quotes of its own, and cannot reverse the direction of the text around it.
  const quoted = `<q><bdi>${escaped(name)}</bdi></q>`;
  const rows: [string, string][] = [
    ['Source', escaped(`${source}${anyProgram}.`)],
    ['Name', quoted],
    [
      'The login returns to',
      escaped(isHere ? `${placeOf(redirectUri)}, a program on this computer` : placeOf(redirectUri)),
    ],
    [
      'It will get',
      escaped(`access to the tools of ${publicUrl} in your name, until its tokens end${scopesIn(scopes)}`),
    ],
    ['You log in at', escaped(new URL(issuer).host)],
  ];
  return webPage(
    200,
    `Let a program use ${gateway}?`,
    `${termRows(rows)}
<p>Continue only if you have just begun this login in the program yourself. If somebody sent you here, cancel.</p>
<form method="post" action="${escaped(action)}"><input type="hidden" name="request" value="${escaped(request)}">
<button name="decision" value="allow">Continue</button><button name="decision" value="deny">Cancel</button></form>`,
  );
}

function scopesIn(scopes: readonly string[]): string {
  return scopes.length === 0 ? '' : ` (scopes: ${scopes.join(', ')})`;
}

/** Seconds for which the page about a failed login stays before it leads back to the client. */
const READING_S = 10;

/** The page about a login that has failed, with the way back to the client, which learns the reason, too. */
export function failedPage(sentence: string, back: string, isAutomatic: boolean): RouteAnswer {
  return webPage(
    200,
    'The login has failed',
    `<p>${escaped(sentence)}</p><p><a class="button" href="${escaped(back)}">Back to the program</a></p>`,
    isAutomatic ? `<meta http-equiv="refresh" content="${READING_S}; url=${escaped(back)}">` : '',
  );
}
