import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/**
 * A folder with the files of control groups. It behaves as the kernel does where code depends on it: a process is in one
 * group, and a group with processes gets no controllers for the groups below it. `npm run soak -- S-14` uses the kernel.
 */
export class CgroupTree {
  readonly folder = mkdtempSync(join(tmpdir(), 'trunkline-cgroup-'));

  constructor({ pids = [] as readonly number[], controllers = '' } = {}) {
    onTestFinished(() => rmSync(this.folder, { recursive: true }));
    writeFileSync(join(this.folder, 'cgroup.controllers'), `${controllers}\n`);
    this.put(this.folder, pids);
  }

  /** Makes a group, unless it is there, and puts processes into it. */
  put(folder: string, pids: readonly number[]): void {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'cgroup.procs'), pids.map((pid) => `${pid}\n`).join(''));
    writeFileSync(join(folder, 'cgroup.events'), `populated ${pids.length > 0 ? 1 : 0}\n`);
  }

  pids(folder: string): number[] {
    return (this.read(folder, 'cgroup.procs') ?? '').split('\n').filter(Boolean).map(Number);
  }

  /** The text of a setting; undefined if it was not written. */
  read(folder: string, file: string): string | undefined {
    const path = join(folder, file);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  }

  /** The folders of all groups, by their paths. */
  get groups(): string[] {
    const entries = readdirSync(this.folder, { recursive: true, withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() ? [join(entry.parentPath, entry.name)] : [])).sort();
  }

  /** Writes a setting as the kernel would take it. */
  readonly write = async (file: string, text: string): Promise<boolean> => {
    const folder = dirname(file);
    if (basename(file) === 'cgroup.subtree_control' && this.pids(folder).length > 0) return false;
    if (basename(file) === 'cgroup.procs') this.#move(Number(text), folder);
    else writeFileSync(file, text);
    return true;
  };

  #move(pid: number, to: string): void {
    for (const group of [this.folder, ...this.groups]) {
      const rest = this.pids(group).filter((each) => each !== pid);
      if (rest.length < this.pids(group).length) this.put(group, rest);
    }
    this.put(to, [...this.pids(to), pid]);
  }
}
