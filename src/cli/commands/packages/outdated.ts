import PQueue from 'p-queue';
import { maxSatisfying, satisfies } from 'semver';
import { isExact } from '../../../config/resolve/package-bin.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { NpmFault, newestOf, type PublishedVersions } from '../../../servers/packages/npm-client.js';
import { fitsNode, nodeRangeIn } from '../../../servers/packages/package-needs.js';
import { installedTree } from '../../../servers/packages/package-store.js';
import type { PackageRequest } from '../../../spec/server-spec.js';
import type { Invocation } from '../../command.js';
import { elapsed, forStream, printJson, say, tell } from '../../output.js';
import { type Cell, lookOf, table } from '../../terminal.js';
import { progressBar } from '../calls/run-once.js';
import { listRemarks, remarksOnNewest, remarksOnPackage } from './package-remarks.js';
import { workOnPackages } from './package-work.js';

/** Limit of lookups at once, because each is a process of npm. */
const CONCURRENCY = 4;
const HEAD = ['SERVER', 'PACKAGE', 'INSTALLED', 'WANTED', 'NEWEST', 'WHERE'];

/** `trunkline outdated`: lists the installed, the newest accepted and the newest version of each package. */
export async function outdated({ settings, isJson }: Invocation): Promise<number> {
  return await workOnPackages(
    settings,
    ({ servers }) => servers,
    async ({ servers, npm, paths, progressLine, ending }) => {
      const requests = new Map(servers.map(({ package: { request } }) => [request.name, request]));
      const published = new Map<string, PublishedVersions>();
      const faults: string[] = [];
      let done = 0;
      const since = performance.now();
      const lookUp = async ([name, request]: readonly [string, PackageRequest]) => {
        try {
          published.set(name, await npm.published(request, ending));
        } catch (error) {
          if (!(error instanceof NpmFault)) throw error;
          faults.push(`trunkline: cannot look up the versions of ${name}: ${error.message}`);
        }
        done += 1;
        const bar = progressBar(done, requests.size);
        progressLine.show(`${bar} ${done} of ${requests.size} looked up, ${elapsed(since)}`);
      };
      await new PQueue({ concurrency: CONCURRENCY }).addAll([...requests].map((each) => () => lookUp(each)));
      progressLine.clear();
      const facts = servers.map(({ key, package: { request, found } }) => {
        const versions = published.get(request.name);
        const onNewest = remarksOnNewest(request, versions && newestOf(versions), found?.version);
        return {
          server: key,
          package: request.shown,
          installed: found?.version ?? null,
          wanted: (versions && newestAccepted(request, versions)) ?? null,
          newest: versions?.tags.latest ?? null,
          where: found === undefined ? null : found.location === 'near' ? 'node_modules' : 'store',
          remarks: [...onNewest, ...remarksOnPackage(request, installedTree(request, found, paths))],
        };
      });
      if (isJson) await printJson({ servers: facts });
      else {
        const rows = facts.map(({ server, package: shown, installed, wanted, newest, where }): Cell[] => {
          const isBehind = wanted !== null && installed !== null && wanted !== installed;
          const accepted: Cell = { text: wanted ?? '?', format: isBehind ? 'yellow' : undefined };
          return [server, shown, installed ?? '-', accepted, newest ?? '?', where ?? 'not installed'];
        });
        const remarks = listRemarks(facts.map((each) => ({ key: each.server, remarks: each.remarks })));
        await say(`${table([HEAD, ...rows], lookOf(process.stdout))}\n${forStream(remarks, process.stdout)}`.trimEnd());
      }
      for (const fault of faults) tell(fault);
      return faults.length > 0 ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Returns the version that `trunkline update` would install. As in npm, `latest` has precedence if it is in the range. */
function newestAccepted(request: PackageRequest, { tags, versions, engines }: PublishedVersions): string | undefined {
  const { latest } = tags;
  // If `latest` needs another Node, npm chooses an older version, which is unknown here, because only `latest` has its needs.
  if (request.version === undefined) return fitsNode(nodeRangeIn(engines), process.versions.node) ? latest : undefined;
  if (isExact(request)) return request.version;
  if (Object.hasOwn(tags, request.version)) return tags[request.version];
  if (latest !== undefined && satisfies(latest, request.version)) return latest;
  return maxSatisfying([...versions], request.version) ?? undefined;
}
