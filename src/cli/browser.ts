import { spawn } from 'node:child_process';

/** Opens a page in the browser of the user. If this fails, the user opens the printed URL. */
export function openBrowser(url: string): void {
  const [program = '', ...args] = browserCommand(url);
  try {
    const child = spawn(program, args, { detached: true, stdio: 'ignore', windowsHide: true });
    child.on('error', () => {});
    child.unref();
  } catch {
    // The URL is printed.
  }
}

/** The program and its arguments: the variable `BROWSER`, where quotes keep a path with spaces together, otherwise the opener of the platform. */
function browserCommand(url: string): readonly string[] {
  const { BROWSER = '' } = process.env;
  // `%s` in the variable stands for the URL. Without it, the URL is the last argument.
  const words = BROWSER.match(/"[^"]*"|'[^']*'|\S+/g)?.map((word) => word.replace(/^(["'])(.*)\1$/, '$2'));
  if (words !== undefined)
    return words.some((word) => word.includes('%s'))
      ? words.map((word) => word.replaceAll('%s', () => url))
      : [...words, url];
  if (process.platform === 'darwin') return ['open', url];
  return process.platform === 'win32' ? ['rundll32', 'url.dll,FileProtocolHandler', url] : ['xdg-open', url];
}
