// Draws docs/images/demo.svg, the picture in the README: runs the demo and renders what it prints as a terminal window.
// Only process ids and times differ from run to run. Run it with `npm run pictures`.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DEMO = fileURLToPath(new URL('demo.mjs', import.meta.url));
const PICTURE = new URL('../../docs/images/demo.svg', import.meta.url);

/** Sizes in pixels. The common monospace fonts are about 0.6 em wide; `textLength` corrects the rest. */
const FONT_SIZE = 14;
const CHARACTER_WIDTH = 8.4;
const LINE_HEIGHT = 20;
const PADDING = 20;
const TITLE_BAR_HEIGHT = 36;
const COLUMNS = 100;

/** Colors of the window, and of the SGR codes that the demo prints. */
const BACKGROUND = '#161b22';
const TITLE_BAR = '#21262d';
const BORDER = '#30363d';
const FOREGROUND = '#d1d7e0';
const STYLES = {
  1: 'fill="#ffffff" font-weight="bold"',
  2: 'fill="#8b949e"',
  31: 'fill="#ff7b72"',
  32: 'fill="#56d364"',
  33: 'fill="#e3b341"',
  36: 'fill="#79c0ff"',
};

mkdirSync(new URL('.', PICTURE), { recursive: true });
writeFileSync(PICTURE, toSvg(`\u001b[32m$\u001b[0m npm run demo\n${runDemo()}`.trimEnd().split('\n')));

/** Returns what the demo prints when it runs for the first time on a machine. Throws if a check of the demo fails. */
function runDemo() {
  const home = mkdtempSync(join(tmpdir(), 'trunkline-picture-'));
  try {
    const { XDG_DATA_HOME: _data, XDG_CONFIG_HOME: _config, NO_COLOR: _noColor, ...inherited } = process.env;
    const env = { ...inherited, HOME: home, TMPDIR: home, FORCE_COLOR: '1' };
    return execFileSync(process.execPath, [DEMO], { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'inherit'] });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function toSvg(lines) {
  const width = Math.ceil(COLUMNS * CHARACTER_WIDTH + 2 * PADDING);
  const height = TITLE_BAR_HEIGHT + lines.length * LINE_HEIGHT + 2 * PADDING;
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map((fill, index) => {
    return `<circle cx="${PADDING + index * 20}" cy="${TITLE_BAR_HEIGHT / 2}" r="6" fill="${fill}"/>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">
<title id="title">Terminal output of npm run demo</title>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="10" fill="${BACKGROUND}" stroke="${BORDER}"/>
<path d="M1 ${TITLE_BAR_HEIGHT}V10.5a9.5 9.5 0 0 1 9.5-9.5H${width - 10.5}a9.5 9.5 0 0 1 9.5 9.5V${TITLE_BAR_HEIGHT}Z" fill="${TITLE_BAR}"/>
${dots.join('\n')}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="${FONT_SIZE}" fill="${FOREGROUND}" xml:space="preserve">
<text x="${width / 2}" y="${TITLE_BAR_HEIGHT / 2 + 5}" text-anchor="middle" ${STYLES[2]}>trunkline — npm run demo</text>
${toTexts(lines).join('\n')}
</g>
</svg>
`;
}

/** Returns a `<text>` for each run of characters of one style. A style continues on the next line until it is reset. */
function toTexts(lines) {
  const texts = [];
  let style = '';
  for (const [row, line] of lines.entries()) {
    const y = TITLE_BAR_HEIGHT + PADDING + row * LINE_HEIGHT + FONT_SIZE;
    let column = 0;
    for (const [index, part] of line.split('\u001b[').entries()) {
      // Every part but the first begins with the rest of a color code, such as `32m`.
      const [, code, run] = index === 0 ? [part, undefined, part] : /^(\d+)m(.*)$/.exec(part);
      if (code !== undefined) style = STYLES[code] ? ` ${STYLES[code]}` : '';
      const indentation = run.length - run.trimStart().length;
      const text = run.trim();
      if (text !== '') {
        const x = (PADDING + (column + indentation) * CHARACTER_WIDTH).toFixed(1);
        const length = (text.length * CHARACTER_WIDTH).toFixed(1);
        const place = `x="${x}" y="${y}" textLength="${length}" lengthAdjust="spacingAndGlyphs"`;
        texts.push(`<text ${place}${style}>${escapeXml(text)}</text>`);
      }
      column += run.length;
    }
  }
  return texts;
}

function escapeXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
