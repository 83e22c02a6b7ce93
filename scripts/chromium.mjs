// The browser for the tests, figures and pictures of the page: Chromium of the system, because Playwright's own is no package.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

const PROGRAM = 'chromium-headless-shell';
const ARGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Path of the browser. Throws a sentence that says what to install. */
export function findBrowser() {
  const { TRUNKLINE_BROWSER: chosen, PATH = '' } = process.env;
  const candidates = chosen ? [chosen] : PATH.split(delimiter).map((folder) => join(folder, PROGRAM));
  const found = candidates.find(isProgram);
  if (found !== undefined) return found;
  const missing = chosen ? `TRUNKLINE_BROWSER names ${chosen}, which is no program` : `${PROGRAM} is not on PATH`;
  throw new Error(
    `${missing}. Install it with \`apt-get install ${PROGRAM}\`, or set TRUNKLINE_BROWSER to the path of a Chromium.`,
  );
}

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Starts the browser. `args` are further arguments for it. */
export async function launchBrowser(args = []) {
  // The sandbox of Chromium does not run as root.
  const ofRoot = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return await chromium.launch({ executablePath: findBrowser(), args: [...ARGS, ...ofRoot, ...args] });
}
