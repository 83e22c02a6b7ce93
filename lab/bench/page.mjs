import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';

/** The circumstances of a run; taken before it, since a run is a load itself. */
export function describeMachine() {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
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

/** Replaces the text between the two markers of this section. Of the aims, the page lists those that were missed. */
export function writeSection(file, name, report) {
  const begin = `<!-- ${name}: begin -->`;
  const end = `<!-- ${name}: end -->`;
  const page = readFileSync(file, 'utf8');
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file} has no ${begin} before ${end}`);
  writeFileSync(file, `${page.slice(0, from + begin.length)}\n${withMissedAims(report)}\n${page.slice(to)}`);
}

/** Shortens each table of aims to a count and the missed ones; the output of the script has them all. */
function withMissedAims(report) {
  const paragraphs = report.split('\n\n').filter((paragraph) => !/^Aims.*:$/.test(paragraph));
  return paragraphs
    .map((paragraph) => (paragraph.startsWith('| Aim |') ? missedAims(paragraph) : paragraph))
    .join('\n\n');
}

function missedAims(aims) {
  const rows = aims.split('\n').slice(2);
  const missed = rows.filter((row) => row.endsWith('| not met |'));
  const judged = rows.filter((row) => !row.endsWith('| no aim |'));
  const named = missed.map((row) => row.slice(2, -' | not met |'.length).replace(' | ', ': '));
  const met = `${judged.length - missed.length} of ${judged.length} aims are met`;
  return missed.length === 0 ? `${met}.` : `${met}. Missed: ${named.join('; ')}.`;
}
