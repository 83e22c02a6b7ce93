import { createHash } from 'node:crypto';
import type { Config } from '../../config/resolve/config.js';
import { addressText } from '../../config/schema/cluster-address.js';
import { FIXED_LIMITS } from '../../downstream/http/limits.js';
import type { Decorate } from '../../downstream/http/server.js';
import { CODES } from '../../host/errors/codes.js';
import { errorCode, LISTEN_FAULTS } from '../../host/errors/error-text.js';
import { UsageError } from '../../host/errors/usage-error.js';
import { systemClock } from '../../host/observe/system-clock.js';
import { programOf } from '../../spec/server-spec.js';
import { VERSION } from '../../version.js';
import type { CreateFeature, FeatureHost } from '../feature.js';
import { ClusterEndpoint } from './cluster-endpoint.js';
import { openClusterStore, openVault } from './open-stores.js';
import { takeOnce } from './store.js';
import { StoredSessions } from './stored-sessions.js';

/**
 * Opens the store of the cluster. Returns the feature that joins the cluster when HTTP is served; `undefined` if the configuration
 * has no cluster. Rejects with a `UsageError` if the store cannot be used.
 */
export async function openCluster({ gateway }: Config): Promise<CreateFeature | undefined> {
  if (gateway.cluster === undefined) return undefined;
  const { config, store } = await openClusterStore(gateway.cluster, gateway.secretFolder);
  const limits = { ...FIXED_LIMITS, ...gateway.http };
  return (host) => {
    const { seals, platform } = host;
    let joined: ClusterEndpoint | undefined;
    const decorate: Decorate = async (endpoint, route) => {
      logEvents(host);
      const { advertise, listen } = config;
      const keys = seals.keysFor('hops');
      const options = {
        store,
        advertise,
        listen,
        keys,
        limits,
        instance: seals.instance,
        version: VERSION,
        hasUsers: gateway.http.auth !== undefined,
        servers: () => digestOfServers(host.config),
        passedHeaders: () => host.config.passHeaders,
        subjectKeys: seals.keysFor('subjects'),
        noteToken: () => host.features.first('noteToken'),
        // A clock that counts sleep, because leases end while the machine sleeps, too.
        clock: systemClock,
        events: platform.events,
      };
      joined = await ClusterEndpoint.join(options, endpoint, route).catch((error: unknown) => {
        throw asUsageError(error, listen);
      });
      joined.cluster.soleServers.isConfigured = (key) =>
        host.config.servers.some((server) => programOf(server)?.soleKey === key);
      return joined;
    };
    return {
      apply: () => {},
      close: async (stopped) => {
        await stopped;
        await joined?.cluster.soleServers.close();
      },
      http: { decorate, records: new StoredSessions({ store, keys: seals.keysFor('records'), limits }) },
      takeOnce: (name, ms) => takeOnce(store, name, ms),
      openVault: () => openVault({ gateway }, store),
      get soleServers() {
        return joined?.cluster.soleServers;
      },
      get cluster() {
        return joined?.cluster.facts;
      },
    };
  };
}

function asUsageError(error: unknown, address: Parameters<typeof addressText>[0]): unknown {
  const reason = LISTEN_FAULTS.get(errorCode(error) ?? '');
  if (reason === undefined) return error;
  return new UsageError(
    `cannot listen on ${addressText(address)} for the other gateways: ${reason}`,
    'choose another address with `gateway.cluster.listen`, or another port with `gateway.cluster.advertise`',
  );
}

/** Returns a digest of the entries of the servers, without values of variables, because each gateway may have its own. */
function digestOfServers({ servers }: Config): string {
  const entries = servers.map((server) => {
    const { key, prefix, tools, methods, package: used } = server;
    return { key, prefix, tools, methods, package: used?.request.shown, runsOnce: programOf(server)?.soleKey };
  });
  return createHash('sha256').update(JSON.stringify(entries)).digest('base64url').slice(0, 8);
}

const CHANGES = {
  joined: 'another gateway has joined the cluster',
  left: 'another gateway has left the cluster, and its users are served elsewhere',
  unreachable: 'another gateway does not answer at its peer port, and its users are served elsewhere until it does',
  reachable: 'another gateway answers at its peer port again',
};

/** Logs the events of the cluster, and shows a notice in the status while the store is away. */
function logEvents({ platform: { events }, logger, notices }: FeatureHost): void {
  events.subscribe('cluster.member', ({ change, kind: _, ...member }) =>
    logger[change === 'unreachable' ? 'warn' : 'info'](member, CHANGES[change]),
  );
  events.subscribe('cluster.stranger', () =>
    logger.warn('the store has a gateway with another key; give all gateways of the cluster the same `sealKeyFile`'),
  );
  events.subscribe('cluster.store', ({ isUp, reason }) => {
    // The reason goes to the log only, because it may have an address.
    if (isUp) notices.delete('cluster');
    else notices.set('cluster', CODES['TL-CLUSTER-STORE-AWAY'].means);
    if (isUp) logger.info('the store of the cluster answers');
    else logger.warn({ reason }, 'the store of the cluster is away; the gateways go on with what they know');
  });
  events.subscribe('cluster.fenced', ({ clients }) =>
    logger.warn({ clients }, 'clients were ended here, because another gateway serves their users or sessions now'),
  );
  events.subscribe('cluster.unsent', ({ instance, reason }) =>
    logger.info({ instance, reason }, 'a request could not be passed to its gateway, and is served elsewhere'),
  );
}
