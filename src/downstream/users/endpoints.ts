import type { ViewConfig } from '../../config/file/check-file.js';
import { endpointOfView, viewAt } from '../http/http-client.js';

/**
 * Decides which endpoint serves a user who asked for `asked`. Without groups at the views, each user gets what he asked
 * for. Otherwise:
 *
 * - a view is open to users of its groups, and without `groups` to all users
 * - all servers together (`undefined`) are the first view that is open to the user
 * - a single server is open to the users of a view that shows the server with all its tools
 *
 * Returns `undefined` if the endpoint is closed to the user.
 */
export function endpointFor(
  asked: string | undefined,
  groups: readonly string[],
  views: readonly ViewConfig[],
): { readonly endpoint: string | undefined } | undefined {
  if (views.every((view) => view.groups === undefined)) return { endpoint: asked };
  const open = views.filter((view) => view.groups?.some((group) => groups.includes(group)) ?? true);
  const [first] = open;
  if (asked === undefined) return first && { endpoint: endpointOfView(first.name) };
  const name = viewAt(asked);
  const isOpen = open.some((view) => (name === undefined ? showsAllOf(view, asked) : view.name === name));
  return isOpen ? { endpoint: asked } : undefined;
}

function showsAllOf({ servers, tools }: ViewConfig, key: string): boolean {
  const isFiltered = tools?.allow !== undefined || tools?.deny !== undefined;
  return !isFiltered && (servers?.includes(key) ?? true);
}
