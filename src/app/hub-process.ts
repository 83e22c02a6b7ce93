import { delimiter, dirname, isAbsolute } from 'node:path';
import { movePredecessors } from '../hub/attach/control-client.js';
import { hubLog } from '../hub/attach/start-hub.js';
import { HubLife } from '../hub/hub-life.js';
import { numberOf } from '../hub/place.js';
import { type ControlCommands, serveControl } from '../hub/server/control-connection.js';
import { HubListener, removeLeftovers } from '../hub/server/hub-listener.js';
import { withFolders } from '../hub/server/search-path.js';
import { VERSION } from '../version.js';
import type { GlobalOptions } from './global-options.js';
import { createPlatform } from './platform.js';
import { type RunningHub, serveHub } from './serve-hub.js';

export interface HubProcessOptions {
  /** The folder of this hub, which the process that starts it has made. */
  readonly place: string;
  /** The descriptor of the listening socket. */
  readonly descriptor: number;
}

/**
 * Loads what a hub needs later. The program may be gone or another one by then: after an update, or when npx has emptied its
 * cache. Left out is what is large and only reads some configurations: such a change has no effect then.
 */
async function loadRest(commands: () => Promise<unknown>): Promise<void> {
  const own = [
    commands(),
    import('./drain-client.js'),
    import('./record-to.js'),
    import('../config/resolve/secrets.js'),
  ];
  await Promise.allSettled([...own, import('opossum'), import('p-queue')]);
}

/** The background process that serves the clients of this user and this configuration. */
export async function runHub(options: GlobalOptions, { place, descriptor }: HubProcessOptions): Promise<number> {
  // The terminal or the login that this process was started from may end. Nobody listens before the servers start.
  process.on('SIGHUP', () => {});
  const platform = createPlatform();
  const life = new HubLife(platform.clock);
  const folder = dirname(place);
  const startedAt = platform.clock.now();
  let runningHub: RunningHub | undefined;
  let onRunning: (hub: RunningHub) => void = () => {};
  const running = new Promise<RunningHub>((resolve) => {
    onRunning = (hub) => {
      runningHub = hub;
      resolve(hub);
    };
  });
  const logFile = options.logFile ?? hubLog(folder);
  const configFile = options.config ?? '';
  const hub = () => runningHub;
  // Loaded after the servers have begun to start: no client needs them.
  let loaded: Promise<ControlCommands> | undefined;
  const commands = () => {
    // The same for all connections: one command can end what another one has begun.
    loaded ??= import('./hub-commands.js').then(({ hubCommands }) =>
      hubCommands({ running, hub, life, platform, place, startedAt, configFile, logFile }),
    );
    return loaded;
  };
  return await serveHub(
    { ...options, logFile },
    {
      platform,
      life,
      listen: (accept) => {
        const listener = new HubListener({
          place,
          descriptor,
          version: VERSION,
          onHello: (hello, peer) => {
            if (hello.role === 'client') {
              // A desktop program knows fewer folders than a shell, and either may have started the hub.
              process.env.PATH = withFolders(process.env.PATH ?? '', hello.path ?? '', { delimiter, isAbsolute });
              return accept(hello, peer);
            }
            serveControl(peer, commands);
            return undefined;
          },
        });
        return {
          // A hub that hangs from now on is no slow start: clients wait for it no longer than for any other.
          answering: () => listener.markReady(),
          ready: (hub) => {
            onRunning(hub);
            void loadRest(commands);
            void movePredecessors(folder, numberOf(place), VERSION).then((running) =>
              removeLeftovers(place, running, Date.now()),
            );
          },
          close: () => listener.close(),
        };
      },
    },
  );
}
