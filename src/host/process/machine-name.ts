import { execFileSync } from 'node:child_process';
import { hostname } from 'node:os';

/** Longest wait for the answer of macOS, in milliseconds. */
const ASK_WITHIN_MS = 2_000;

/** How a machine tells its name: by its host name, or on macOS by the output of a program of the system. */
export interface MachineQuestions {
  /** As in `process.platform`. */
  readonly platform: string;
  readonly hostname: () => string;
  readonly ask: (command: string, args: readonly string[]) => string;
}

const OF_THIS_MACHINE: MachineQuestions = {
  platform: process.platform,
  hostname,
  ask: (command, args) =>
    execFileSync(command, args, { encoding: 'utf8', timeout: ASK_WITHIN_MS, stdio: ['ignore', 'pipe', 'ignore'] }),
};

/**
 * A name that distinguishes this machine, or container, from others that share a folder with it.
 *
 * On macOS it is the identifier of the hardware, because the host name changes with the network, and would separate processes that have
 * been started in different networks. Elsewhere it is the host name, because containers have one of their own, and many have the
 * identifier of the machine from the image.
 */
export function readMachineName({ platform, hostname, ask }: MachineQuestions): string {
  if (platform !== 'darwin') return hostname();
  try {
    const answer = ask('/usr/sbin/ioreg', ['-rd1', '-c', 'IOPlatformExpertDevice']);
    return /"IOPlatformUUID" = "([^"]+)"/.exec(answer)?.[1] ?? hostname();
  } catch {
    // A sandbox may forbid to ask.
    return hostname();
  }
}

let known: string | undefined;

/** `readMachineName` of this machine, read once. */
export function machineName(): string {
  known ??= readMachineName(OF_THIS_MACHINE);
  return known;
}
