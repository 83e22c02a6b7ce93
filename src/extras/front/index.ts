import { createFetch } from '../../host/http/fetch.js';
import type { CreateFeature } from '../feature.js';
import { createRoutes } from './routes.js';

/**
 * Logs users in through this gateway, for clients that their identity provider does not register. To the clients, the gateway
 * is an authorization server; to the provider, it is one public client. It makes no tokens, and keeps none: those of the provider
 * pass through it. Begin with `routes.ts`; a login is in `logins.ts`.
 */
export const front: CreateFeature = (host) => {
  let served: ReturnType<typeof createRoutes> | undefined;
  return {
    apply: () => {},
    close: () => {},
    routes: async (users) => {
      const { platform, seals, features, logger, config } = host;
      const { clock } = platform;
      const fetchPublic = createFetch({ clock, server: undefined });
      served = createRoutes({
        ...{ clock, logger, users, now: Date.now },
        http: config.gateway.http,
        keys: seals.keysFor('front'),
        groups: () => host.config.gateway.ask.by ?? [],
        // The cluster is another feature.
        takeOnce: async (name, ms) => (await features.first('takeOnce')?.(name, ms)) ?? true,
        // A redirect could lead from the URL that names a client to a document of another one.
        fetchDocument: (url) => fetchPublic(url, { redirect: 'manual' }),
      });
      return served.routes;
    },
    get persons() {
      return served?.persons;
    },
  };
};
