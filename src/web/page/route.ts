import { computed, signal } from '@preact/signals';

/** Parts of the page, in the order of their links. */
export const TITLES = {
  needs: 'Needs you',
  servers: 'Servers',
  calls: 'Calls',
  tools: 'Tools',
  clients: 'Clients',
  logins: 'Logins',
  recording: 'Recording',
} as const;
export type Part = keyof typeof TITLES;
export const PARTS = Object.keys(TITLES) as Part[];

/** Address within the page. For example, `#/calls/17?server=files` is call 17 in the list of calls of one server. */
export const hash = signal(location.hash);

export const route = computed(() => {
  const [path = '', query = ''] = hash.value.split('?');
  const [, name, item] = path.split('/');
  const part = PARTS.find((each) => each === name) ?? 'needs';
  return {
    part,
    item: item === undefined || item === '' ? undefined : decoded(item),
    query: new URLSearchParams(query),
  };
});

/** A filter of the part; '' without one. */
export function queried(name: string): string {
  return route.value.query.get(name) ?? '';
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function addressOf(
  part: Part,
  item?: string,
  query: Readonly<Record<string, string>> | URLSearchParams = {},
): string {
  const search = new URLSearchParams(query).toString();
  return `#/${part}${item === undefined ? '' : `/${encodeURIComponent(item)}`}${search === '' ? '' : `?${search}`}`;
}

/** Changes one filter of the part. Adds no entry to the history, because a filter changes with each key. */
export function setQuery(name: string, value: string): void {
  const { part, item, query } = route.value;
  const next = new URLSearchParams(query);
  if (value === '') next.delete(name);
  else next.set(name, value);
  history.replaceState(null, '', addressOf(part, item, next));
  hash.value = location.hash;
}
