import PQueue from 'p-queue';
import { maxSatisfying, satisfies } from 'semver';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { isExact } from '../config/package-bin.js';
import { installedTree } from '../packages/installed-tree.js';
import { NpmFault, newestOf, type PublishedVersions } from '../packages/npm-client.js';
import { fitsNode, nodeRangeIn } from '../packages/package-needs.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import { forStream, table, tell } from './output.js';
import { listRemarks, remarkOnNewest, remarksOn } from './package-remarks.js';
import { workOnPackages } from './package-work.js';
import { progressBar } from './start-progress.js';

/** Each lookup is a process of npm. */
const CONCURRENCY = 4;

/** `trunkline outdated`: lists the installed, the newest accepted and the newest version of each package. */
export async function outdated(settings: GlobalOptions): Promise<number> {
  return await workOnPackages(
    settings,
    ({ servers }) => servers,
    async ({ servers, npm, places, progressLine, ending }) => {
      const requests = new Map(servers.map(({ package: { request } }) => [request.name, request]));
      const published = new Map<string, PublishedVersions>();
      const faults: string[] = [];
      const queue = new PQueue({ concurrency: CONCURRENCY });
      let done = 0;
      const lookUp = async (request: PackageRequest) => {
        const { name } = request;
        try {
          published.set(name, await npm.published(request, ending));
        } catch (error) {
          if (!(error instanceof NpmFault)) throw error;
          faults.push(`trunkline: cannot look up the versions of ${name}: ${error.message}`);
        }
        done += 1;
        progressLine.show(`${progressBar(done, requests.size)} ${done} of ${requests.size} looked up`);
      };
      await queue.addAll([...requests.values()].map((request) => () => lookUp(request)));
      progressLine.clear();
      const rows = servers.map(({ key, package: { request, found } }) => {
        const place = found === undefined ? 'not installed' : found.place === 'near' ? 'node_modules' : 'store';
        const versions = published.get(request.name);
        const [wanted, newest] =
          versions === undefined ? [] : [newestAccepted(request, versions), versions.tags.latest];
        return [key, request.shown, found?.version ?? '-', wanted ?? '?', newest ?? '?', place];
      });
      const text = table([['SERVER', 'PACKAGE', 'INSTALLED', 'WANTED', 'NEWEST', 'WHERE'], ...rows]);
      const remarks = servers.map(({ key, package: { request, found } }) => {
        const versions = published.get(request.name);
        const known = versions && newestOf(versions);
        const onNewest = known && remarkOnNewest(request, known, found?.version);
        const onInstalled = remarksOn(request, installedTree(request, found, places));
        return { key, remarks: onNewest === undefined ? onInstalled : [onNewest, ...onInstalled] };
      });
      process.stdout.write(forStream(`${text}\n${listRemarks(remarks)}`, process.stdout));
      for (const fault of faults) tell(fault);
      return faults.length > 0 ? EXIT.failed : EXIT.ok;
    },
  );
}

/** The version that `trunkline update` would install, by the rules of npm: the tag `latest` goes first if it is in the range. */
function newestAccepted(request: PackageRequest, { tags, versions, engines }: PublishedVersions): string | undefined {
  const { latest } = tags;
  // npm chooses an older version if the newest one needs another Node.
  if (request.version === undefined) return fitsNode(nodeRangeIn(engines), process.versions.node) ? latest : undefined;
  if (isExact(request)) return request.version;
  if (Object.hasOwn(tags, request.version)) return tags[request.version];
  if (latest !== undefined && satisfies(latest, request.version)) return latest;
  return maxSatisfying([...versions], request.version) ?? undefined;
}
