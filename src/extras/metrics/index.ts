import { type CreateFeature, type FeatureHost, Switch } from '../feature.js';
import { Metrics } from './metrics.js';

/** Counts all calls, and shows the counts as text for Prometheus: to the operator, and at `metrics.listen` of the configuration. */
export const metrics: CreateFeature = (host) => {
  const { platform, calls } = host;
  const counts = new Metrics({ exposedName: (...which) => host.gateway.exposedName(...which) }, platform.events);
  calls.observe(counts);
  let loading: Promise<() => Promise<string>> | undefined;
  const read = async () => {
    loading ??= import('./exposition.js').then(({ createExposition }) => createExposition(counts, host));
    return await (await loading)();
  };
  const endpoint = new Switch((address) => listen(address, host, read));
  return {
    apply: ({ gateway }) => {
      counts.hasTools = gateway.metrics.tools;
      return endpoint.set(gateway.metrics.listen);
    },
    close: () => endpoint.close(),
    preload: () => Promise.all([import('./exposition.js'), import('./metrics-endpoint.js')]),
    texts: { metrics: read },
  };
};

/** Begins to serve the metrics at an address. Returns the function that ends it. */
async function listen(
  address: string,
  { platform, notices, logger }: FeatureHost,
  read: () => Promise<string>,
): Promise<() => Promise<void>> {
  const { MetricsEndpoint } = await import('./metrics-endpoint.js');
  const endpoint = new MetricsEndpoint({
    address,
    clock: platform.clock,
    read,
    onFault: (fault) => {
      if (fault === undefined) logger.info({ address }, 'serving metrics');
      else if (notices.get('metrics') !== fault) logger.warn({ address }, fault);
      if (fault === undefined) notices.delete('metrics');
      else notices.set('metrics', fault);
    },
  });
  await endpoint.open();
  return async () => {
    notices.delete('metrics');
    await endpoint.close();
  };
}
