import { createHash } from 'node:crypto';
import type { RouteAnswer } from '../../downstream/http/http-route.js';
import { isOnMachine, placeOf } from './redirects.js';

const STYLE = `
body { margin: 0; background: #f4f4f5; color: #18181b; font: 16px/1.5 system-ui, sans-serif }
main { box-sizing: border-box; max-width: 34rem; margin: 8vh auto; padding: 2rem; background: #fff; border-radius: 12px }
h1 { margin: 0 0 1rem; font-size: 1.35rem; line-height: 1.3 }
dl { margin: 1.25rem 0; border-top: 1px solid #d4d4d8 }
dt { margin-top: .75rem; color: #52525b; font-size: .875rem }
dd { margin: 0; overflow-wrap: anywhere }
button, a.button { padding: .6rem 1.2rem; border: 1px solid #71717a; border-radius: 8px; background: #fff; color: #18181b; font: inherit; text-decoration: none }
button[value=allow], a.button { border-color: #1d4ed8; background: #1d4ed8; color: #fff }
form { display: flex; flex-direction: row-reverse; justify-content: flex-end; gap: .75rem }
`;

/**
 * Sent with every page. `form-action` is missing, because some browsers apply it to all redirects after a form, which lead to the
 * provider and to the client. No page has a script.
 */
const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // With no referrer at all, browsers send the form without its origin.
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
  pragma: 'no-cache',
};

interface ConsentFacts {
  readonly publicUrl: string;
  readonly name: string;
  readonly document: string | undefined;
  readonly redirectUri: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** The sealed request, which the form sends back. */
  readonly request: string;
  /** The path to which the form is sent. */
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
  // The name is the text of a stranger, so it has a row and quotes of its own, and its letters turn no others around.
  const quoted = `<q><bdi>${escaped(name)}</bdi></q>`;
  const rows = [
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
  return page(
    200,
    `Let a program use ${gateway}?`,
    `<dl>${rows.map(([term, text]) => `<dt>${term}</dt><dd>${text}</dd>`).join('')}</dl>
<p>Continue only if you have just begun this login in the program yourself. If somebody sent you here, cancel.</p>
<form method="post" action="${escaped(action)}"><input type="hidden" name="request" value="${escaped(request)}">
<button name="decision" value="allow">Continue</button><button name="decision" value="deny">Cancel</button></form>`,
  );
}

function scopesIn(scopes: readonly string[]): string {
  return scopes.length === 0 ? '' : ` (scopes: ${scopes.join(', ')})`;
}

/** The page about a login that ends here, because nobody may be sent anywhere. The sentence is for the person. */
export function faultPage(status: number, sentence: string): RouteAnswer {
  return page(status, 'This login cannot go on', `<p>${escaped(sentence)}</p>`);
}

/** Seconds after which a person is sent back who reads why a login has failed. */
const READING_S = 10;

/** The page about a login that has failed, with the way back to the client, which learns the reason, too. */
export function failedPage(sentence: string, back: string, isAutomatic: boolean): RouteAnswer {
  return page(
    200,
    'The login has failed',
    `<p>${escaped(sentence)}</p><p><a class="button" href="${escaped(back)}">Back to the program</a></p>`,
    isAutomatic ? `<meta http-equiv="refresh" content="${READING_S}; url=${escaped(back)}">` : '',
  );
}

function page(status: number, title: string, content: string, head = ''): RouteAnswer {
  const body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${head}
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escaped(title)}</h1>${content}</main></body></html>
`;
  return { status, headers: PAGE_HEADERS, body };
}

/** A text as it may stand in HTML, also in quotes. */
function escaped(text = ''): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
