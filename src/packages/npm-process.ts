import { existsSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { endGroup } from '../process/end-group.js';
import { spawnChild } from '../process/spawn-child.js';
import type { Clock } from '../timing/clock.js';

const CLI = join('npm', 'bin', 'npm-cli.js');

/**
 * Finds npm's JavaScript program, to be run with Node: the one that came with this Node, or else the one in `path`.
 *
 * Desktop programs have another PATH than shells, so the npm next to Node comes first.
 */
export function findNpm(nodePath: string, path = ''): string | undefined {
  const node = dirname(nodePath);
  const besideNode = [
    join(node, '..', 'lib', 'node_modules', CLI),
    join(node, 'node_modules', CLI),
    join(node, '..', 'libexec', 'lib', 'node_modules', CLI),
  ];
  const inPath = path
    .split(delimiter)
    .filter(Boolean)
    .flatMap((folder) => [
      join(folder, 'npm'),
      join(folder, 'node_modules', CLI),
      join(folder, '..', 'lib', 'node_modules', CLI),
    ]);
  return [...besideNode, ...inPath].map(realPath).find((file) => file?.endsWith('npm-cli.js'));
}

function realPath(path: string): string | undefined {
  return existsSync(path) ? realpathSync(path) : undefined;
}

export interface NpmRun {
  readonly npm: string;
  readonly nodePath: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The complete environment of the user, since it can configure the registry and the proxy. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Ends npm and all processes that it has started. */
  readonly signal: AbortSignal;
  /** Called with the process group when it starts. */
  readonly onBegun: (pgid: number) => void;
  /** Called when no process of the group is left. */
  readonly onGone: (pgid: number) => void;
}

export interface NpmResult {
  readonly code: number | null;
  readonly stdout: string;
  /** Lines of stderr. */
  readonly lines: readonly string[];
}

/** Limit for each of the two outputs. */
const MAX_OUTPUT_CHARACTERS = 1024 * 1024;
/** An aborted npm is stopped quickly; an npm that has ended gets the time for its exit to be noticed. */
const LADDER = { termAfterMs: 50, killAfterMs: 1_000 };

/** Runs npm in its own process group; resolves when no process of the group is left. Never rejects. */
export async function runNpm(run: NpmRun): Promise<NpmResult> {
  const { npm, nodePath, args, cwd, clock, signal } = run;
  let fault: string | undefined;
  const env = Object.fromEntries(Object.entries(run.env).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  const child = spawnChild(
    { command: nodePath, args: [npm, ...args], cwd, env },
    {
      onSpawnError: (error) => {
        fault = error.message;
      },
      onExit: () => {},
    },
  );
  if (child.pid !== undefined) run.onBegun(child.pid);
  child.stdin.end();
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const end = () => endGroup(child, LADDER, clock);
  const onAbort = () => void end();
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  const { code } = await child.exit;
  signal.removeEventListener('abort', onAbort);
  // Waits for the rest of the output, and ends processes that an install script may have left behind.
  while (!(await end()).gone);
  if (child.pid !== undefined) run.onGone(child.pid);
  const lines = stderr()
    .split('\n')
    .filter((line) => line.trim() !== '');
  return { code, stdout: stdout(), lines: fault === undefined ? lines : [...lines, fault] };
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    if (text.length < MAX_OUTPUT_CHARACTERS) text += chunk;
  });
  return () => text;
}
