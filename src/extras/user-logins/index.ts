import type { RouteAnswer, RouteRequest } from '../../downstream/http/http-route.js';
import type { CreateFeature } from '../feature.js';
import { SealedTexts } from '../sealed-texts.js';
import { pageLimit } from '../web-page.js';
import { ForgottenUsers } from './forgotten-users.js';
import { LOGIN_PAGES, offerTicket } from './ticket.js';

/**
 * Logins of users at servers with `login: user`. A call that lacks the login is given the address of a page, with a ticket that only
 * this user can have got. Begin with `login-pages.ts`; `own-logins.ts` is the page on which users see and end their logins.
 */
export const userLogins: CreateFeature = (host) => {
  const { http } = host.config.gateway;
  const { publicUrl = '' } = http;
  const forgotten = new ForgottenUsers(() => Date.now());
  let sealed: SealedTexts | undefined;
  const texts = () => {
    sealed ??= new SealedTexts(host.seals.keysFor('user-logins'), () => Date.now());
    return sealed;
  };
  return {
    apply: () => {},
    close: () => {},
    forget: (principal) => forgotten.forget(principal),
    preload: () =>
      Promise.all([import('./login-pages.js'), import('./own-logins.js'), import('../../upstream/auth/login.js')]),
    offerLogin: (server, person) => offerTicket({ sealed: texts(), publicUrl }, server, person),
    routes: async (users) => {
      const { clock } = host.platform;
      const load = async () => {
        const [{ LoginPages }, { OwnLogins }] = await Promise.all([
          import('./login-pages.js'),
          import('./own-logins.js'),
        ]);
        const options = { host, users, publicUrl, sealed: texts(), forgotten };
        return { pages: new LoginPages(options), own: new OwnLogins(options) };
      };
      let loaded: ReturnType<typeof load> | undefined;
      type Serve = (parts: Awaited<ReturnType<typeof load>>, request: RouteRequest) => Promise<RouteAnswer>;
      const limited = pageLimit(http, clock);
      const page = (serve: Serve) =>
        limited(async (request) => {
          loaded ??= load();
          return await serve(await loaded, request);
        });
      const { login, callback, logins } = LOGIN_PAGES;
      return [
        { method: 'GET', path: login, serve: page(({ pages }, request) => pages.show(request)) },
        { method: 'POST', path: login, serve: page(({ pages }, request) => pages.begin(request)) },
        { method: 'GET', path: callback, serve: page(({ pages }, request) => pages.callback(request)) },
        { method: 'GET', path: logins, serve: page(({ own }, request) => own.show(request)) },
        { method: 'POST', path: logins, serve: page(({ own }, request) => own.end(request)) },
      ];
    },
  };
};
