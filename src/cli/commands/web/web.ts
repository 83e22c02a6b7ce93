import { join } from 'node:path';
import { errorCode } from '../../../host/errors/error-text.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import { OWN_FOLDER } from '../../../version.js';
import { type NewUrlReason, SESSION_LIMITS } from '../../../web/server/sessions.js';
import { WebServer } from '../../../web/server/web-server.js';
import { openBrowser } from '../../browser.js';
import type { Invocation } from '../../command.js';
import { note, print, reportFault, tell } from '../../output.js';

interface WebFlags {
  readonly port: string;
  /** `false` for `--no-open`. */
  readonly open: boolean;
  readonly readOnly: true;
}

const REASONS: Readonly<Record<NewUrlReason, string>> = {
  wanted: 'A page without a session was opened. This URL opens a session, within a minute:',
  'used twice':
    'A URL was used twice, so somebody else may have it. The session that it opened has ended. This URL opens another one, within a minute:',
  guessed: 'Something sent six wrong codes, so the URL before is void. This URL opens a session, within a minute:',
};

/** `trunkline web`: serves the page of the running hub until a signal ends it. The URL is printed before the hub is looked for. */
export async function web({ settings, options }: Invocation<WebFlags>): Promise<number> {
  const { open: opensBrowser = true, readOnly: isReadOnly = false } = options;
  const port = readPort(options.port);
  let onOpened = () => {};
  const server = await listen(port, () =>
    WebServer.open({
      port,
      files: join(OWN_FOLDER, 'dist', 'page'),
      isReadOnly,
      clock: systemClock,
      loadSource: async () => (await import('./hub-source.js')).createPageSource(settings, isReadOnly),
      onNewUrl: (url, reason) => {
        tell(REASONS[reason]);
        void print(url);
      },
      onOpened: () => onOpened(),
      onFault: (error) => void reportFault(error),
    }),
  );
  const url = server.newUrl();
  note(
    opensBrowser
      ? 'The browser opens. If it does not, open this URL within a minute:'
      : 'Open this URL within a minute:',
  );
  await print(url);
  note('Ctrl-C ends the page.');
  if (opensBrowser) {
    onOpened = openBrowser(server.forFile(url));
    systemClock.schedule(SESSION_LIMITS.codeMs, onOpened);
  }
  // Loads the module while the browser opens the page. A page that asks gets the failure, if there is one.
  import('./hub-source.js').catch(() => {});
  import('../hub/hub-access.js').then(({ tellWithoutGateway }) => tellWithoutGateway(settings)).catch(() => {});
  await server.closed;
  return EXIT.ok;
}

function readPort(text = '0'): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`\`--port ${text}\` is no port`, 'write a number from 1 to 65535');
}

async function listen(port: number, open: () => Promise<WebServer>): Promise<WebServer> {
  try {
    return await open();
  } catch (cause) {
    const code = errorCode(cause);
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw cause;
    const problem = code === 'EACCES' ? 'you may not use it' : 'another program uses it, maybe another `trunkline web`';
    throw new UsageError(`the page cannot be served on port ${port}: ${problem}`, 'choose another `--port`', { cause });
  }
}
