import PQueue from 'p-queue';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { installedTree } from '../packages/installed-tree.js';
import { type NewestVersion, NpmFault } from '../packages/npm-client.js';
import { forStream, table, tell } from './output.js';
import { listRemarks, remarkOnNewest, remarksOn } from './package-remarks.js';
import { workOnPackages } from './package-work.js';
import { progressBar } from './start-progress.js';

/** Each lookup is a process of npm. */
const CONCURRENCY = 4;

/** `trunkline outdated`: lists the installed and the newest version of each package. */
export async function outdated(settings: GlobalOptions): Promise<number> {
  return await workOnPackages(
    settings,
    ({ servers }) => servers,
    async ({ servers, npm, places, progressLine, ending }) => {
      const names = [...new Set(servers.map(({ package: { request } }) => request.name))];
      const newest = new Map<string, NewestVersion>();
      const faults: string[] = [];
      const queue = new PQueue({ concurrency: CONCURRENCY });
      let done = 0;
      const lookUp = async (name: string) => {
        try {
          newest.set(name, await npm.newest(name, ending));
        } catch (error) {
          if (!(error instanceof NpmFault)) throw error;
          faults.push(`trunkline: cannot look up the newest version of ${name}: ${error.message}`);
        }
        done += 1;
        progressLine.show(`${progressBar(done, names.length)} ${done} of ${names.length} looked up`);
      };
      await queue.addAll(names.map((name) => () => lookUp(name)));
      progressLine.clear();
      const rows = servers.map(({ key, package: { request, found } }) => {
        const place = found === undefined ? 'not installed' : found.place === 'near' ? 'node_modules' : 'store';
        return [key, request.shown, found?.version ?? '-', newest.get(request.name)?.version ?? '?', place];
      });
      const text = table([['SERVER', 'PACKAGE', 'INSTALLED', 'NEWEST', 'WHERE'], ...rows]);
      const remarks = servers.map(({ key, package: { request, found } }) => {
        const known = newest.get(request.name);
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
