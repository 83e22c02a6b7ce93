import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemProgram } from '../host/process/windows.js';

/**
 * Opens a page in the browser of the user. If this fails, the user opens the printed URL. The browser gets a file that forwards to the page
 * and that only this user can read, because all users of the machine can read arguments: another user could open the page first with its
 * code, or log in the user as somebody else with the `state` of a login. The file is in the home folder, because browsers that are
 * installed as snaps see no hidden folder, and have a temporary folder of their own. Returns a function that removes the file, for when the
 * page is open; a signal that ends the process removes it, too.
 */
export function openBrowser(url: string): () => void {
  // Windows shows arguments to their user alone, and its browsers may not find the files of WSL.
  if (process.platform === 'win32' || process.env.WSL_DISTRO_NAME !== undefined) {
    start(browserCommand(url));
    return () => {};
  }
  let folder: string | undefined;
  const remove = () => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  const onSignal = (signal: NodeJS.Signals) => {
    remove();
    process.kill(process.pid, signal);
  };
  try {
    folder = mkdtempSync(join(homedir(), 'trunkline-page-'));
    for (const signal of SIGNALS) process.once(signal, onSignal);
    const file = join(folder, 'open.html');
    writeFileSync(file, forwardTo(url), { mode: 0o600 });
    start(browserCommand(pathToFileURL(file).href));
  } catch {
    remove();
  }
  return remove;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function forwardTo(url: string): string {
  const text = url.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
  const head = '<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Trunkline</title>';
  return `<!doctype html>${head}<meta http-equiv="refresh" content="0; url=${text}">\n`;
}

function start([program = '', ...args]: readonly string[]): void {
  try {
    const child = spawn(program, args, { detached: true, stdio: 'ignore', windowsHide: true });
    child.on('error', () => {});
    child.unref();
  } catch {
    // The URL is printed.
  }
}

/**
 * Opens a file on macOS with the program for web pages, because the program for HTML files may be an editor. A client may have
 * started Trunkline without the folders of the system in PATH.
 */
const OPEN_ON_MAC = `PATH="$PATH:/usr/bin:/bin"
app=$(osascript -l JavaScript -e 'ObjC.import("AppKit"); const page = $.NSURL.URLWithString("https://example.com"); $.NSWorkspace.sharedWorkspace.URLForApplicationToOpenURL(page).path.js')
[ -n "$app" ] && open -a "$app" "$1" || open "$1"`;

/**
 * Returns the program that opens the URL, and its arguments: those of the variable `BROWSER`, otherwise the opener of the platform. The
 * variable may be the path of a program, or words, where quotes keep a path with spaces together.
 */
export function browserCommand(url: string, platform: NodeJS.Platform = process.platform): readonly string[] {
  const { BROWSER = '' } = process.env;
  // `%s` in the variable stands for the URL. Without it, the URL is the last argument.
  const words = existsSync(BROWSER)
    ? [BROWSER]
    : BROWSER.match(/"[^"]*"|'[^']*'|\S+/g)?.map((word) => word.replace(/^(["'])(.*)\1$/, '$2'));
  if (words !== undefined)
    return words.some((word) => word.includes('%s'))
      ? words.map((word) => word.replaceAll('%s', () => url))
      : [...words, url];
  if (platform === 'darwin') return ['/bin/sh', '-c', OPEN_ON_MAC, 'sh', url];
  return platform === 'win32' ? [systemProgram('rundll32'), 'url.dll,FileProtocolHandler', url] : ['xdg-open', url];
}
