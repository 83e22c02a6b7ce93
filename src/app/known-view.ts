import type { Config } from '../config/resolve/config.js';
import { UsageError } from '../errors/usage-error.js';
import { didYouMean, suggest } from '../json/suggest.js';

/** Throws a `UsageError` if the command line names a view that the configuration does not have. */
export function requireView({ gateway, file }: Config, view: string | undefined): void {
  const names = gateway.views.map(({ name }) => name);
  if (view === undefined || view === '' || names.includes(view)) return;
  const meant = suggest(view, names);
  const known =
    names.length === 0 ? `add it below \`views:\` in ${file}` : `the configuration has: ${names.join(', ')}`;
  throw new UsageError(
    `there is no view \`${view}\` in the configuration`,
    meant === undefined ? known : didYouMean(meant),
  );
}
