import { spawn } from 'node:child_process';

/** Longest text of a notification, in characters. */
const MAX_LENGTH = 200;

/** Shows a notification on Linux and macOS, where there is a desktop. A failure is none of the call, because the page shows the question, too. */
export function notifyDesktop(title: string, text: string): void {
  const [program, ...args] = command(title.slice(0, MAX_LENGTH), text.slice(0, MAX_LENGTH));
  if (program === undefined) return;
  try {
    const child = spawn(program, args, { detached: true, stdio: 'ignore' });
    child.on('error', () => {});
    child.unref();
  } catch {
    // The desktop shows nothing.
  }
}

/** The texts are arguments, and no part of a script, because models and servers have written them. */
function command(title: string, text: string): readonly string[] {
  if (process.platform === 'darwin') {
    const script = ['on run argv', 'display notification (item 2 of argv) with title (item 1 of argv)', 'end run'];
    return ['/usr/bin/osascript', ...script.flatMap((line) => ['-e', line]), title, text];
  }
  const hasDesktop = process.env.DBUS_SESSION_BUS_ADDRESS !== undefined;
  if (process.platform !== 'linux' || !hasDesktop) return [];
  // A text may be markup there.
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return ['notify-send', '--app-name=Trunkline', '--', title, escaped];
}
