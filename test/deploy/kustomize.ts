// The objects of an overlay of deploy/kustomize, as `kubectl kustomize` prints them: with those parts of a kustomization that ours use.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

/** An object of Kubernetes, of any kind. */
// biome-ignore lint/suspicious/noExplicitAny: the schemas of Kubernetes check it.
export type Manifest = Record<string, any>;

/** A change of an object (RFC 6902). */
interface Operation {
  readonly op: 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}

export function manifestsIn(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS());
}

export function render(folder: string): Manifest[] {
  const {
    apiVersion: _,
    kind: __,
    generatorOptions: ___,
    resources,
    images = [],
    patches = [],
    configMapGenerator = [],
    ...unknown
  }: Manifest = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8'));
  if (Object.keys(unknown).length > 0) throw new Error(`${folder}: not rendered: ${Object.keys(unknown)}`);
  const found = (resources as string[]).flatMap((resource) => {
    const path = join(folder, resource);
    return resource.endsWith('.yaml') ? manifestsIn(path) : render(path);
  });
  const replaced = (configMapGenerator as Manifest[]).filter(({ behavior }) => behavior === 'replace');
  const isKept = ({ kind, metadata }: Manifest) => {
    return kind !== 'ConfigMap' || replaced.every(({ name }) => name !== metadata.name);
  };
  const generated = (configMapGenerator as Manifest[]).map(({ name, namespace, files }) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace },
    data: Object.fromEntries((files as string[]).map((file) => [file, readFileSync(join(folder, file), 'utf8')])),
  }));
  for (const { target, patch } of patches as Manifest[]) {
    for (const object of found.filter(({ kind, metadata }) => kind === target.kind && metadata.name === target.name))
      for (const operation of parse(patch) as Operation[]) apply(operation, object);
  }
  for (const { name, newName, newTag } of images as Manifest[]) {
    const containers = found.flatMap(({ spec }) => spec?.template?.spec?.containers ?? []);
    for (const container of containers.filter(({ image }) => image === name)) container.image = `${newName}:${newTag}`;
  }
  return [...found.filter(isKept), ...generated];
}

function apply({ op, path, value }: Operation, object: Manifest): void {
  const steps = path.split('/').slice(1);
  const last = steps.pop() ?? '';
  const holder = steps.reduce<Manifest | undefined>((inner, step) => inner?.[step], object);
  if (op === 'add' && last === '-' && Array.isArray(holder)) holder.push(value);
  else if (holder === undefined || !(last in holder)) throw new Error(`No ${path} to ${op}`);
  else if (op === 'remove') delete holder[last];
  else holder[last] = value;
}
