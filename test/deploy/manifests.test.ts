// The files of `deploy`: objects of Kubernetes against the schemas of Kubernetes, and rules of our own for what no schema knows.
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { DCLinter } from 'dclint';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Namespace } from 'kubernetes-models/v1/Namespace';
import { Service } from 'kubernetes-models/v1/Service';
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readCompose, readImage } from '../../lab/cluster/stack.mjs';
import { checkFile } from '../../src/config/file/check-file.js';
import { readConfigText } from '../../src/config/file/find-config.js';
import { userVariable, variableNamesIn } from '../../src/config/resolve/references.js';
import { folderName } from '../../src/downstream/users/user-variables.js';
import { type Manifest, manifestsIn, render } from './kustomize.js';

/** The kinds that we use, each with the schema of Kubernetes. */
const MODELS = [
  ...[ConfigMap, Deployment, HorizontalPodAutoscaler, Namespace],
  ...[NetworkPolicy, PodDisruptionBudget, Service, ServiceAccount],
];
const ROOT = join(import.meta.dirname, '../..');
const DEPLOY = join(ROOT, 'deploy');
const OVERLAYS = ['small', 'team', 'users'];
const CONFIGS = ['compose/config', 'systemd', ...OVERLAYS.map((name) => `kustomize/overlays/${name}`)];
/** Time after the drain, in which the servers end. */
const RESERVE_S = 10;

const read = (file: string) => readFileSync(join(DEPLOY, file), 'utf8');
const overlay = (name: string) => join(DEPLOY, 'kustomize/overlays', name);
const ofKind = (objects: readonly Manifest[], kind: string): Manifest => {
  const [found = {}, ...others] = objects.filter((object) => object.kind === kind);
  expect([kind, Object.keys(found).length > 0, others.length]).toEqual([kind, true, 0]);
  return found;
};
/** The cluster as the file of the configuration says it. */
const clusterOf = (folder: string): Manifest | undefined => parse(read(`${folder}/trunkline.yaml`)).gateway.cluster;
const configOf = (path: string) => checkFile(readConfigText(join(DEPLOY, path)), path);
/** Bytes of a quantity such as `4Gi` or `512m` of Compose. */
const bytes = (text: string) => {
  const { amount, unit = '' } = /^(?<amount>\d+)(?<unit>[a-zA-Z]?)/.exec(text)?.groups ?? {};
  return Number(amount) * 1024 ** ['', 'k', 'm', 'g'].indexOf(unit.toLowerCase());
};

describe.each(OVERLAYS)('the overlay %s', (name) => {
  const objects = render(overlay(name));
  const deployment = ofKind(objects, 'Deployment');
  const pod = deployment.spec.template;
  const [container] = pod.spec.containers;

  it.each(objects.map((object) => [object.kind, object] as const))('has a %s that Kubernetes accepts', (_, object) => {
    expect(faultsOf(object)).toEqual([]);
  });

  it('runs the version of package.json', () => {
    expect(container.image).toBe(`trunkline:${JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version}`);
  });

  it('has one container, with all probes on its port and with limits', () => {
    const { startupProbe, livenessProbe, readinessProbe, resources, ports } = container;
    expect(pod.spec.containers).toHaveLength(1);
    expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)).toEqual([
      { path: '/livez', port: 'http' },
      { path: '/livez', port: 'http' },
      { path: '/readyz', port: 'http' },
    ]);
    expect(ports[0]).toEqual({ name: 'http', containerPort: 7411 });
    expect(container.args).toEqual(expect.arrayContaining(['--http', '0.0.0.0:7411']));
    // Equal, or the pod is evicted before pods that use less than they asked for.
    expect(resources.limits.memory).toBe(resources.requests.memory);
    expect(Object.keys(resources.limits)).toContain('ephemeral-storage');
  });

  it('runs as the user of the image without any privilege or credential of the cluster', () => {
    const { user, group } = readImage();
    expect(pod.spec.securityContext).toMatchObject({
      ...{ runAsNonRoot: true, runAsUser: user, runAsGroup: group, fsGroup: group },
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect([
      pod.spec.automountServiceAccountToken,
      ofKind(objects, 'ServiceAccount').automountServiceAccountToken,
    ]).toEqual([false, false]);
    expect(ofKind(objects, 'Namespace').metadata.labels).toEqual({
      'pod-security.kubernetes.io/enforce': 'restricted',
    });
  });

  it('selects its pods and ports by the names that they have', () => {
    const { labels } = pod.metadata;
    const service = ofKind(objects, 'Service').spec;
    const policy = ofKind(objects, 'NetworkPolicy').spec;
    const selectors = [
      deployment.spec.selector.matchLabels,
      service.selector,
      policy.podSelector.matchLabels,
      ofKind(objects, 'PodDisruptionBudget').spec.selector.matchLabels,
      pod.spec.topologySpreadConstraints[0].labelSelector.matchLabels,
    ];
    expect(selectors).toEqual(selectors.map(() => labels));
    expect([service.ports[0].targetPort, policy.ingress[0].ports[0].port]).toEqual(['http', 'http']);
    const namespaces = objects.filter(({ kind }) => kind !== 'Namespace').map(({ metadata }) => metadata.namespace);
    expect(new Set(namespaces)).toEqual(new Set([ofKind(objects, 'Namespace').metadata.name]));
  });

  it('gives the drain its time before Kubernetes kills the pod', () => {
    const { drainMs } = configOf(`kustomize/overlays/${name}/trunkline.yaml`).gateway;
    const neededS = container.lifecycle.preStop.sleep.seconds + drainMs / 1000 + RESERVE_S;
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(neededS);
  });

  it('mounts every volume, and the folders that the image and the configuration name', () => {
    const mounts = new Map((container.volumeMounts as Manifest[]).map((mount) => [mount.mountPath as string, mount]));
    const volumes = new Map((pod.spec.volumes as Manifest[]).map((volume) => [volume.name as string, volume]));
    expect([...mounts.values()].map((mount) => mount.name).sort()).toEqual([...volumes.keys()].sort());
    const volumeAt = (path: string) => volumes.get(mounts.get(path)?.name) ?? {};
    const { env, links } = readImage();
    const target = links.find(({ link }) => link === env.TRUNKLINE_CONFIG)?.target ?? '';
    const map = ofKind(objects, 'ConfigMap');
    expect([volumeAt(posix.join(target, '..')).configMap, Object.keys(map.data)]).toEqual([
      { name: map.metadata.name },
      ['trunkline.yaml'],
    ]);
    // A file of a `subPath` would never change.
    expect([...mounts.values()].filter((mount) => mount.subPath !== undefined)).toEqual([]);
    for (const folder of [env.XDG_DATA_HOME ?? '', env.HOME ?? '', '/tmp'])
      expect(volumeAt(folder)).toHaveProperty('emptyDir.sizeLimit');
    // For the group of the pod only: 0440.
    expect(volumeAt('/keys').secret).toEqual({ secretName: 'trunkline-keys', defaultMode: 0o440 });
  });

  it('restarts a server long before the kernel ends the gateway', () => {
    const limit =
      configOf(`kustomize/overlays/${name}/trunkline.yaml`).servers[0]?.settings.limits?.memoryBytes ?? Infinity;
    expect(limit).toBeLessThanOrEqual(bytes(container.resources.limits.memory) / 4);
  });
});

describe('the overlay small', () => {
  it('has no store, and no port for other gateways', () => {
    const [container] = ofKind(render(overlay('small')), 'Deployment').spec.template.spec.containers;
    expect([clusterOf('kustomize/overlays/small'), container.ports.length]).toEqual([undefined, 1]);
  });
});

describe('the overlay team', () => {
  const objects = render(overlay('team'));
  const cluster = clusterOf('kustomize/overlays/team') ?? {};
  const { metadata, spec } = ofKind(objects, 'Deployment').spec.template;
  const [container] = spec.containers;
  const { ingress, egress } = ofKind(objects, 'NetworkPolicy').spec;
  const itself = [{ podSelector: { matchLabels: metadata.labels } }];
  const [, peers] = container.ports;

  it('reaches the other gateways at the address of the pod, and at a port that only gateways may use', () => {
    expect(peers.name).toBe('peers');
    expect(cluster.advertise).toBe(`\${POD_IP}:${peers.containerPort}`);
    expect(container.env).toContainEqual({ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } });
    const rulesFor = (rules: Manifest[], port: unknown) => rules.filter(({ ports }) => ports?.[0].port === port);
    expect(rulesFor(ingress, 'peers').map(({ from }) => from)).toEqual([itself]);
    expect(rulesFor(egress, peers.containerPort).map(({ to }) => to)).toEqual([itself]);
    // A rule without ports would allow every port.
    expect(ingress.every(({ ports }: Manifest) => ports.length > 0)).toBe(true);
    expect(ofKind(objects, 'Service').spec.ports.map(({ targetPort }: Manifest) => targetPort)).toEqual(['http']);
  });

  it('may reach the store, whose password is a file of the Secret', () => {
    const { hostname, port } = new URL(cluster.store);
    const [, namespace] = hostname.split('.');
    expect(egress).toContainEqual({
      to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } }],
      ports: [{ protocol: 'TCP', port: Number(port) }],
    });
    const { secretFolder } = parse(read('kustomize/overlays/team/trunkline.yaml')).gateway;
    expect(posix.join(cluster.storePasswordFile, '..')).toBe(secretFolder);
  });
});

describe('the overlay users', () => {
  const path = 'kustomize/overlays/users/trunkline.yaml';
  const { publicUrl, auth } = configOf(path).gateway.http;
  const { spec } = ofKind(render(overlay('users')), 'Deployment').spec.template;

  it('is the overlay team but for its configuration and the variables', () => {
    const without = (objects: Manifest[]) => objects.filter(({ kind }) => !['ConfigMap', 'Deployment'].includes(kind));
    expect(without(render(overlay('users')))).toEqual(without(render(overlay('team'))));
    expect(clusterOf('kustomize/overlays/users')).toEqual(clusterOf('kustomize/overlays/team'));
  });

  it('accepts tokens for the URL that clients use', () => {
    expect(auth?.jwt?.audience).toEqual([`${publicUrl}/mcp`]);
  });

  it('mounts a value for each path of a user, where the gateway reads it', () => {
    const mount = spec.containers[0].volumeMounts.find(({ name }: Manifest) => name === 'variables');
    expect(mount).toEqual({ name: 'variables', mountPath: auth?.variables, readOnly: true });
    const { defaultMode, sources } = spec.volumes.find(({ name }: Manifest) => name === 'variables').projected;
    // Readable by the group of the pod, and changed by nobody else.
    expect(defaultMode).toBe(0o440);
    const wanted = variableNamesIn([read(path)]).flatMap((name) => userVariable(name) ?? []);
    expect(wanted.length).toBeGreaterThan(0);
    for (const { secret } of sources as Manifest[]) {
      // Pods start, too, when a user has no Secret yet.
      expect(secret.optional).toBe(true);
      for (const { path: at } of secret.items as Manifest[]) {
        const [kind, user = '', variable] = at.split('/');
        expect([kind, folderName(user), wanted]).toEqual(['users', user, expect.arrayContaining([variable])]);
      }
    }
  });
});

describe('the autoscaler', () => {
  it('decides about the number of the deployment, which names none', () => {
    const objects = render(overlay('team'));
    const { apiVersion, kind, metadata, spec } = ofKind(objects, 'Deployment');
    const { scaleTargetRef } = ofKind(objects, 'HorizontalPodAutoscaler').spec;
    expect([scaleTargetRef, spec.replicas]).toEqual([{ apiVersion, kind, name: metadata.name }, undefined]);
  });
});

describe('the Gateway of Envoy', () => {
  it('leads to the service, and asks it whether it is ready', () => {
    const [, gateway, route] = manifestsIn(join(DEPLOY, 'envoy-gateway/gateway.yaml')) as [
      Manifest,
      Manifest,
      Manifest,
    ];
    const [policy = {}] = manifestsIn(join(DEPLOY, 'envoy-gateway/traffic-policy.yaml'));
    const { metadata, spec } = ofKind(render(overlay('team')), 'Service');
    expect(route.spec.rules[0].backendRefs).toEqual([{ name: metadata.name, port: spec.ports[0].port }]);
    expect(route.spec.parentRefs).toEqual([{ name: gateway.metadata.name }]);
    expect(policy.spec.targetRefs).toEqual([
      { group: 'gateway.networking.k8s.io', kind: route.kind, name: route.metadata.name },
    ]);
    expect(policy.spec.healthCheck.active.http.path).toBe('/readyz');
    expect(new URL(configOf('kustomize/overlays/team/trunkline.yaml').gateway.http.publicUrl ?? '').host).toBe(
      route.spec.hostnames[0],
    );
  });
});

describe('the Compose file', () => {
  const services: Record<string, Manifest> = readCompose();
  const gateways = Object.entries(services).filter(
    ([, { image, restart }]) => image === 'trunkline' && restart !== 'no',
  );

  it('fits the schema of Compose', () => {
    // The image of nginx is the latest stable one, because fixes of its holes should come without us.
    const rules = { 'service-image-require-explicit-tag': 0 };
    const linter = new DCLinter({ rules, quiet: true, debug: false, exclude: [] });
    const files: Manifest[] = linter.lintFiles([join(DEPLOY, 'compose/compose.yaml')], false);
    expect(files).toHaveLength(1);
    expect(files[0]?.messages.filter(({ type }: Manifest) => type === 'error')).toEqual([]);
  });

  it('has three gateways with a health check, limits and no privileges', () => {
    expect(gateways.map(([name]) => name)).toEqual(['gateway-1', 'gateway-2', 'gateway-3']);
    for (const [, gateway] of gateways) {
      expect(gateway).toMatchObject({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
      expect(gateway.healthcheck.test.join(' ')).toContain('/readyz');
      expect(bytes(gateway.mem_limit)).toBeGreaterThan(0);
      expect(gateway.pids_limit).toBeGreaterThan(0);
    }
  });

  it('publishes the port of the proxy and no other, to this machine only', () => {
    const published = Object.entries(services).flatMap(([name, { ports = [] }]) =>
      (ports as string[]).map((port) => [name, port]),
    );
    expect(published).toEqual([['nginx', '127.0.0.1:7410:7410']]);
  });

  it('has a store with a password that drops no record and keeps its data', () => {
    const { command, volumes, user, image } = services.valkey ?? {};
    expect([command.at(-1), volumes[0], image]).toEqual([
      '/etc/valkey/valkey.conf',
      './valkey:/etc/valkey:ro',
      expect.stringMatching(/^valkey\/valkey:\d/),
    ]);
    const { user: uid, group } = readImage();
    expect(user).toBe(`${uid}:${group}`);
    const lines = read('compose/valkey/valkey.conf').split('\n');
    expect(lines).toEqual(
      expect.arrayContaining(['include /store/password.conf', 'appendonly yes', 'maxmemory-policy noeviction']),
    );
    const memory = /^maxmemory (\d+m)b$/m.exec(lines.join('\n'))?.[1] ?? '';
    expect(bytes(memory)).toBeLessThanOrEqual(bytes(services.valkey?.mem_limit) / 2);
    expect(new URL(clusterOf('compose/config')?.store).host).toBe(
      `valkey:${/^port (\d+)$/m.exec(lines.join('\n'))?.[1]}`,
    );
  });

  it('tells each gateway its own addresses, for the other gateways and for a Prometheus', () => {
    expect(clusterOf('compose/config')?.advertise).toBe(`\${ADVERTISE}`);
    expect(gateways.map(([, { environment, command }]) => [environment.ADVERTISE, command.at(-1)])).toEqual(
      gateways.map(([name]) => [`${name}:7412`, `${name}:7411`]),
    );
  });

  it('gives the drain its time before Docker kills a gateway', () => {
    const { drainMs } = configOf('compose/config/trunkline.yaml').gateway;
    for (const [, { stop_grace_period: grace }] of gateways)
      expect(Number(/^(\d+)s$/.exec(grace)?.[1])).toBeGreaterThanOrEqual(drainMs / 1000 + RESERVE_S);
  });

  it.each(['compose/nginx.conf', 'haproxy/haproxy.cfg'])('has the gateways that %s names', (file) => {
    const named = [...read(file).matchAll(/^ *server (?:\S+ )?([\w-]+):7411\b/gm)].map(([, name]) => name);
    expect(named).toEqual(gateways.map(([name]) => name));
  });
});

describe.each(CONFIGS)('the configuration in %s', (folder) => {
  const path = `${folder}/trunkline.yaml`;

  it('has no mistake, and nothing to warn of', () => {
    expect(configOf(path).warnings).toEqual([]);
  });

  it('runs the packages of the image', () => {
    const { dependencies } = JSON.parse(read('servers/package.json'));
    const { packages } = JSON.parse(read('servers/package-lock.json'));
    const wanted = [...read(path).matchAll(/package: "(.+)@([^@"]+)"/g)].map(([, name = '', version]) => [
      name,
      version,
    ]);
    expect(wanted.length).toBeGreaterThan(0);
    expect(wanted.map(([name = '']) => [name, dependencies[name]])).toEqual(wanted);
    expect(wanted.map(([name]) => [name, packages[`node_modules/${name}`].version])).toEqual(wanted);
  });
});

describe('the lock file of the servers', () => {
  it('names no addresses, so that every registry can be used', () => {
    const { packages } = JSON.parse(read('servers/package-lock.json'));
    expect(Object.values<Manifest>(packages).filter((entry) => Object.hasOwn(entry, 'resolved'))).toEqual([]);
  });
});

/** The reasons why the schema of its kind refuses an object. */
function faultsOf(object: Manifest): string[] {
  const Model = MODELS.find(({ kind, apiVersion }) => kind === object.kind && apiVersion === object.apiVersion);
  if (Model === undefined) return [`no schema of ${object.kind} in ${object.apiVersion}`];
  try {
    new Model(object as never).validate();
    return [];
  } catch (error) {
    return [String(error)];
  }
}
