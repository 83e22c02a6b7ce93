import PQueue from 'p-queue';
import { maxSatisfying, satisfies } from 'semver';
import { isExact } from '../../../config/resolve/package-bin.js';
import { EXIT } from '../../../errors/usage-error.js';
import { NpmFault, newestOf, type PublishedVersions } from '../../../packages/npm-client.js';
import { fitsNode, nodeRangeIn } from '../../../packages/package-needs.js';
import { installedTree } from '../../../packages/package-store.js';
import type { PackageRequest } from '../../../supervision/launcher.js';
import type { Invocation } from '../../command.js';
import { forStream, printJson, tell } from '../../output.js';
import { type Cell, elapsed, lookOf, table } from '../../terminal.js';
import { progressBar } from '../calls/run-once.js';
import { listRemarks, remarkOnNewest, remarksOn } from './package-remarks.js';
import { workOnPackages } from './package-work.js';

/** Each lookup is a process of npm. */
const CONCURRENCY = 4;

/** `trunkline outdated`: lists the installed, the newest accepted and the newest version of each package. */
export async function outdated({ settings, isJson }: Invocation): Promise<number> {
  return await workOnPackages(
    settings,
    ({ servers }) => servers,
    async ({ servers, npm, places, progressLine, ending }) => {
      const requests = new Map(servers.map(({ package: { request } }) => [request.name, request]));
      const published = new Map<string, PublishedVersions>();
      const faults: string[] = [];
      const queue = new PQueue({ concurrency: CONCURRENCY });
      let done = 0;
      const since = performance.now();
      const lookUp = async (request: PackageRequest) => {
        const { name } = request;
        try {
          published.set(name, await npm.published(request, ending));
        } catch (error) {
          if (!(error instanceof NpmFault)) throw error;
          faults.push(`trunkline: cannot look up the versions of ${name}: ${error.message}`);
        }
        done += 1;
        progressLine.show(
          `${progressBar(done, requests.size)} ${done} of ${requests.size} looked up, ${elapsed(since)}`,
        );
      };
      await queue.addAll([...requests.values()].map((request) => () => lookUp(request)));
      progressLine.clear();
      const facts = servers.map(({ key, package: { request, found } }): PackageFacts => {
        const versions = published.get(request.name);
        const known = versions && newestOf(versions);
        const onNewest = known && remarkOnNewest(request, known, found?.version);
        const onInstalled = remarksOn(request, installedTree(request, found, places));
        return {
          server: key,
          package: request.shown,
          installed: found?.version ?? null,
          wanted: (versions && newestAccepted(request, versions)) ?? null,
          newest: versions?.tags.latest ?? null,
          where: found === undefined ? null : found.place === 'near' ? 'node_modules' : 'store',
          remarks: onNewest === undefined ? onInstalled : [onNewest, ...onInstalled],
        };
      });
      if (isJson) await printJson({ servers: facts });
      else process.stdout.write(describe(facts));
      for (const fault of faults) tell(fault);
      return faults.length > 0 ? EXIT.failed : EXIT.ok;
    },
  );
}

/** Entry of one server in the output of `--json`. Unknown values are null. */
interface PackageFacts {
  readonly server: string;
  readonly package: string;
  readonly installed: string | null;
  readonly wanted: string | null;
  readonly newest: string | null;
  readonly where: 'node_modules' | 'store' | null;
  readonly remarks: readonly string[];
}

function describe(servers: readonly PackageFacts[]): string {
  const rows = servers.map(({ server, package: shown, installed, wanted, newest, where }): Cell[] => {
    const isBehind = wanted !== null && installed !== null && wanted !== installed;
    const accepted: Cell = { text: wanted ?? '?', format: isBehind ? 'yellow' : undefined };
    return [server, shown, installed ?? '-', accepted, newest ?? '?', where ?? 'not installed'];
  });
  const head = ['SERVER', 'PACKAGE', 'INSTALLED', 'WANTED', 'NEWEST', 'WHERE'];
  const remarks = listRemarks(servers.map((each) => ({ key: each.server, remarks: each.remarks })));
  return `${table([head, ...rows], lookOf(process.stdout))}\n${forStream(remarks, process.stdout)}`;
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
