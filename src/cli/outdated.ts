import PQueue from 'p-queue';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { NpmFault } from '../packages/npm-client.js';
import { forStream, table, tell } from './output.js';
import { workOnPackages } from './package-work.js';
import { progressBar } from './start-progress.js';

/** Each look is a process. */
const AT_ONCE = 4;

/** Lists what each server runs and the newest version there is of it. */
export async function outdated(settings: GlobalOptions): Promise<number> {
  return await workOnPackages(
    settings,
    ({ servers }) => servers,
    async ({ servers, npm, progressLine, ending }) => {
      const names = [...new Set(servers.map(({ package: { request } }) => request.name))];
      const newest = new Map<string, string>();
      const internalErrors: string[] = [];
      const queue = new PQueue({ concurrency: AT_ONCE });
      let done = 0;
      const look = async (name: string) => {
        try {
          newest.set(name, await npm.newestVersion(name, ending));
        } catch (error) {
          if (!(error instanceof NpmFault)) throw error;
          internalErrors.push(`trunkline: the newest version of ${name} is not known: ${error.message}`);
        }
        done += 1;
        progressLine.show(`${progressBar(done, names.length)} ${done} of ${names.length} looked up`);
      };
      await queue.addAll(names.map((name) => () => look(name)));
      progressLine.clear();
      const rows = servers.map(({ key, package: { request, found } }) => {
        const place = found === undefined ? 'not installed' : found.place === 'near' ? 'node_modules' : 'store';
        return [key, request.shown, found?.version ?? '-', newest.get(request.name) ?? '?', place];
      });
      const text = table([['SERVER', 'PACKAGE', 'INSTALLED', 'NEWEST', 'WHERE'], ...rows]);
      process.stdout.write(`${forStream(text, process.stdout)}\n`);
      for (const fault of internalErrors) tell(fault);
      return internalErrors.length > 0 ? EXIT.failed : EXIT.ok;
    },
  );
}
