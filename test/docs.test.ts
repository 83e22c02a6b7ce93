import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
/** The folders of the repository that documents refer to. */
const FOLDERS = ['src', 'test', 'docs', 'scripts', 'lab', 'config', 'deploy'];

const documents = ['.', ...FOLDERS].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => normalize(join(folder, file)).replaceAll(sep, '/')),
);

it('CONTRIBUTING.md installs the programs that the tests of the system ask for', () => {
  const script = join(ROOT, 'scripts/system-programs.mjs');
  const packages = execFileSync(process.execPath, [script, '--packages', '--all'], { encoding: 'utf8' });
  const line = `sudo apt-get install ${packages.trim().split('\n').join(' ')}`;
  expect(readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8').split('\n')).toContain(line);
});

describe('the documents', () => {
  it('are found', () => {
    expect(documents).toEqual(expect.arrayContaining(['README.md', 'CHANGELOG.md', 'docs/README.md']));
  });

  it.each(documents)('%s names only paths that exist', (document) => {
    const missing = pathsIn(read(document)).filter((path) => !isThere(path, document));
    expect(missing).toEqual([]);
  });

  it.each(documents)('%s links only to files and headings that exist', (document) => {
    const broken = linksIn(read(document)).filter((link) => !resolves(link, document));
    expect(broken).toEqual([]);
  });

  it('describe every folder at the top of the source', () => {
    const rows = read('docs/architecture.md').match(/^\| (?:`src\/\w+`(?:, )?)+ \|/gm) ?? [];
    const described = rows.flatMap((row) => [...row.matchAll(/src\/(\w+)/g)].map(([, folder]) => folder));
    const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
    const folders = files.filter((file) => /[\\/].*\.tsx?$/.test(file)).map((file) => file.split(sep)[0] ?? '');
    expect([...new Set(described)].sort()).toEqual([...new Set(folders)].sort());
  });

  it('of the decisions are all in the index once, those that do not hold at its end, numbered without holes', () => {
    const files = readdirSync(join(ROOT, 'docs/decisions')).filter((file) => file !== 'README.md');
    const isNumbered = (link: string) => /^\d{4}-[\w-]+\.md$/.test(link);
    const [holding = '', gone = ''] = read('docs/decisions/README.md').split('\n## Withdrawn or replaced\n');
    expect(
      linksIn(holding + gone)
        .filter(isNumbered)
        .sort(),
    ).toEqual(files.sort());
    const holds = (file: string) => read(`docs/decisions/${file}`).includes('\n- Status: accepted');
    expect(linksIn(gone).filter(isNumbered)).toEqual(files.filter((file) => !holds(file)));
    expect(files.map((file) => Number(file.slice(0, 4)))).toEqual(files.map((_, index) => index + 1));
    for (const file of files) expect(read(`docs/decisions/${file}`)).toContain(`# ${file.slice(0, 4)}. `);
  });
});

/** The paths in inline code and in code blocks. A path with a placeholder is no path. */
function pathsIn(text: string): string[] {
  const code = [...text.matchAll(/```[\s\S]*?```|`[^`\n]+`/g)].map(([span]) => span);
  const folder = `(?:${FOLDERS.join('|')})/[\\w./-]*[\\w/]`;
  const source = '[\\w-]+(?:/[\\w.-]+)+\\.(?:ts|mjs|wat|svg)';
  const path = new RegExp(`(?<=^|[\\s\`"'(=])(?:${folder}|${source})(?![\\w*…<{])`, 'g');
  return [...new Set(code.flatMap((span) => span.match(path) ?? []))];
}

/** Whether the path exists in the repository, or beside the document. */
function isThere(path: string, document: string): boolean {
  return existsSync(join(ROOT, path)) || existsSync(join(ROOT, dirname(document), path));
}

/** The targets of all links and images within the repository. */
function linksIn(text: string): string[] {
  const prose = withoutCode(text);
  const inline = [...prose.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)];
  const references = [...prose.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)];
  return [...inline, ...references].map(([, target = '']) => target).filter((target) => !/^[a-z]+:/.test(target));
}

function resolves(link: string, document: string): boolean {
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? document : normalize(join(dirname(document), path));
  if (!existsSync(join(ROOT, target))) return false;
  return anchor === undefined || anchorsOf(read(target)).includes(anchor);
}

/** The anchors that GitHub gives the headings of a document. A repeated heading gets a number. */
function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...text.replace(/```[\s\S]*?```/g, '').matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = '']) => {
    const label = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = label.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
}

function withoutCode(text: string): string {
  return text.replace(/```[\s\S]*?```/g, '').replace(/`[^`\n]*`/g, '');
}

function read(document: string): string {
  return readFileSync(join(ROOT, document), 'utf8');
}
