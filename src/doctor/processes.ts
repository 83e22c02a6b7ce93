import { rm } from 'node:fs/promises';
import { findFamily } from '../process/find-family.js';
import { hostIdentity, identify, isRunning } from '../process/process-identity.js';
import { type FoundRun, findRuns } from '../state/run-file.js';
import { type Finding, finding } from './finding.js';

/** Run files of gateways that were killed, and servers that outlived them. `sweep` ends the processes that carry Trunkline's mark. */
export async function checkRuns(runFolder: string, sweep: () => Promise<void>): Promise<Finding[]> {
  const runs = await findRuns({ folder: runFolder, host: hostIdentity(), onIgnored: () => {}, isReadOnly: true });
  const found = await Promise.all(runs.map(async (each) => await checkRun(each, sweep)));
  return found.flat();
}

async function checkRun({ file, run }: FoundRun, sweep: () => Promise<void>): Promise<Finding[]> {
  if (await isRunning(run.gateway)) return [];
  const leaders = await Promise.all(
    run.groups.map(async ({ pid, startTime }) => ((await identify(pid))?.startTime === startTime ? [pid] : [])),
  );
  const families = await Promise.all(run.groups.flatMap(({ mark }) => (mark === undefined ? [] : [findFamily(mark)])));
  const pids = new Set([...leaders.flat(), ...families.flat().map(({ pid }) => pid)]);
  if (pids.size === 0) {
    const repair = { done: `removed ${file}`, apply: async () => await rm(file, { force: true }) };
    const text = `Trunkline with the pid ${run.gateway.pid} was killed and has left its run file`;
    return [finding('TL-RUN-STALE', text, { evidence: [file], repair })];
  }
  const evidence = [`pids ${[...pids].join(', ')}`, file];
  const repair = { done: `ended what was left behind`, apply: sweep };
  const text = `processes of the killed Trunkline ${run.gateway.pid} still run`;
  return [finding('TL-RUN-ORPHANS', text, { evidence, repair })];
}
