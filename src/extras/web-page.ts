import { createHash } from 'node:crypto';
import type { RouteAnswer, RouteRequest } from '../downstream/http/http-route.js';
import { RequestRates } from '../downstream/http/rate-limit.js';
import type { Clock } from '../wire/timing/clock.js';

const STYLE = `
body { margin: 0; background: #f4f4f5; color: #18181b; font: 16px/1.5 system-ui, sans-serif }
main { box-sizing: border-box; max-width: 34rem; margin: 8vh auto; padding: 2rem; background: #fff; border-radius: 12px }
h1 { margin: 0 0 1rem; font-size: 1.35rem; line-height: 1.3 }
dl { margin: 1.25rem 0; border-top: 1px solid #d4d4d8 }
dt { margin-top: .75rem; color: #52525b; font-size: .875rem }
dd { margin: 0; overflow-wrap: anywhere }
button, a.button { padding: .6rem 1.2rem; border: 1px solid #71717a; border-radius: 8px; background: #fff; color: #18181b; font: inherit; text-decoration: none }
button[value=allow], a.button { border-color: #1d4ed8; background: #1d4ed8; color: #fff }
table { width: 100%; border-collapse: collapse }
td, th { padding: .5rem .5rem .5rem 0; border-top: 1px solid #d4d4d8; text-align: left; overflow-wrap: anywhere }
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

/** A page of the gateway for a person in a browser. `content` and `head` are HTML. */
export function webPage(status: number, title: string, content: string, head = ''): RouteAnswer {
  const body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">${head}
<title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escaped(title)}</h1>${content}</main></body></html>
`;
  return { status, headers: PAGE_HEADERS, body };
}

/** A text as it may stand in HTML, also in quotes. */
export function escaped(text = ''): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Terms and their texts, which are HTML, as the rows of a page. */
export function termRows(rows: readonly (readonly [term: string, text: string])[]): string {
  return `<dl>${rows.map(([term, text]) => `<dt>${term}</dt><dd>${text}</dd>`).join('')}</dl>`;
}

/** The page about a login that cannot go on, and that has no address to return to. The sentence is for the person. */
export function faultPage(status: number, sentence: string): RouteAnswer {
  return webPage(status, 'This login cannot go on', `<p>${escaped(sentence)}</p>`);
}

/** Returns a function that limits the requests for pages by the addresses of browsers. */
export function pageLimit(rates: ConstructorParameters<typeof RequestRates>[0], clock: Clock) {
  const limit = new RequestRates(rates);
  return (serve: (request: RouteRequest) => RouteAnswer | Promise<RouteAnswer>) => async (request: RouteRequest) => {
    const over = limit.refuse('browsers', request.address, clock.now());
    if (over !== undefined) return faultPage(429, 'There are too many requests from your address. Try again later.');
    return await serve(request);
  };
}

export function redirect(location: string): RouteAnswer {
  const headers = { location, 'cache-control': 'no-store', pragma: 'no-cache', 'referrer-policy': 'no-referrer' };
  return { status: 303, headers: { ...headers, 'x-frame-options': 'DENY' }, body: '' };
}
