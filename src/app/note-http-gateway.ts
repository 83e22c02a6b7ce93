import { RefusedNames } from '../gateway/status/status-facts.js';
import type { EventSource } from '../observe/events/event-bus.js';
import type { Logger } from '../observe/logger.js';
import { FrontFile, removeEndedFronts } from '../state/http-gateway-file.js';
import { frontFolder } from '../state/user-files.js';
import type { Clock } from '../timing/clock.js';

interface NotedFront {
  readonly url: string;
  readonly configFile: string;
  readonly clock: Clock;
  readonly events: EventSource;
  readonly logger: Logger;
}

/** Keeps in a file, for the doctor, where this gateway serves HTTP and which requests it has refused for their names. */
export function noteFront({ url, configFile, clock, events, logger }: NotedFront): Pick<FrontFile, 'close'> {
  const folder = frontFolder();
  const names = new RefusedNames();
  const file = new FrontFile({
    folder,
    clock,
    onFault: (err) => logger.warn({ err }, 'the doctor cannot know of this HTTP endpoint: its file cannot be written'),
  });
  const write = () => file.set({ url, configFile, refused: names.all });
  write();
  void removeEndedFronts(folder);
  const unsubscribe = events.subscribe('http.refused', ({ named }) => {
    if (named === undefined) return;
    names.count(named, Date.now());
    write();
  });
  return {
    close: async () => {
      unsubscribe();
      await file.close();
    },
  };
}
