import type { GlobalOptions } from '../../../app/global-options.js';
import { systemClock } from '../../../observe/system-clock.js';
import type { Reads } from '../../../web/contract.js';
import { PageRefusal, type PageSource } from '../../../web/page-source.js';
import { HubFollower } from './follow-hub.js';

/** Facts and actions of the hub of a configuration, for the page. */
export async function createPageSource(settings: GlobalOptions, isReadOnly: boolean): Promise<PageSource> {
  const refuse = () => Promise.reject(new PageRefusal(503, 'No hub runs.'));
  return {
    follow: (take) => new HubFollower({ settings, isReadOnly, clock: systemClock, take }),
    reads: new Proxy({}, { get: () => refuse }) as { [Path in keyof Reads]: () => Promise<Reads[Path]['answer']> },
    actions: new Proxy({}, { get: () => refuse }) as PageSource['actions'],
    openRecording: refuse,
  };
}
