import { readFileSync } from 'node:fs';

// Loaded into a process before its own code (`node --import`): tells whoever started it what it takes of the machine,
// over a channel beside stdin and stdout, and ends with that.
process.on('message', (what) => process.send(ANSWERS[what]()));
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
process.channel.unref();

const ANSWERS = {
  resident: () => process.memoryUsage.rss(),
  'peak-resident': () => peakResident(),
  /** Microseconds, of all threads. */
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  'in-use': () => {
    // Once for what is garbage, and once for what its finalizers let go.
    globalThis.gc();
    globalThis.gc();
    const { rss, heapUsed, external } = process.memoryUsage();
    return { resident: rss, inUse: heapUsed + external };
  },
};

/** What the system tells of a process begins with what its parent had when it forked; Linux has another figure, too. */
function peakResident() {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS * 1024;
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1'));
  return Number(kib) * 1024;
}
