import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';

/** The circumstances of a run; taken before it, since a run is a load itself. */
export function describeMachine() {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const cores = availableParallelism();
  return [
    `Trunkline ${version}, Node ${process.version}, ${process.platform} ${process.arch}`,
    `${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${cores} cores, load before the run ${loadavg()[0].toFixed(1)}`,
    new Date().toISOString().slice(0, 10),
  ].join('; ');
}

/** Rows of texts as a Markdown table. */
export function table(head, rows) {
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Replaces what the last run left between the two markers of this section, and nothing else of the page. */
export function writeSection(file, name, report) {
  const begin = `<!-- ${name}: begin -->`;
  const end = `<!-- ${name}: end -->`;
  const page = readFileSync(file, 'utf8');
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file} has no ${begin} before ${end}`);
  writeFileSync(file, `${page.slice(0, from + begin.length)}\n\n${report}\n\n${page.slice(to)}`);
}
