import type { Config } from './config.js';

/** Whether clients of this view see the server. Without a view, they see every server; in an unknown one, none. */
export function isInView(
  { gateway: { views } }: Pick<Config, 'gateway'>,
  key: string,
  view: string | undefined,
): boolean {
  if (view === undefined) return true;
  const found = views.find(({ name }) => name === view);
  return found !== undefined && (found.servers === undefined || found.servers.includes(key));
}
