/*
 * The room of the command line, which no other room uses. Begin here: `main` serves a client, or lets `program.ts` parse every other
 * command line. `program.ts` has the texts of all commands, and loads the file of the one that runs from `commands`, where they stand
 * by subject. Most of them begin in one of two files: `commands/hub/hub-access.ts` finds the running gateway and connects to it,
 * `commands/calls/run-once.ts` starts servers for one command and ends them. `output.ts` prints, and `terminal.ts` makes tables.
 */

import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { GlobalOptions } from '../app/global-options.js';
import { endProcess } from '../app/run-to-end.js';
import { attach } from '../hub/attach/attach.js';
import { LISTENER_DESCRIPTOR } from '../hub/hub-folder.js';
import { isFolderConfig } from '../state/trusted-projects.js';
import { codeCacheFolder } from '../state/user-files.js';
import { VERSION } from '../version.js';
import { type HttpValues, readServing, readTransports } from './commands/serve/serve-options.js';

// A client waits while this loads, so only the way to the hub is imported statically; the rest is loaded on demand. `program.ts` parses the
// other commands with commander. Serving uses `parseArgs` of Node, because commander takes 5 ms or more to load.

export async function main(): Promise<never> {
  // In a desktop program, `process.execPath` may be Electron. With this variable, our own processes run as Node; servers do not get it.
  if (process.versions.electron !== undefined) process.env.ELECTRON_RUN_AS_NODE = '1';
  cacheCompiledCode(codeCacheFolder, VERSION);
  try {
    return await endProcess(await run(process.argv.slice(2)));
  } catch (error) {
    const { reportFault } = await import('./output.js');
    return await endProcess(await reportFault(error));
  }
}

async function run(args: string[]): Promise<number> {
  const line = readServing(args);
  if (line === undefined) {
    const [{ runProgram }, { withGuardedOutput }] = await Promise.all([import('./program.js'), import('./output.js')]);
    return await withGuardedOutput(() => runProgram(args));
  }
  const { values, command } = line;
  const settings: GlobalOptions = {
    config: values.config,
    // A client may have opened a stranger's repository, whose configuration would run commands.
    searchesFolder: process.stdin.isTTY === true && isFolderConfig,
    verbosity: values.verbose?.length ?? 0,
    logFile: values['log-file'],
    view: values.view,
  };
  if (command === 'hub serve') {
    const { runHub } = await import('../app/serve-hub.js');
    return await runHub(settings, { hubFolder: values.place ?? '', descriptor: LISTENER_DESCRIPTOR });
  }
  if (values.record === undefined && values.max === undefined)
    return await serveOrAttach(settings, values, values['no-hub'] === true);
  const { recordingOptions } = await import('./commands/calls/record.js');
  return await serveOrAttach({ ...settings, ...recordingOptions(values.record, values.max) }, values, true);
}

/** Attaches a client on stdin to the hub of its configuration. Serves in this process at a terminal, over HTTP, or with the hub off. */
async function serveOrAttach(settings: GlobalOptions, values: HttpValues, isAlone: boolean): Promise<number> {
  const transports = readTransports(values);
  const canShare =
    !isAlone && process.env.TRUNKLINE_HUB !== 'off' && transports.http === undefined && !process.stdin.isTTY;
  // If no hub can serve the client, this process serves it.
  const loadHub = async () => (await import('../app/serve-hub.js')).serveInside.bind(undefined, settings);
  const failed = canShare ? await attach(settings, loadHub) : { because: undefined };
  if (failed === undefined) return 0;
  const { serve } = await import('../app/serve.js');
  return await serve(settings, transports, failed.because);
}

/**
 * Lets Node cache the compiled code of the modules that are loaded from now on, so that the next start need not compile them.
 * `findFolder` returns a folder of the user alone, because others could put code into the system's folder for temporary files, which
 * is Node's default. It throws for a user without a home folder.
 */
export function cacheCompiledCode(findFolder: () => string, version: string, enable = enableCompileCache()): void {
  if (enable === undefined) return;
  try {
    const folder = findFolder();
    const ownFolder = join(folder, version);
    const isNew = mkdirSync(ownFolder, { recursive: true, mode: 0o700 }) !== undefined;
    // The code of another version of Trunkline takes nearly a megabyte.
    const others = isNew ? readdirSync(folder).filter((name) => name !== version) : [];
    for (const name of others) rmSync(join(folder, name), { recursive: true, force: true });
    enable(ownFolder);
  } catch {
    // Without a folder that can be written, each start compiles the code.
  }
}

/** Returns the function of Node, which exists from version 22.8 on. */
function enableCompileCache(): ((folder: string) => unknown) | undefined {
  return (process.getBuiltinModule('node:module') as { enableCompileCache?: (folder: string) => unknown })
    .enableCompileCache;
}
