import type { ServerConfig } from '../../config/resolve/config.js';
import type { CreateFeature } from '../feature.js';
import type { ExchangedTokens } from './exchanged-tokens.js';

/**
 * Gives servers with `auth.exchange` a token of the user: the identity provider exchanges the token with which the user has come. The
 * gateway keeps both in memory only, and a server gets the second one. Begin with `exchanged-tokens.ts`; `grants.ts` has the requests.
 */
export const exchange: CreateFeature = (host) => {
  let loading: Promise<ExchangedTokens> | undefined;
  let loaded: ExchangedTokens | undefined;
  let needsUsers = false;
  const load = () => {
    loading ??= import('./exchanged-tokens.js').then(({ ExchangedTokens }) => {
      const { platform, secrets, logger } = host;
      loaded = new ExchangedTokens({
        clock: platform.clock,
        now: Date.now,
        logger,
        keepSecret: (token) => secrets.knowWhile([{ env: { 'access token': token }, args: [] }]),
        onRetry: (server, user) => host.accessChanged(server, user),
      });
      return loaded;
    });
    return loading;
  };
  return {
    apply: async ({ servers }) => {
      needsUsers = servers.some((server) => isExchanging(server) && server.actsForUsers === true);
      // The first request brings the token that is exchanged.
      if (needsUsers) await load();
    },
    close: async (stopped) => {
      await stopped;
      loaded?.close();
    },
    forget: (principal) => loaded?.forget(principal),
    openAccess: (spec) => {
      if (spec.exchange === undefined) return undefined;
      const opened = load().then((it) => it.accessTo(spec));
      return {
        access: {
          headers: async () => await (await opened).headers(),
          rejected: async (challenge, used) => await (await opened).rejected(challenge, used),
        },
        release: () => {},
      };
    },
    get noteToken() {
      return needsUsers ? (principal: string, token: string) => loaded?.subjects.note(principal, token) : undefined;
    },
  };
};

/** Whether a server gets exchanged tokens. A server without a spec may run for users. */
function isExchanging({ spec }: ServerConfig): boolean {
  return spec === undefined || (spec.kind === 'remote' && spec.exchange !== undefined);
}
