import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * A control group (cgroup v2) that belongs to what runs in it, as in a container: a new group, which is the root of a
 * namespace, with a mount of its own that nobody else sees. Needs root.
 */
export class DelegatedGroup {
  #name;
  #mount;
  #inner;

  constructor(folder) {
    this.#mount = mkdtempSync(join(folder, 'cgroup-'));
    this.#inner = mkdtempSync(join(folder, 'cgroup-'));
    this.#name = `trunkline-soak-${process.pid}-${basename(this.#mount)}`;
    try {
      this.#outside('mkdir "$1/$2"');
    } catch (error) {
      const why = `${error.stderr ?? error}`.trim();
      const refusal = new Error(`This needs root, \`unshare\` and a kernel with cgroup v2 that may be mounted: ${why}`);
      throw Object.assign(refusal, { isOfMachine: true });
    }
  }

  /** The command with which a program runs in the group. The process keeps its pid. */
  command(program, ...args) {
    const enter = 'echo $$ >"$1/$2/cgroup.procs" && shift 2 && exec unshare -m -C sh -c "$@"';
    const mountInner = 'mount -t cgroup2 none "$0" && exec "$@"';
    const [shell, ...rest] = this.#mounted(enter, mountInner, this.#inner, program, ...args);
    return { command: shell, args: rest };
  }

  /** The path of a process below the group; undefined if it is not in it. */
  pathOf(pid) {
    const [, path] = /^0::(.*)$/m.exec(execFileSync('cat', [`/proc/${pid}/cgroup`], { encoding: 'utf8' })) ?? [];
    return path?.split(`/${this.#name}/`)[1];
  }

  /** The controllers of the kernel that groups below it can have. */
  controllers() {
    return this.#outside('cat "$1/$2/cgroup.controllers"').trim().split(' ');
  }

  /** The groups below it. */
  groups() {
    return this.#outside('cd "$1/$2" && find . -mindepth 1 -type d').split('\n').filter(Boolean);
  }

  /** Kills everything in it, and removes it. */
  remove() {
    const untilEmpty = 'while grep -q "populated 1" "$1/$2/cgroup.events"; do sleep 0.05; done';
    this.#outside(`echo 1 >"$1/$2/cgroup.kill"; ${untilEmpty}; find "$1/$2" -depth -type d -exec rmdir {} +`);
  }

  #outside(script) {
    const [command, ...args] = this.#mounted(script);
    return execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' });
  }

  #mounted(script, ...args) {
    const mount = `mount -t cgroup2 none "$1" && ${script}`;
    return ['unshare', '-m', 'sh', '-c', mount, 'sh', this.#mount, this.#name, ...args];
  }
}
