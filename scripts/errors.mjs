// Writes `docs/errors.md` from the table of codes in `src/host/errors`, which the built program prints.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const INTRODUCTION = `# Codes

Each finding of \`trunkline doctor\`, each problem of a server in \`trunkline__status\`, and each failure that Trunkline itself
gives to a call has a code. A failed call has its code in \`_meta["trunkline/failure"].code\`. Codes are stable: they are never
renamed and never get another meaning. \`trunkline doctor --codes\` prints this list.

Servers cannot write these facts. Trunkline removes members of \`_meta\` whose names begin with \`trunkline/\` from their results, and from
their errors a \`data\` that has a \`code\` beginning with \`TL-\`, or both \`outcome\` and \`reason\`. A Trunkline that is itself the server of
another one loses its facts in this way, because the outer one cannot vouch for them. Its texts stay.

- \`fail\`: something does not work.
- \`warn\`: something will not work at times, or surprises.
- \`ok\`: a check that has found nothing wrong.

This page is generated from \`src/host/errors\` by \`npm run generate\`.
`;

/** The page about these codes, as `trunkline doctor --codes --json` lists them. */
export function errorsPage(codes) {
  const areas = [...new Set(codes.map(({ area }) => area))];
  const sections = areas.map((area) => {
    const rows = codes.filter((code) => code.area === area).map(row);
    return [`\n## ${area}\n`, '| Code | Level | Meaning | What to do |', '|---|---|---|---|', ...rows, ''].join('\n');
  });
  return INTRODUCTION + sections.join('');
}

function row({ code, level, means, remedy }) {
  const cells = [`\`${code}\``, level, means, remedy];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const program = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
  const codes = JSON.parse(
    execFileSync(process.execPath, [program, 'doctor', '--codes', '--json'], { encoding: 'utf8' }),
  );
  writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsPage(codes));
}
