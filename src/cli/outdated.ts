import PQueue from 'p-queue';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { NpmFault } from '../packages/npm-client.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import { forStream, table, tell } from './output.js';
import { workOnPackages } from './package-work.js';
import { progressBar } from './start-progress.js';

/** Each lookup is a process of npm. */
const CONCURRENCY = 4;

/** `trunkline outdated`: lists the installed and the newest version of each package. */
export async function outdated(settings: GlobalOptions): Promise<number> {
  return await workOnPackages(
    settings,
    ({ servers }) => servers,
    async ({ servers, npm, progressLine, ending }) => {
      const requests = new Map(servers.map(({ package: { request } }) => [request.name, request]));
      const newest = new Map<string, string>();
      const faults: string[] = [];
      const queue = new PQueue({ concurrency: CONCURRENCY });
      let done = 0;
      const lookUp = async (request: PackageRequest) => {
        const { name } = request;
        try {
          newest.set(name, await npm.newestVersion(request, ending));
        } catch (error) {
          if (!(error instanceof NpmFault)) throw error;
          faults.push(`trunkline: cannot look up the newest version of ${name}: ${error.message}`);
        }
        done += 1;
        progressLine.show(`${progressBar(done, requests.size)} ${done} of ${requests.size} looked up`);
      };
      await queue.addAll([...requests.values()].map((request) => () => lookUp(request)));
      progressLine.clear();
      const rows = servers.map(({ key, package: { request, found } }) => {
        const place = found === undefined ? 'not installed' : found.place === 'near' ? 'node_modules' : 'store';
        return [key, request.shown, found?.version ?? '-', newest.get(request.name) ?? '?', place];
      });
      const text = table([['SERVER', 'PACKAGE', 'INSTALLED', 'NEWEST', 'WHERE'], ...rows]);
      process.stdout.write(`${forStream(text, process.stdout)}\n`);
      for (const fault of faults) tell(fault);
      return faults.length > 0 ? EXIT.failed : EXIT.ok;
    },
  );
}
